"""Work after runs that nobody waits for: done in order for each session, all of it before the Runner closes."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from graphagent.ledger import SessionKey
from runner.tasks import start_task

_log = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]


class Jobs:
    """Jobs by session. A job that fails is logged and stops none of the others."""

    def __init__(self) -> None:
        self._waiting: dict[SessionKey, deque[tuple[str, Job]]] = {}
        self._idle = anyio.Event()

    def submit(self, key: SessionKey, name: str, job: Job) -> None:
        """Have a job done after those of the same session that came before. `name` says in the log what it was."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append((name, job))
            return
        self._waiting[key] = deque([(name, job)])
        start_task(self._work(key), f"jobs of {key.session}")

    async def _work(self, key: SessionKey) -> None:
        waiting = self._waiting[key]
        try:
            while waiting:
                name, job = waiting.popleft()
                try:
                    await job()
                except Exception:
                    _log.exception("%s of session '%s' failed", name, key.session)
        finally:
            del self._waiting[key]
            if not self._waiting:
                self._idle.set()

    async def drain(self, timeout: float) -> bool:
        """Wait until all are done; False if some are not after so many seconds."""
        with anyio.move_on_after(timeout):
            while self._waiting:
                self._idle = anyio.Event()
                await self._idle.wait()
        return not self._waiting
