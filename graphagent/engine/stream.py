"""Events of a run for whoever listens. Nothing is built when nobody does.

Order is deterministic: within a step, starts and ends come in graph order, after the checkpoint. Text and custom
events go out live, in the order of each activation. A slow reader holds the run up; nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from graphagent.checkpoint.record import Row
from graphagent.engine.frame import Frame, Step, activation_text
from graphagent.engine.outcome import Outcome
from graphagent.engine.plan import Stop
from graphagent.errors import UsageError, alternatives
from graphagent.events import MODES, RunEvent
from graphagent.graph.marking import text_of
from graphagent.ids import checkpoint_id

if TYPE_CHECKING:
    from graphagent.engine.step import Result


def wanted_modes(modes: Iterable[str]) -> frozenset[str]:
    """The modes to send, given those that were asked for. Raises UsageError for one that doesn't exist."""
    wanted = set(modes)
    for mode in sorted(wanted - set(MODES)):
        raise UsageError(f"there is no stream mode '{mode}': {alternatives(mode, MODES)}")
    return frozenset(wanted | {"tasks", "checkpoints"} if "debug" in wanted else wanted)


class Emitter:
    """Turns what happens into events and sends those that are wanted."""

    def __init__(self, modes: frozenset[str], send: MemoryObjectSendStream[RunEvent]) -> None:
        self._modes = modes
        self._send = send
        self.closed = False
        self.stop_run: Callable[[], object] = lambda: None

    def leave(self) -> None:
        """The reader has left: nothing is sent any more, and the run is cancelled."""
        self.closed = True
        self.stop_run()

    def wants(self, mode: str) -> bool:
        """True if events of that mode are listened to."""
        return mode in self._modes and not self.closed

    async def emit(self, mode: str, kind: str, frame: Frame, data: Any = None, **place: Any) -> None:
        """Send one event, waiting while the reader is behind."""
        if self.closed or (mode not in self._modes and mode != "error"):
            return
        tree = frame.tree
        event = RunEvent(0, cast(Any, mode), kind, tree.lineage, tree.run_id, frame.namespace, data=data, **place)
        with suppress(anyio.BrokenResourceError):  # the reader has left meanwhile
            await self._send.send(event)

    async def node_event(self, mode: str, kind: str, frame: Frame, position: int, payload: Any) -> None:
        """An event that a node itself sends."""
        await self.emit(mode, kind, frame, payload, **_place(frame, position))

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
        await self.emit("tasks", "error", frame, data, **_place(frame, position))

    async def step_begins(self, frame: Frame, step: Step) -> None:
        """The activations that start now."""
        if "tasks" in self._modes:
            for position in step.todo:
                await self.emit("tasks", "start", frame, None, **_place(frame, position))
        if "debug" in self._modes:
            await self.emit("debug", "plan", frame, {"nodes": list(step.nodes)}, step=frame.step + 1)

    async def step_ended(
        self,
        frame: Frame,
        step: Step,
        result: Result,
        outcomes: Mapping[int, Outcome],
        places: Mapping[int, Mapping[str, Any]],
    ) -> None:
        """The ends and updates of a step that has been written. The frame has moved on already."""
        schema = frame.graph.schema
        for position in sorted(outcomes):
            outcome = outcomes[position]
            place = places[position]
            if "tasks" in self._modes:
                data = {"cached": outcome.cached, "attempts": outcome.attempts, "error": outcome.error}
                await self.emit("tasks", "end", frame, data, **place)
            if "updates" in self._modes:
                update = {k: "**********" if schema.fields[k].secret else v for k, v in outcome.update.items()}
                await self.emit("updates", "update", frame, update, **place)
        if "debug" in self._modes:
            changed = sorted({*result.merged.values, *result.merged.patches, *result.merged.lists})
            await self.emit("debug", "merged", frame, {"changed": changed}, step=frame.step)

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
                await self.emit("checkpoints", row.source, frame, data, step=row.step)

    async def ended(self, frame: Frame, stop: Stop) -> None:
        """The end of the root run: one event in mode `updates` and `debug`; a failure goes out in every mode."""
        data = {"status": stop.kind, "reason": stop.reason}
        if stop.kind == "failed":
            await self.emit("error", "failed", frame, data, step=frame.step)
        else:
            await self.emit("debug", "ended", frame, data, step=frame.step)


def places_of(frame: Frame) -> dict[int, dict[str, Any]]:
    """Where each activation of the frontier is, for events that are sent after the frame has moved on."""
    return {position: _place(frame, position) for position in range(len(frame.marking.frontier))}


def _place(frame: Frame, position: int) -> dict[str, Any]:
    activation = frame.marking.frontier[position]
    visit = frame.origin(position).visit
    return {
        "step": visit,
        "node": frame.graph.names[activation.node],
        "branch": text_of(activation.branch),
        "activation": activation_text(frame.graph, activation, visit),
    }
