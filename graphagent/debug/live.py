"""The gate at which a debugged run stands between its steps.

The run's tasks call it as their `Control`, the session lets them go on. Every frame that comes to a step asks here
whether it may take it. While one is shown, those that arrive wait behind it in the order in which they came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from graphagent.checkpoint.record import Row
from graphagent.debug.breakpoints import Breakpoint, Breakpoints
from graphagent.debug.deadlines import Deadlines
from graphagent.debug.moment import Moment, moment_now
from graphagent.debug.signal import Signal
from graphagent.debug.stored import Stored, changed_by, is_within, moment_of_row
from graphagent.engine.frame import Frame, Step, Tree
from graphagent.engine.merge import Merged
from graphagent.engine.outcome import Outcome
from graphagent.engine.plan import Stop, pause_question
from graphagent.engine.result import RunResult
from graphagent.errors import GraphAgentError

Pace = Literal["step", "next", "out", "run", "until"]


@dataclass(frozen=True, slots=True)
class Going:
    """How far a run goes. `frame`: what `next` and `out` are relative to; `node`: where `until` stops."""

    pace: Pace
    frame: str = ""
    node: str = ""


@dataclass(slots=True)
class Arrival:
    """A frame that stands at the gate. `stop`: it has ended. `starting`: places of what is about to start."""

    frame: Frame
    moment: Moment
    starting: tuple[int, ...] = ()
    stop: Stop | None = None
    go: Signal = field(default_factory=Signal)
    hit: tuple[Breakpoint, ...] = ()

    @property
    def namespace(self) -> str:
        """The frame's."""
        return self.frame.namespace


@dataclass(slots=True)
class _Seen:
    """What is known of a frame: its newest row, the step that this one belongs to, and the values then."""

    row: Row | None = None
    ran: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


class Gate:
    """Holds the frames of one lineage; those of others pass."""

    def __init__(self, lineage: str, root: str, breakpoints: Breakpoints, stored: Stored) -> None:
        self.lineage = lineage
        self.root = root
        self.breakpoints = breakpoints
        self.stored = stored
        self.going = Going("step")
        self.shown: Arrival | None = None
        self.waiting: list[Arrival] = []
        self.passing: set[str] = set()  # frames whose next arrival is where the cursor stood already
        self.over: set[str] = set()
        self.visits: Counter[str] = Counter()  # of this run
        self.counted: Counter[str] | None = None  # of what was stored before it, once that is wanted
        self.ending: tuple[Frame, Stop] | None = None
        self.leaving = False
        self.deadlines = Deadlines()
        self._changed = Signal()
        self._seen: dict[str, _Seen] = {}
        self._trees: dict[int, Tree] = {}

    # -- called by the engine --------------------------------------------------------------------

    async def before(self, frame: Frame, step: Step) -> Stop | None:
        """A frame is about to take a step: it waits if it is to be shown, or behind one that is."""
        if frame.lineage != self.lineage:
            return None
        self._trees[id(frame.tree)] = frame.tree
        if self.leaving:
            return _pause(frame)
        namespace = frame.namespace
        self.over.discard(namespace)
        if namespace in self.passing:
            self.passing.remove(namespace)
            self._look(frame)
            return None
        if self.shown is None and not self.waiting and not self._may_stop(namespace):
            self._look(frame)
            return None
        moment = self._told(frame) or await self._read(frame)
        await self._stand(Arrival(frame, moment, step.todo))
        self._look(frame)
        return _pause(frame) if self.leaving else None

    def wrote(self, frame: Frame, rows: Sequence[Row]) -> None:
        """Rows of a frame have been written."""
        if frame.lineage == self.lineage:
            seen = self._seen.setdefault(frame.namespace, _Seen())
            seen.row = rows[-1]
            if rows[0].source != "step":
                seen.ran = seen.changed = ()

    def after(self, frame: Frame, nodes: tuple[str, ...], merged: Merged, outcomes: Mapping[int, Outcome]) -> None:
        """A step has been written."""
        if frame.lineage != self.lineage:
            return
        seen = self._seen.setdefault(frame.namespace, _Seen())
        seen.ran = nodes
        seen.changed = changed_by(frame.graph, seen.row, merged, seen.values)
        seen.values = frame.values
        for node in nodes:
            self.visits[node] += 1

    async def ended(self, frame: Frame, stop: Stop) -> None:
        """A frame has ended. That of a child is shown where it came to an end of its own."""
        if frame.lineage != self.lineage:
            return
        if frame.namespace == self.root:
            self.ending = (frame, stop)
            return
        self.over.add(frame.namespace)
        stands = not self.leaving and stop.kind in ("completed", "failed", "stalled", "limit")
        if stands and (self.shown is not None or self.waiting or self._may_stop(frame.namespace)):
            await self._stand(Arrival(frame, self._told(frame) or await self._read(frame), (), stop))
        self._settle()

    def timing(self, scope: anyio.CancelScope) -> AbstractContextManager[None]:
        """While the block runs the deadline of the scope moves on by the time that the run is held."""
        return self.deadlines.of(scope)

    def model_asked(self, frame: Frame, position: int, request: Any) -> None:
        """Nothing is done about it here."""

    # -- called by the session -------------------------------------------------------------------

    def go(self, going: Going) -> None:
        """Let the frame that is shown go on, and those that wait where they may."""
        self.going = going
        self._changed.clear()
        if self.shown is not None:
            shown, self.shown = self.shown, None
            shown.go.set()
        self._settle()
        if self.shown is None and not self.waiting:
            self.deadlines.go_on(self._trees.values())

    async def wait(self) -> None:
        """Until a frame is shown, or the run is over."""
        await self._changed.wait()

    def finished(self) -> None:
        """The run is over."""
        self._changed.set()

    def leave(self) -> None:
        """Let everything go on that stands here, to a pause."""
        self.leaving = True
        for tree in self._trees.values():
            tree.stop = tree.stop or "pause"
        for arrival in (*([self.shown] if self.shown else ()), *self.waiting):
            arrival.go.set()
        self.shown, self.waiting = None, []
        self._changed.clear()
        self.deadlines.go_on(self._trees.values())

    # -- inside ----------------------------------------------------------------------------------

    def _may_stop(self, namespace: str) -> bool:
        """Whether an arrival of a frame could be shown; looked at without its moment."""
        going = self.going
        if going.pace in ("step", "until") or self.breakpoints.active:
            return True
        if going.pace == "run":
            return False
        if going.pace == "next" and (namespace == going.frame or going.frame in self.over):
            return True
        return not is_within(namespace, going.frame)

    async def _stand(self, arrival: Arrival) -> None:
        if self.leaving:  # while its row was being read
            return
        if self.shown is None and self._verdict(arrival) == "show":
            self.shown = arrival
            self._changed.set()
        else:
            self.waiting.append(arrival)
            self._settle()
        if not arrival.go.is_set():
            self.deadlines.hold(self._trees.values())
            try:
                await arrival.go.wait()
            finally:
                self._gone(arrival)

    def _gone(self, arrival: Arrival) -> None:
        """One that stood here goes on, or was cancelled."""
        if arrival in self.waiting:
            self.waiting.remove(arrival)
        if self.shown is arrival:
            self.shown = None
            self._settle()
        if self.shown is None and not self.waiting:
            self.deadlines.go_on(self._trees.values())

    def _settle(self) -> None:
        """Show the first of those that wait that is to be shown, and let those pass that are in nobody's way."""
        if not self.waiting or self.shown is not None or self.leaving:
            return
        stay: list[Arrival] = []
        for place, arrival in enumerate(self.waiting):
            verdict = self._verdict(arrival)
            if verdict == "show":
                self.waiting = [*stay, *self.waiting[place + 1 :]]
                self.shown = arrival
                self._changed.set()
                return
            if verdict == "wait":
                stay.append(arrival)
            else:
                arrival.go.set()
        self.waiting = stay

    def _verdict(self, arrival: Arrival) -> Literal["show", "pass", "wait"]:
        if arrival.hit or (found := self._hits(arrival)):
            arrival.hit = arrival.hit or found
            return "show"
        going, here = self.going, arrival.namespace
        if going.pace == "step":
            return "show"
        if going.pace == "until":
            nodes = {one.node for one in arrival.moment.coming if one.position in arrival.starting}
            return "show" if going.node in nodes else "pass"
        if going.pace == "next":
            if here == going.frame or going.frame in self.over:
                return "show"
            return "pass" if is_within(here, going.frame) else "wait"
        if going.pace == "out" and going.frame in self.over and here != going.frame and is_within(going.frame, here):
            return "show"
        return "pass"

    def _hits(self, arrival: Arrival) -> tuple[Breakpoint, ...]:
        if not self.breakpoints.active:
            return ()
        frame = arrival.frame
        return self.breakpoints.hits(
            arrival.moment,
            frame.graph.schema.view(frame.values),
            frame.graph,
            visits=self._visits(),
            starting=arrival.starting,
        )

    async def moment_at_end(self, result: RunResult) -> Moment | None:
        """Where the run has ended: at its newest row, or where its frame stood if there is none; None if it never came
        to a frame."""
        with suppress(GraphAgentError):
            return await self.stored.moment(self.root, None)
        return None if self.ending is None else moment_now(self.ending[0], "end" if result.ok else "step")

    def hits_at_end(self, moment: Moment) -> tuple[Breakpoint, ...]:
        """The breakpoints that the end of the run hits."""
        if self.ending is None:
            return ()
        frame = self.ending[0]
        view = frame.graph.schema.view(frame.values)
        return self.breakpoints.hits(moment, view, frame.graph, visits=self._visits(), starting=())

    def _visits(self) -> Counter[str]:
        return self.visits if self.counted is None else self.visits + self.counted

    def _look(self, frame: Frame) -> None:
        self._seen.setdefault(frame.namespace, _Seen()).values = frame.values

    def _told(self, frame: Frame) -> Moment | None:
        """Where a frame stands, as its newest row will tell it later; None if only that row can tell."""
        seen = self._seen.setdefault(frame.namespace, _Seen())
        if frame.head != frame.seq:  # its last steps are in no row
            return moment_now(frame, "step" if seen.ran else "input", seen.ran, seen.changed)
        row = seen.row
        if row is None or row.seq != frame.seq or (row.parent is not None and row.source not in ("step", "end")):
            return None
        return moment_of_row(frame, row, seen.ran, seen.changed)

    async def _read(self, frame: Frame) -> Moment:
        return await self.stored.moment(frame.namespace, frame.seq, frame.graph)


def _pause(frame: Frame) -> Stop:
    return Stop("asked", "pause", (pause_question(frame),))
