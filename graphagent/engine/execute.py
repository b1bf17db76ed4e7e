"""Run the activations of a step side by side, each on the same state, and collect their outcomes by position."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import anyio

from graphagent.engine.attempt import run_activation
from graphagent.engine.frame import Frame
from graphagent.engine.persist import keep
from graphagent.errors import NodeTimeout

Worker = Callable[[], Coroutine[Any, Any, None]]


async def execute(frame: Frame, todo: Sequence[int]) -> None:
    """Put the outcome of every position of `todo` into `frame.held`.

    A lone activation is awaited directly. With more, each finished one is stored before the others have ended; when
    the run is cancelled, what had finished stays in `held`. With `on_failure="cancel"` a failure cancels the others,
    which then have no outcome.
    """
    if not todo:  # all of the step had ended in an earlier run
        return
    timeout = frame.setup.limits.step_timeout
    if timeout is None:
        if len(todo) == 1:
            frame.held[todo[0]] = await run_activation(frame, todo[0])
        else:
            await _Wide(frame, todo).run()
        return
    with anyio.move_on_after(timeout) as scope:
        await _Wide(frame, todo).run()
    if scope.cancelled_caught:
        late = [frame.activation_id(position) for position in todo if position not in frame.held]
        raise NodeTimeout(
            f"step {frame.step + 1} took longer than its {timeout} s (limits.step_timeout); still running: "
            f"{', '.join(late)}",
            node=", ".join(late),
        )


async def _within(scope: anyio.CancelScope, worker: Worker) -> None:
    """The worker in a scope by which it is cancelled. Cancelling its task would break through what a node shields, and
    leave its thread behind."""
    with scope:
        if not scope.cancel_called:
            await worker()


class _Wide:
    """A step with several activations."""

    def __init__(self, frame: Frame, todo: Sequence[int]) -> None:
        self.frame = frame
        self.open = len(todo)
        self.cut = False  # a failure or a cancellation ends it before all have ended
        self.finished: list[int] = []
        self.wake: Callable[[], object] = lambda: None
        self.stop: Callable[[], object] = lambda: None
        self.todo: Iterator[int] = iter(todo)
        calls, frontier = frame.setup.calls, frame.marking.frontier
        self.plain = all(calls[frontier[position].node].plain for position in todo)
        self.saves = frame.store is not None and frame.setup.save_each_step
        bound = frame.setup.limits.max_concurrency
        self.pullers = bound if bound is not None and 0 < bound < len(todo) else 0

    async def run(self) -> None:
        """All activations, under asyncio with plain tasks, which cost a sixth of a task group's."""
        workers: list[Worker] = (
            [self._pull] * self.pullers
            if self.pullers
            else [functools.partial(self._one, position) for position in self.todo]
        )
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            await self._run_anyio(workers)
        else:
            await self._run_asyncio(loop, workers)
        if self.finished:
            await self._save()

    async def _run_asyncio(self, loop: asyncio.AbstractEventLoop, workers: Sequence[Worker]) -> None:
        signal = loop.create_future()

        def wake() -> None:
            if not signal.done():
                signal.set_result(None)

        self.wake = wake
        cancels: list[Callable[[], object]] = []
        tasks = [self._task(loop, worker, cancels) for worker in workers]

        def stop() -> None:
            for cancel in cancels:
                cancel()
            wake()

        self.stop = stop
        whole = False
        try:
            while self.open > 0:
                await signal
                if self.open <= 0:
                    break
                signal = loop.create_future()
                if self.saves and self.finished:
                    await self._save()
            whole = not self.cut
        finally:
            if not whole:
                await self._wind_up(tasks)
        if whole:
            return
        for task in tasks:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                raise error

    async def _wind_up(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """The step was cut short: cancel what still runs, wait for its end, and keep what had finished."""
        unfinished = [task for task in tasks if not task.done()]
        if unfinished:
            self.stop()
            with anyio.CancelScope(shield=True):
                await asyncio.wait(unfinished)
                if self.saves and self.finished:
                    await self._save()

    def _task(
        self, loop: asyncio.AbstractEventLoop, worker: Worker, cancels: list[Callable[[], object]]
    ) -> asyncio.Task[None]:
        """A task for one worker, and how to cancel it: a plain node as asyncio does, which costs nothing beforehand;
        anything else through a scope of its own."""
        if self.plain:
            task = loop.create_task(worker())
            cancels.append(task.cancel)
        else:
            scope = anyio.CancelScope()
            task = loop.create_task(_within(scope, worker))
            cancels.append(scope.cancel)
        return task

    async def _run_anyio(self, workers: Sequence[Worker]) -> None:
        async with anyio.create_task_group() as group:
            self.stop = group.cancel_scope.cancel
            for worker in workers:
                group.start_soon(worker)

    async def _one(self, position: int) -> None:
        try:
            outcome = await run_activation(self.frame, position)
        except BaseException:
            self.cut = True
            self.open = 0  # it has no outcome, so the step can't go on
            self.wake()
            raise
        self.frame.held[position] = outcome
        self.finished.append(position)
        self.open -= 1
        if outcome.failure is not None and self.frame.setup.cancel_on_failure:
            self.cut = True
            self.open = 0
            self.stop()
        if self.saves or self.open <= 0:
            self.wake()

    async def _pull(self) -> None:
        for position in self.todo:
            await self._one(position)

    async def _save(self) -> None:
        batch, self.finished = self.finished, []
        if self.saves:
            await keep(self.frame, batch)
