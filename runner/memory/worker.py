"""Extractions in the background, after runs: those of one user in order, with bounded room for what waits.

Source: spec/context, 17.5.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import anyio

from graphagent.clock import Clock
from graphagent.errors import SessionNotFound, UsageError
from graphagent.ledger import SessionKey
from graphagent.services import MemoryService, SessionService
from runner.lanes import Lanes
from runner.memory.job import Extraction, MemoryExtraction, Report
from runner.summary.locks import SummaryLocks

_log = logging.getLogger(__name__)

LEASE_KEY = "memory:extraction"
"""Under this name, in place of a filter key, processes agree on who extracts from a session."""

LEASE = 10.0
"""Seconds that another process waits for one that has died."""


def memory_worker(sessions: SessionService, memory: MemoryService | None, options: MemoryExtraction) -> MemoryWorker:
    """The worker of a Runner. Raises UsageError if there is no memory to put anything into."""
    if memory is None:
        raise UsageError("extraction= was given without memory=: say where memories are kept, such as InMemoryMemory()")
    return MemoryWorker(sessions, memory, options)


class _Job(NamedTuple):
    key: SessionKey
    request_id: str


class MemoryWorker:
    """Extracts from sessions when their runs end. One session is never worked on twice at once, in several processes
    neither where the session service has leases. Use it on one event loop."""

    def __init__(
        self, sessions: SessionService, memory: MemoryService, options: MemoryExtraction, *, clock: Clock | None = None
    ) -> None:
        self.options = options
        self._extraction = Extraction(sessions, memory, options, clock=clock)
        wait = 60.0 if options.timeout is None else options.timeout
        self._locks = SummaryLocks(sessions, lease=LEASE, wait=wait)
        self._lanes: Lanes[_Job] = Lanes(
            self._done, lanes=options.workers, room=options.queue, name="memory extraction"
        )

    async def enqueue(self, key: SessionKey, request_id: str = "", *, cancelled: bool = False) -> Report | None:
        """Have a session looked at, up to the end of a run. What waits for the same session already is not queued
        again: it reads to the later end. If there is no room, or the worker is closed, it is done at once and the
        report returned, but not for a run that was cancelled: the next extraction reads its messages then."""
        job = _Job(key, request_id)
        if self._lanes.put(f"{key.app}\0{key.user}", job, joined=lambda waiting: job if waiting.key == key else None):
            return None
        if cancelled:
            _log.info("session '%s': no room to look for memories after a cancelled run", key.session)
            return None
        return await self._done(job)

    async def extract(self, key: SessionKey, request_id: str = "") -> Report:
        """Look at a session now. Never raises for a failure: the report says it."""
        return await self._done(_Job(key, request_id))

    async def close(self, timeout: float) -> bool:
        """Do what waits; False if some of it is not done after so many seconds. What then comes is done at once."""
        return await self._lanes.stop(timeout)

    async def _done(self, job: _Job) -> Report:
        report = Report(job.key, "failed", f"it took more than {self.options.timeout} s")
        with anyio.move_on_after(self.options.timeout):
            report = await self._attempted(job)
        if report.outcome == "failed":
            _log.warning("session '%s': looking for memories failed: %s", job.key.session, report.reason)
        if self.options.listener is not None:
            try:
                self.options.listener(report)
            except Exception:
                _log.exception("a listener of memory extractions failed")
        return report

    async def _attempted(self, job: _Job) -> Report:
        try:
            async with self._locks.hold(job.key, LEASE_KEY) as held:
                if held:
                    return await self._extraction.run(job.key, job.request_id)
                return Report(job.key, "elsewhere", "another process looks at the session")
        except SessionNotFound:
            return Report(job.key, "gone")
        except Exception as error:
            return Report(job.key, "failed", f"{type(error).__name__}: {error}")
