"""Run the activations of a step side by side, each on the same state, and collect their outcomes by position."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any

import anyio

from graphagent.engine.attempt import run_activation
from graphagent.engine.control import timed
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
    if timeout is not None:
        with anyio.move_on_after(timeout) as scope, timed(frame.tree, scope):
            await _Wide(frame, todo).run()
        if scope.cancelled_caught:
            raise _too_long(frame, todo, timeout)
    elif len(todo) == 1:
        frame.held[todo[0]] = await run_activation(frame, todo[0])
    else:
        await _Wide(frame, todo).run()


def _too_long(frame: Frame, todo: Sequence[int], timeout: float) -> NodeTimeout:
    late = [frame.activation_id(position) for position in todo if position not in frame.held]
    return NodeTimeout(
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
    """A step with several activations.

    Thousands of runs may stand in one at a time, and the garbage collector walks over all that they hold: so there are
    no closures, and no lists that stay empty.
    """

    __slots__ = ("cut", "finished", "frame", "open", "plain", "pullers", "saves", "scopes", "signal", "tasks", "todo")

    def __init__(self, frame: Frame, todo: Sequence[int]) -> None:
        self.frame = frame
        self.open = len(todo)
        self.cut = False  # a failure or a cancellation ends it before all have ended
        self.finished: list[int] = []  # and not stored yet
        self.todo = todo
        calls, frontier = frame.setup.calls, frame.marking.frontier
        self.plain = all(calls[frontier[position].node].plain for position in todo)
        self.saves = frame.store is not None and frame.setup.save_each_step
        bound = frame.setup.limits.max_concurrency
        self.pullers = bound if bound is not None and 0 < bound < len(todo) else 0
        self.signal: asyncio.Future[None] | None = None  # something has happened that `run` has to look at
        self.tasks: Sequence[asyncio.Task[None]] = ()
        self.scopes: Sequence[anyio.CancelScope] = ()  # by which what isn't plain is cancelled

    def run(self) -> Awaitable[None]:
        """All activations, under asyncio with plain tasks, which cost a sixth of a task group's."""
        try:
            return self._run_asyncio(asyncio.get_running_loop())
        except RuntimeError:
            return self._run_anyio()

    def _workers(self) -> list[Worker]:
        if self.pullers:
            pull = functools.partial(self._pull, iter(self.todo))
            return [pull] * self.pullers
        return [functools.partial(self._one, position) for position in self.todo]

    async def _run_asyncio(self, loop: asyncio.AbstractEventLoop) -> None:
        self.signal = loop.create_future()
        if self.plain and not self.pullers:
            self.tasks = list(map(loop.create_task, map(self._one, self.todo)))
        else:
            self._start(loop)
        whole = False
        try:
            while self.open > 0:
                await self.signal
                if self.open <= 0:
                    break
                self.signal = loop.create_future()
                await self._save()
            whole = not self.cut
        finally:
            if not whole:
                await self._wind_up()
        for task in self.tasks if self.cut else ():
            error = None if task.cancelled() else task.exception()
            if error is not None:
                raise error
        if self.saves:
            await self._save()

    def _wake(self) -> None:
        if self.signal is not None and not self.signal.done():
            self.signal.set_result(None)

    def _stop(self) -> None:
        for one in self.tasks if self.plain else self.scopes:
            one.cancel()
        self._wake()

    async def _wind_up(self) -> None:
        """The step was cut short: cancel what still runs, wait for its end, and keep what had finished."""
        unfinished = [task for task in self.tasks if not task.done()]
        if unfinished:
            self._stop()
            with anyio.CancelScope(shield=True):
                await asyncio.wait(unfinished)
                await self._save()

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """A task for each worker. A plain node is cancelled as asyncio does, which costs nothing beforehand, anything
        else through a scope of its own."""
        workers = self._workers()
        if self.plain:
            self.tasks = [loop.create_task(worker()) for worker in workers]
            return
        self.scopes = [anyio.CancelScope() for _ in workers]
        self.tasks = [loop.create_task(_within(*one)) for one in zip(self.scopes, workers, strict=True)]

    async def _run_anyio(self) -> None:
        async with anyio.create_task_group() as group:
            self.scopes = (group.cancel_scope,)
            self.plain = False
            for worker in self._workers():
                group.start_soon(worker)
        await self._save()

    async def _one(self, position: int) -> None:
        try:
            outcome = await run_activation(self.frame, position)
        except BaseException:
            self.cut = True
            self.open = 0  # it has no outcome, so the step can't go on
            self._wake()
            raise
        self.frame.held[position] = outcome
        if self.saves:
            self.finished.append(position)
        self.open -= 1
        if outcome.failure is not None and self.frame.setup.cancel_on_failure:
            self.cut = True
            self.open = 0
            self._stop()
        if self.saves or self.open <= 0:
            self._wake()

    async def _pull(self, positions: Iterator[int]) -> None:
        for position in positions:
            await self._one(position)

    async def _save(self) -> None:
        if self.finished:
            batch, self.finished = self.finished, []
            await keep(self.frame, batch)
