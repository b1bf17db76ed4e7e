"""The cursor's way along stored rows: forward at a pace, backward, with breakpoints judged on what is stored."""

from __future__ import annotations

from collections import Counter

from graphagent.debug.breakpoints import Breakpoint, Breakpoints
from graphagent.debug.live import Going
from graphagent.debug.stored import Stored, is_within
from graphagent.debug.walk import Place, Walk

Hits = tuple[Breakpoint, ...]


class Past:
    """Where a cursor gets to from a row. `at_end`: nothing comes behind the row that was stood on last."""

    def __init__(self, stored: Stored, breakpoints: Breakpoints) -> None:
        self.stored = stored
        self.breakpoints = breakpoints
        self.walk = Walk(stored)
        self.at_end = False

    async def newest(self) -> Place | None:
        """The last row of all."""
        self.walk.to_newest()
        return await self.walk.newest()

    async def go_to(self, place: Place) -> None:
        """Take the branch that a row is on. Raises CheckpointNotFound."""
        await self.walk.go_to(place)

    async def stand(self, place: Place) -> None:
        """The cursor stands on a row."""
        self.at_end = await self.walk.following(place) is None

    async def preceding(self, place: Place, *, deep: bool) -> Place | None:
        """The row before, deep: also in other frames."""
        return await self.walk.preceding(place, None if deep else place.namespace)

    async def forward(self, place: Place, going: Going, held: Place | None) -> tuple[Place, Hits] | None:
        """The row to which a pace leads, and the breakpoints that are hit there; None if the cursor is at the end.

        `held`: where the run is held, which nothing goes past.
        """
        over = going.frame if going.pace in ("next", "out") and not self.breakpoints.active else None
        visits = await self._visits_at(place) if self.breakpoints.counts else Counter[str]()
        if self.breakpoints.active:
            self.breakpoints.forget()
            await self._judge(place, visits)  # a condition that holds here already has not come true there
        last = None
        while (after := await self.walk.following(last or place, over)) is not None:
            last = after
            visits.update(await self.stored.ran(*after))
            if after == held:
                return after, ()
            hits = await self._judge(after, visits) if self.breakpoints.active else ()
            if hits or await self._there(after, going):
                return after, hits
        return None if last is None else (last, ())

    async def _there(self, place: Place, going: Going) -> bool:
        if going.pace == "step":
            return True
        if going.pace == "next":
            return place.namespace == going.frame or not is_within(place.namespace, going.frame)
        if going.pace == "out":
            return place.namespace != going.frame and is_within(going.frame, place.namespace)
        if going.pace == "until":
            moment = await self.stored.moment(*place)
            new = f"#{moment.step + 1}"
            return any(
                one.node == going.node and one.state == "ready" and new in one.activation for one in moment.coming
            )
        return False

    async def _judge(self, place: Place, visits: Counter[str]) -> Hits:
        if not self.breakpoints.can_hit(await self.stored.ran(*place)):
            return ()
        seen = await self.stored.seen(*place, changes=self.breakpoints.writes)
        graph = await self.stored.graph(place.namespace)
        if seen is None or graph is None:
            return ()
        moment, values = seen
        return self.breakpoints.hits(moment, graph.schema.view(values), graph, visits=visits)

    async def _visits_at(self, place: Place) -> Counter[str]:
        """How often each node had run when the walk comes to a row."""
        found: Counter[str] = Counter()
        one = await self.walk.first()
        while one is not None:
            found.update(await self.stored.ran(*one))
            if one == place:
                break
            one = await self.walk.following(one)
        return found
