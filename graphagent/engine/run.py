"""One root run from lease to result: open the lineage, drive the frame, close in an orderly way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.lowlevel import current_token

from graphagent.checkpoint.store import Signal
from graphagent.engine.endings import end
from graphagent.engine.frame import Frame, Tree
from graphagent.engine.persist import save_rest
from graphagent.engine.plan import Stop, pause_question
from graphagent.engine.result import RunResult, Status, public
from graphagent.errors import CheckpointError, GraphAgentError, LeaseLost
from graphagent.ids import checkpoint_id

Drive = Callable[[Frame], Awaitable[Stop]]
_STATUS: dict[str, Status] = {
    "completed": "completed",
    "stalled": "stalled",
    "cancelled": "cancelled",
    "limit": "limit_reached",
    "asked": "interrupted",
    "failed": "failed",
}


@dataclass(slots=True)
class Handle:
    """A run that is going on in this process, as others reach it."""

    tree: Tree
    scope: anyio.CancelScope
    soon: Callable[[Callable[[], None]], object] | None = None  # has the event loop call it, from whatever thread
    waiters: list[anyio.Event] = field(default_factory=list)

    def cancel(self) -> None:
        """End the run as cancelled."""
        self.tree.stop = "cancel"
        self.tree.cancelled = True
        self.scope.cancel()

    def pause(self, forced: bool) -> None:
        """Stop before the next step; forced: now, dropping what has not finished."""
        self.tree.stop = "forced" if forced else "pause"
        if forced:
            self.tree.cancelled = True
            self.scope.cancel()

    def on_signal(self, signal: Signal) -> None:
        """What the store says about the lease, from whatever thread; its thread is not made to wait."""
        self.tree.lost = self.tree.lost or signal == "lost"
        if self.soon is not None:
            self.soon(self.cancel)

    def over(self) -> None:
        """Wake those who wait for the end."""
        for waiter in self.waiters:
            waiter.set()


def new_handle(tree: Tree) -> Handle:
    """A handle for a run that is about to begin on this event loop."""
    soon = None
    if tree.durable:
        loop: Any = current_token().native_token  # of trio or of asyncio
        soon = getattr(loop, "run_sync_soon", None) or loop.call_soon_threadsafe
    handle = Handle(tree, anyio.CancelScope(), soon)
    if tree.emitter is not None:
        tree.emitter.stop_run = handle.cancel
    return handle


async def drive_root(
    frame: Frame, handle: Handle | None, drive: Drive, first: Callable[[], Awaitable[None]] | None = None
) -> RunResult:
    """Drive a root frame to its end and say how it ended. Raises only what the caller's own cancellation raises.

    Without a handle nobody else can reach the run. `first`: the row that the run begins with is written.
    """
    tree = frame.tree
    stop: Stop | None = None
    try:
        if handle is None:
            stop = await drive(frame)
        else:
            with handle.scope:
                if first is not None:
                    await first()
                stop = await drive(frame)
        if stop is None or (tree.lost and stop.kind != "completed"):
            stop = await _cut_short(frame)
    except CheckpointError as error:
        stop = Stop("failed", str(error), error=error)
    except BaseException:
        tree.cancelled = True
        with anyio.CancelScope(shield=True):
            await _leave(frame, None)
        raise
    if tree.lease is not None and not (tree.released and tree.durable and stop.kind != "cancelled"):
        with anyio.CancelScope(shield=True):
            await _leave(frame, stop)
    if tree.emitter is not None:
        await tree.emitter.ended(frame, stop)
    return result_of(frame, stop)


async def _cut_short(frame: Frame) -> Stop:
    """The run was cancelled from outside, or paused by force; what had finished is kept."""
    frame.held = {position: outcome for position, outcome in frame.held.items() if outcome.done}
    if frame.tree.lost:
        error = LeaseLost(f"the lease of lineage '{frame.lineage}' was taken over; this run wrote nothing since")
        return Stop("failed", str(error), error=error)
    if frame.tree.stop == "forced":
        return await end(frame, Stop("asked", "pause", (pause_question(frame),)))
    return Stop("cancelled", "cancelled")


async def _leave(frame: Frame, stop: Stop | None) -> None:
    """Write what durability `exit` still owes, and give the lineage back."""
    tree = frame.tree
    if tree.lease is None or tree.store is None:
        return
    try:
        if stop is None or stop.kind == "cancelled":
            await save_rest(frame)
        if not tree.durable and (stop is None or stop.kind != "asked"):
            await tree.store.delete(tree.lineage)
    except GraphAgentError as error:
        tree.warnings.append(f"the last steps could not be written: {error}")
    finally:
        await give_back(tree)


async def give_back(tree: Tree) -> None:
    """Give the lineage back, once. If that fails the lease runs out by itself, so it is only a warning: the caller is
    to hear how the run ended."""
    if tree.lease is None or tree.store is None or tree.released:
        return
    tree.released = True
    try:
        with anyio.CancelScope(shield=True):
            await tree.store.release(tree.lease)
    except CheckpointError as error:
        tree.warnings.append(f"lineage '{tree.lineage}' could not be given back, its lease has to run out: {error}")


def result_of(frame: Frame, stop: Stop) -> RunResult:
    """The result as the caller sees it."""
    tree = frame.tree
    interrupts: tuple[Any, ...] = ()
    if stop.kind == "asked":
        asked = [q for q in frame.questions if not q.answered]
        interrupts = tuple(public(question) for question in asked)
    saved = tree.durable and frame.head is not None
    return RunResult(
        _STATUS[stop.kind],
        stop.reason,
        frame.graph.schema.view(frame.values),
        interrupts,
        checkpoint_id(tree.lineage, frame.namespace, frame.head) if saved and frame.head is not None else None,
        frame.steps,
        stop.error,
        tree.meter.usage,
        (*tree.warnings, *tree.meter.warnings()),
        tree.lineage,
        tree.run_id,
        stop.landed,
    )
