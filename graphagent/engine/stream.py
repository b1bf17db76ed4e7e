"""Events of a run for whoever listens. Nothing is built when nobody does.

Order is deterministic: within a step, starts and ends come in graph order, after the checkpoint. Text and custom
events go out live, in the order of each activation. A slow reader holds the run up; nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import anyio

from graphagent.checkpoint.record import Row
from graphagent.engine.channel import Channel
from graphagent.engine.frame import Frame, Step, activation_text
from graphagent.engine.outcome import Outcome
from graphagent.engine.plan import Stop
from graphagent.engine.result import RunResult
from graphagent.errors import UsageError, alternatives
from graphagent.events import MODES, RunEvent
from graphagent.graph.marking import text_of
from graphagent.ids import checkpoint_id

if TYPE_CHECKING:
    from graphagent.engine.step import Result


Place = tuple[int] | tuple[int, str, str, str]
"""The last fields of an event: step, then node, branch and activation where there is one."""
Places = Sequence[Place]
Told = tuple[str, str, Any, Place]
"""An event before it is numbered: mode, kind, data, place."""


def wanted_modes(modes: Iterable[str]) -> frozenset[str]:
    """The modes to send, given those that were asked for. Raises UsageError for one that doesn't exist."""
    wanted = set(modes)
    for mode in sorted(wanted - set(MODES)):
        raise UsageError(f"there is no stream mode '{mode}': {alternatives(mode, MODES)}")
    return frozenset(wanted | {"tasks", "checkpoints"} if "debug" in wanted else wanted)


class Emitter:
    """Turns what happens into events and sends those that are wanted."""

    def __init__(self, modes: frozenset[str], channel: Channel[RunEvent]) -> None:
        self._modes = modes
        self._channel = channel
        self._sent = 0
        self.closed = False
        self.stop_run: Callable[[], object] = lambda: None

    def leave(self) -> None:
        """The reader has left: nothing is sent any more, and the run is cancelled."""
        self.closed = True
        self._channel.leave()
        self.stop_run()

    def wants(self, mode: str) -> bool:
        """True if events of that mode are listened to."""
        return mode in self._modes and not self.closed

    async def emit(self, mode: str, kind: str, frame: Frame, data: Any, place: Place) -> None:
        """Send one event, waiting while the reader is behind."""
        if mode in self._modes or mode == "error":
            await self._send(frame, [(mode, kind, data, place)])

    async def _send(self, frame: Frame, told: list[Told]) -> None:
        channel, tree, namespace = self._channel, frame.tree, frame.namespace
        items, size = channel.items, channel.size
        for mode, kind, data, place in told:
            if (len(items) >= size or self.closed) and not await channel.room():
                return
            # numbered once there is room, with nothing awaited in between: an attempt that is cut off leaves no gap
            number, self._sent = self._sent, self._sent + 1
            channel.add(RunEvent(number, cast(Any, mode), kind, tree.lineage, tree.run_id, namespace, data, *place))

    async def node_event(self, mode: str, kind: str, frame: Frame, position: int, payload: Any) -> None:
        """An event that a node itself sends."""
        await self.emit(mode, kind, frame, payload, place_of(frame, position))

    async def attempt_failed(
        self, frame: Frame, position: int, error: Exception, attempt: int, delay: float | None
    ) -> None:
        """A failed attempt, whether or not another follows."""
        data = {
            "error": f"{type(error).__name__}: {error}",
            "attempt": attempt,
            "retrying": delay is not None,
            "next_delay": delay,
        }
        await self.emit("tasks", "error", frame, data, place_of(frame, position))

    async def step_begins(self, frame: Frame, step: Step, places: Places) -> None:
        """The activations that start now."""
        told: list[Told] = []
        if "tasks" in self._modes:
            told += [("tasks", "start", None, places[position]) for position in step.todo]
        if "debug" in self._modes:
            told.append(("debug", "plan", {"nodes": list(step.nodes)}, (frame.step + 1,)))
        await self._send(frame, told)

    async def step_ended(self, frame: Frame, result: Result, outcomes: Mapping[int, Outcome], places: Places) -> None:
        """The ends and updates of a step that has been written. The frame has moved on already."""
        told: list[Told] = []
        tasks, updates = "tasks" in self._modes, "updates" in self._modes
        for position in sorted(outcomes):
            outcome, place = outcomes[position], places[position]
            if tasks:
                data = {"cached": outcome.cached, "attempts": outcome.attempts, "error": outcome.error}
                told.append(("tasks", "end", data, place))
            if updates:
                told.append(("updates", "update", shown(frame, outcome.update), place))
        if "debug" in self._modes:
            merged = result.merged
            changed = sorted({*merged.values, *merged.patches, *merged.lists})
            told.append(("debug", "merged", {"changed": changed}, (frame.step,)))
        await self._send(frame, told)

    async def checkpoint(self, frame: Frame, rows: Iterable[Row]) -> None:
        """Rows that have been written."""
        if "checkpoints" in self._modes:
            for row in rows:
                data = {
                    "id": checkpoint_id(frame.lineage, frame.namespace, row.seq),
                    "source": row.source,
                    "nodes": list(row.nodes),
                    "interrupts": [q.id for q in row.questions if not q.answered],
                }
                await self.emit("checkpoints", row.source, frame, data, (row.step,))

    async def ended(self, frame: Frame, stop: Stop) -> None:
        """The end of the root run: one event in mode `updates` and `debug`; a failure goes out in every mode."""
        data = {"status": stop.kind, "reason": stop.reason}
        if stop.kind == "failed":
            await self.emit("error", "failed", frame, data, (frame.step,))
        else:
            await self.emit("debug", "ended", frame, data, (frame.step,))


def shown(frame: Frame, update: Mapping[str, Any]) -> dict[str, Any]:
    """An update as events show it: without secrets."""
    fields = frame.graph.schema.fields
    return {name: "**********" if fields[name].secret else value for name, value in update.items()}


def places_of(frame: Frame) -> Places:
    """Where each activation of the frontier is, for events that are sent after the frame has moved on."""
    return [place_of(frame, position) for position in range(len(frame.marking.frontier))]


def place_of(frame: Frame, position: int) -> Place:
    """Step, node, branch and activation of a place of the frontier."""
    activation = frame.marking.frontier[position]
    visit = frame.origin(position).visit
    node = frame.graph.names[activation.node]
    return visit, node, text_of(activation.branch), activation_text(frame.graph, activation, visit)


class EventStream:
    """The events of a run, to be read with `async for`; `result` is there after the last one."""

    def __init__(self, channel: Channel[RunEvent]) -> None:
        self._channel = channel
        self.result: RunResult | None = None
        self.error: Exception | None = None

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> RunEvent:
        channel = self._channel
        try:
            if not channel.items:
                return await channel.get()
            event = channel.items.popleft()
            channel.taken()
            return event
        except anyio.EndOfStream:
            if self.error is not None:
                raise self.error from None
            raise StopAsyncIteration from None
