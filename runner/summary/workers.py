"""Summaries in the background: those of one session in order, none lost when there is no room for them.

Source: spec/context, 10.1.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import NamedTuple

import anyio

from graphagent.ledger import SessionKey
from runner.lanes import Lanes
from runner.summary.dispatch import refresh
from runner.summary.rolling import RollingSummary
from runner.summary.values import NO_CONTEXT, Attempt, SummaryContext

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
        self._lanes: Lanes[_Job] = Lanes(self._done, lanes=options.workers, room=options.queue, name="summaries")

    async def enqueue(
        self, key: SessionKey, trigger: str, *, force: bool = False, context: SummaryContext = NO_CONTEXT
    ) -> tuple[Attempt, ...]:
        """Have the summaries looked at that an event with this filter key calls for.

        Done at once, and the attempts returned, if the queue is full or the workers are stopped; else nothing is
        returned, and nothing waited for, so that a caller that is being cancelled has it queued all the same.
        """
        job = _Job(key, trigger, force, context)

        def joined(waiting: _Job) -> _Job | None:  # the newer one sees all that the waiting one would
            same = (waiting.key, waiting.trigger) == (key, trigger)
            return job._replace(force=force or waiting.force) if same else None

        if not self._lanes.put("\0".join(key), job, joined=joined):
            self.rolling.stats.in_caller += 1
            return await self._done(job)
        self.rolling.stats.waiting = self._lanes.waiting
        return ()

    async def _done(self, job: _Job) -> tuple[Attempt, ...]:
        attempts: tuple[Attempt, ...] = ()
        self.rolling.stats.waiting = self._lanes.waiting
        with anyio.move_on_after(self._options.timeout) as scope:
            attempts = await refresh(self.rolling, job.key, job.trigger, force=job.force, context=job.context)
        if scope.cancelled_caught:
            _log.warning("a summary of session '%s' took more than %s s", job.key.session, self._options.timeout)
        return attempts

    async def stop(self, timeout: float) -> bool:
        """Take no more, and do what waits; False if some of it is given up after so many seconds. What is given up is
        not lost: the events are in view until a later summary covers them."""
        done = await self._lanes.stop(timeout)
        self.rolling.stats.waiting = self._lanes.waiting
        return done
