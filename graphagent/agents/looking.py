"""A stored activation as one that is about to run: its state, and a context in which nothing is done.

For debuggers, which make again of it what the run had made: a request, a round of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphagent.agents.invocation import Invocation
from graphagent.agents.scope import Log, Scope
from graphagent.agents.stored_frames import Frames
from graphagent.checkpoint.record import EffectRow, Header
from graphagent.clock import Clock
from graphagent.engine.context import NodeContext
from graphagent.engine.effects import Claim
from graphagent.engine.frame import Frame, Origin
from graphagent.errors import CheckpointNotFound, UsageError
from graphagent.graph.definition import NodeDef
from graphagent.graph.marking import text_of


class NotRecorded(Exception):
    """What is looked at wants to do something, of which there is no record."""


class Then:
    """A clock that stands at a moment. `looked`: whether anybody wanted to know the time."""

    def __init__(self, moment: float) -> None:
        self._moment = moment
        self.looked = False

    def now(self) -> float:
        """The moment."""
        self.looked = True
        return self._moment

    def monotonic(self) -> float:
        """The moment."""
        return self.now()

    async def sleep(self, seconds: float) -> None:
        """Waits for nothing."""


class Looking(NodeContext):
    """The context of a stored activation. Effects and answers are those that are recorded; what has no record is not
    done, but raises NotRecorded. `effects`: the activation's; `moment`: when the run had come to it."""

    __slots__ = ("_counted", "_then", "effects")

    def __init__(self, frame: Frame, position: int, effects: Sequence[EffectRow], moment: float) -> None:
        super().__init__(frame, position, frame.marking.frontier[position])
        self.effects = {
            (row.name, row.ordinal): row for row in effects if row.position == frame.origin(position).position
        }
        self._counted: dict[str, int] = {}
        self._then = Then(moment)

    @property
    def clock(self) -> Clock:
        """The time of the checkpoint."""
        return self._then

    @property
    def timed(self) -> bool:
        """True if what was made again asked for the time, which was another one then."""
        return self._then.looked

    def usage(self, **_: Any) -> None:
        """Nothing is used."""

    async def claim(self, name: str, fn: Callable[..., Any], reconciles: bool, idempotent: bool) -> Claim:
        """The recorded effect. Raises NotRecorded if there is none."""
        found = await self.recorded(name, fn)
        if found is None:
            raise NotRecorded(f"it would carry out the effect '{name}', of which there is no record")
        return found

    async def recorded(self, name: str, fn: Callable[..., Any]) -> Claim | None:
        """The next effect called `name`, None if it was not committed. `fn`: see `Claim`."""
        ordinal = self._counted.get(name, 0)
        row = self.effects.get((name, ordinal))
        if row is None or not row.committed:
            return None
        self._counted[name] = ordinal + 1
        return await super().claim(name, fn, False, True)


class Activity(NamedTuple):
    """A stored activation: `frame` stands where it is due, with its state and overlay; `header`: of that row; `after`:
    rows that may be the one of its end, if it has ended, the likeliest first."""

    frame: Frame
    position: int
    header: Header
    after: tuple[Header, ...]

    @property
    def id(self) -> str:
        """The activation's id."""
        return self.frame.activation_id(self.position)

    @property
    def node(self) -> NodeDef:
        """Its node."""
        return self.frame.graph.defs[self.frame.marking.frontier[self.position].node]

    @property
    def origin(self) -> Origin:
        """Where it started from."""
        return self.frame.origin(self.position)

    @property
    def values(self) -> dict[str, Any]:
        """What it sees."""
        return self.frame.given(self.frame.marking.frontier[self.position])

    @property
    def state(self) -> Any:
        """The same, as the declared class."""
        return self.frame.graph.schema.view(self.values)

    async def context(self, invocation: Invocation | None = None) -> Looking:
        """A context for looking. `invocation`: for which the node acted, if it acted for one."""
        frame = self.frame
        assert frame.store is not None
        frame.context = None if invocation is None else Scope(invocation, Log())
        effects = await frame.store.effects(frame.lineage, frame.namespace, self.origin.base)
        return Looking(frame, self.position, effects, self.header.created_at)


async def activity_at(frames: Frames, checkpoint: str | int | None, node: str, *, branch: str = "") -> Activity:
    """The activation of a node that is due at a checkpoint (None: the newest), else the last one that ended before it.

    `node`: its id, or that of an activation (`ask#3`), which may have ended any time before; `branch`: needed where
    several of it are due side by side. Raises CheckpointNotFound, and UsageError for a node that isn't there or one of
    which several are due.
    """
    name = frames.named(node)
    header, here = await frames.at(checkpoint)
    if (position := _due(here, node, name, branch)) is not None:
        return Activity(here, position, header, tuple(frames.ends_after(header, name)))
    for ended in frames.back_from(header):
        if name not in ended.nodes or ended.parent not in frames.headers:
            continue
        before = await frames.load(ended.parent)
        if before is not None and (position := _due(before, node, name, branch)) is not None:
            return Activity(before, position, frames.headers[before.seq], (ended,))
    on = f" on branch '{branch}'" if branch else ""
    raise CheckpointNotFound(
        f"'{node}' is not due{on} at checkpoint '{header.id}', and no row before it says that it ended: it has not run "
        f"by then, its rows were pruned, or several steps are in one row"
    )


def _due(frame: Frame, node: str, name: str, branch: str) -> int | None:
    """The place of the activation that is meant in the frontier of a frame, which is then as the activation saw it;
    None if it isn't there. Raises UsageError if several are meant."""
    frontier, index = frame.marking.frontier, frame.graph.index[name]
    found = [
        place
        for place, activation in enumerate(frontier)
        if activation.node == index
        and (not branch or text_of(activation.branch) == branch)
        and (node == name or frame.activation_id(place) == node)
    ]
    if not found:
        return None
    if len({text_of(frontier[place].branch) for place in found}) > 1:
        branches = ", ".join(f"'{text_of(frontier[place].branch)}'" for place in found)
        raise UsageError(
            f"node '{name}' is due {len(found)} times at this checkpoint: say branch=..., one of {branches}"
        )
    place = found[0]
    origin = frame.origin(place)
    frame.values = frame.inputs.get(origin, frame.values)
    return place
