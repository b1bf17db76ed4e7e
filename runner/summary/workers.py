"""Summaries in the background: those of one session in order, none lost when there is no room for them.

Source: spec/context, 10.1.
"""

from __future__ import annotations

import logging
import zlib
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import anyio

from graphagent.ledger import SessionKey
from runner.summary.dispatch import refresh
from runner.summary.rolling import RollingSummary
from runner.summary.values import NO_CONTEXT, Attempt, SummaryContext
from runner.tasks import start_task

_log = logging.getLogger(__name__)


class _Job(NamedTuple):
    key: SessionKey
    trigger: str
    force: bool
    context: SummaryContext


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """`workers`: how many summaries are made at a time; `queue`: how many checks wait at each at most; `timeout`:
    seconds for one (None: as long as it takes)."""

    workers: int = 3
    queue: int = 100
    timeout: float | None = 60.0


DEFAULTS = WorkerOptions()


class SummaryWorkers:
    """Checks summaries after appends. A session is always served by the same worker, so its checks keep their order;
    one that waits already for the same key is not queued again. Use it on one event loop."""

    def __init__(self, rolling: RollingSummary, options: WorkerOptions = DEFAULTS) -> None:
        self.rolling = rolling
        self._options = options
        self._queues: list[deque[_Job]] = [deque() for _ in range(max(options.workers, 1))]
        self._busy: dict[int, anyio.CancelScope] = {}
        self._stopped = False
        self._idle = anyio.Event()

    async def enqueue(
        self, key: SessionKey, trigger: str, *, force: bool = False, context: SummaryContext = NO_CONTEXT
    ) -> tuple[Attempt, ...]:
        """Have the summaries looked at that an event with this filter key calls for.

        Done at once, and the attempts returned, if the queue is full or the workers are stopped; else nothing is
        returned, and nothing waited for, so that a caller that is being cancelled has it queued all the same.
        """
        job = _Job(key, trigger, force, context)
        place = zlib.crc32("\0".join(key).encode()) % len(self._queues)
        queue = self._queues[place]
        for at, waiting in enumerate(queue):
            if (waiting.key, waiting.trigger) == (key, trigger):
                queue[at] = job._replace(force=force or waiting.force)  # the newer one sees all that this one would
                return ()
        if self._stopped or len(queue) >= max(self._options.queue, 1):
            self.rolling.stats.in_caller += 1
            return await self._done(job)
        queue.append(job)
        self.rolling.stats.waiting += 1
        if place not in self._busy:
            self._busy[place] = anyio.CancelScope()
            start_task(self._work(place), f"summaries {place}")
        return ()

    async def _work(self, place: int) -> None:
        queue = self._queues[place]
        try:
            with self._busy[place]:
                while queue:
                    job = queue.popleft()
                    self.rolling.stats.waiting -= 1
                    try:
                        await self._done(job)
                    except Exception:
                        _log.warning("a summary of session '%s' failed", job.key.session, exc_info=True)
        finally:
            self.rolling.stats.waiting -= len(queue)
            queue.clear()
            del self._busy[place]
            if not self._busy:
                self._idle.set()

    async def _done(self, job: _Job) -> tuple[Attempt, ...]:
        attempts: tuple[Attempt, ...] = ()
        with anyio.move_on_after(self._options.timeout) as scope:
            attempts = await refresh(self.rolling, job.key, job.trigger, force=job.force, context=job.context)
        if scope.cancelled_caught:
            _log.warning("a summary of session '%s' took more than %s s", job.key.session, self._options.timeout)
        return attempts

    async def stop(self, timeout: float) -> bool:
        """Take no more, and do what waits; False if some of it is given up after so many seconds. What is given up is
        not lost: the events are in view until a later summary covers them."""
        self._stopped = True
        with anyio.move_on_after(timeout):
            await self._until_idle()
            return True
        for scope in self._busy.values():
            scope.cancel()
        await self._until_idle()
        return False

    async def _until_idle(self) -> None:
        while self._busy:
            self._idle = anyio.Event()
            await self._idle.wait()
