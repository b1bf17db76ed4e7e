"""Events of a run for whoever listens. Nothing is built when nobody does.

Order is deterministic: within a step, starts and ends come in graph order, after the checkpoint. Text and custom
events go out live, in the order of each activation. A slow reader holds the run up; nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio

from graphagent.checkpoint.record import Row
from graphagent.engine.channel import Channel
from graphagent.engine.frame import Frame, Step, activation_text
from graphagent.engine.merge import Merged
from graphagent.engine.outcome import Outcome
from graphagent.engine.plan import Stop
from graphagent.engine.result import RunResult
from graphagent.errors import UsageError, alternatives
from graphagent.events import MODES, RunEvent
from graphagent.graph.marking import text_of
from graphagent.ids import checkpoint_id

_new: Any = tuple.__new__  # half of what RunEvent(...) costs, which is most of what an event does

Place = tuple[int, str, str, str]
"""The last fields of an event: step, then node, branch and activation, empty where there is none."""
Places = Sequence[Place]
LoneEnd = tuple[Merged, dict[str, Any], str]
"""What came of a lone activation that ended well at its first attempt: its step merged, its checked update (which goes
out with the event as it is), its node."""


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
        self._tasks, self._updates, self._debug = (mode in modes for mode in ("tasks", "updates", "debug"))
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
            waits = self._send([self._event(0, mode, kind, frame, data, place)])
            if waits is not None:
                await waits

    def _event(self, ahead: int, mode: str, kind: str, frame: Frame, data: Any, place: Place) -> RunEvent:
        """The event that is sent when `ahead` others have been."""
        tree, number = frame.tree, self._sent + ahead
        event: RunEvent = _new(RunEvent, (number, mode, kind, tree.lineage, tree.run_id, frame.namespace, data, *place))
        return event

    def _send(self, events: list[RunEvent]) -> Awaitable[None] | None:
        """Send events at once if there is room for all, else return what has to be awaited for that. They have been
        made with the next numbers, and nothing was awaited since."""
        channel = self._channel
        if self.closed or len(channel.items) + len(events) > channel.size:
            return self._send_slowly(events)
        if events:
            self._sent += len(events)
            channel.add(events)
        return None

    async def _send_slowly(self, events: list[RunEvent]) -> None:
        channel = self._channel
        while events:
            if (len(channel.items) >= channel.size or self.closed) and not await channel.room():
                return
            # numbered once there is room, with nothing awaited in between: an attempt that is cut off leaves no gap
            free = channel.size - len(channel.items)
            channel.add(event._replace(seq=self._sent + i) for i, event in enumerate(events[:free]))
            self._sent += len(events[:free])
            events = events[free:]

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

    def step_begins(self, frame: Frame, step: Step, places: Places) -> Awaitable[None] | None:
        """The activations that start now. Returns what has to be awaited while the reader is behind."""
        events: list[RunEvent] = []
        if self._tasks:
            events += [self._event(i, "tasks", "start", frame, None, places[p]) for i, p in enumerate(step.todo)]
        if self._debug:
            data = {"nodes": list(step.nodes)}
            events.append(self._event(len(events), "debug", "plan", frame, data, (frame.step + 1, "", "", "")))
        return self._send(events)

    def step_ended(
        self, frame: Frame, merged: Merged, outcomes: Mapping[int, Outcome], places: Places
    ) -> Awaitable[None] | None:
        """The ends and updates of a step that has been written. The frame has moved on already. Returns what has to be
        awaited while the reader is behind."""
        events: list[RunEvent] = []
        for position in sorted(outcomes):
            outcome, place = outcomes[position], places[position]
            if self._tasks:
                data: Any = {"cached": outcome.cached, "attempts": outcome.attempts, "error": outcome.error}
                events.append(self._event(len(events), "tasks", "end", frame, data, place))
            if self._updates:
                events.append(self._event(len(events), "updates", "update", frame, shown(frame, outcome.update), place))
        if self._debug:
            data = {"changed": changed(merged)}
            events.append(self._event(len(events), "debug", "merged", frame, data, (frame.step, "", "", "")))
        return self._send(events)

    def lone_turn(self, frame: Frame, ended: LoneEnd | None, begins: str | None) -> Awaitable[None] | None:
        """From one lone activation to the next, or to none: the events of `step_ended` and of `step_begins`, made with
        few calls, since they are most of what such a step costs. The frame has moved on already."""
        tree, space, step, n = frame.tree, frame.namespace, frame.step, self._sent
        lineage, run = tree.lineage, tree.run_id
        events: list[RunEvent] = []
        add, event = events.append, RunEvent
        if ended is not None:
            merged, update, node = ended
            name = f"{node}#{step}"
            if self._tasks:
                data: Any = {"cached": False, "attempts": 1, "error": None}
                add(_new(event, (n, "tasks", "end", lineage, run, space, data, step, node, "", name)))
                n += 1
            if self._updates:
                data = shown(frame, update) if frame.graph.schema.secret else update
                add(_new(event, (n, "updates", "update", lineage, run, space, data, step, node, "", name)))
                n += 1
            if self._debug:
                data = {"changed": changed(merged)}
                add(_new(event, (n, "debug", "merged", lineage, run, space, data, step, "", "", "")))
                n += 1
        if begins is not None:
            visit = step + 1
            if self._tasks:
                name = f"{begins}#{visit}"
                add(_new(event, (n, "tasks", "start", lineage, run, space, None, visit, begins, "", name)))
                n += 1
            if self._debug:
                data = {"nodes": [begins]}
                add(_new(event, (n, "debug", "plan", lineage, run, space, data, visit, "", "", "")))
        return self._send(events)

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
                await self.emit("checkpoints", row.source, frame, data, (row.step, "", "", ""))

    async def ended(self, frame: Frame, stop: Stop) -> None:
        """The end of the root run: one event in mode `updates` and `debug`; a failure goes out in every mode."""
        data = {"status": stop.kind, "reason": stop.reason}
        if stop.kind == "failed":
            await self.emit("error", "failed", frame, data, (frame.step, "", "", ""))
        else:
            await self.emit("debug", "ended", frame, data, (frame.step, "", "", ""))


def shown(frame: Frame, update: Mapping[str, Any]) -> dict[str, Any]:
    """An update as events show it: without secrets."""
    secret = frame.graph.schema.secret
    return {name: "**********" if name in secret else value for name, value in update.items()} if secret else {**update}


def changed(merged: Merged) -> list[str]:
    """The names of the fields that a step changed."""
    values, patches, lists = merged.values, merged.patches, merged.lists
    return sorted([*values, *patches, *lists] if patches or lists else values)


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
            if channel.waiting is not None:
                channel.taken()
            return event
        except anyio.EndOfStream:
            if self.error is not None:
                raise self.error from None
            raise StopAsyncIteration from None
