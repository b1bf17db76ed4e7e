"""Work in the background, in order for each who owns it, with bounded room for what waits."""

from __future__ import annotations

import logging
import zlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

from runner.tasks import start_task

_log = logging.getLogger(__name__)

J = TypeVar("J")


class Lanes(Generic[J]):
    """So many lanes, each with a queue. What belongs to one owner goes through one lane, so it keeps its order. A job
    that raises is logged and stops none of the others. Use it on one event loop.

    `work`: does a job; `lanes`: how many at a time; `room`: how many jobs wait in each at most; `name`: in logs.
    """

    def __init__(self, work: Callable[[J], Awaitable[object]], *, lanes: int, room: int, name: str) -> None:
        self._work = work
        self._queues: list[deque[J]] = [deque() for _ in range(max(lanes, 1))]
        self._room = max(room, 1)
        self._name = name
        self._busy: dict[int, anyio.CancelScope] = {}
        self._stopped = False
        self._idle = anyio.Event()

    @property
    def waiting(self) -> int:
        """How many jobs have not begun."""
        return sum(map(len, self._queues))

    def put(self, owner: str, job: J, *, joined: Callable[[J], J | None] = lambda waiting: None) -> bool:
        """Have a job done later; False, and nothing done, if there is no room or the lanes are stopped.

        `joined`: the job that does for a waiting one and this one, in the place of the waiting one; None if none can.
        """
        if self._stopped:
            return False
        place = zlib.crc32(owner.encode()) % len(self._queues)
        queue = self._queues[place]
        for at, waiting in enumerate(queue):
            if (one := joined(waiting)) is not None:
                queue[at] = one
                return True
        if len(queue) >= self._room:
            return False
        queue.append(job)
        if place not in self._busy:
            self._busy[place] = anyio.CancelScope()
            start_task(self._go(place), f"{self._name} {place}")
        return True

    async def _go(self, place: int) -> None:
        queue = self._queues[place]
        try:
            with self._busy[place]:
                while queue:
                    job = queue.popleft()
                    try:
                        await self._work(job)
                    except Exception:
                        _log.exception("%s: a job failed", self._name)
        finally:
            queue.clear()
            del self._busy[place]
            if not self._busy:
                self._idle.set()

    async def stop(self, timeout: float) -> bool:
        """Take no more, and wait for what is there; False if some was not done after so many seconds, and is given
        up."""
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
