"""A flag that tasks wait for, made for one hand-over a step: two of anyio's events cost more than a step does."""

from __future__ import annotations

import asyncio

import anyio


class Signal:
    """Set once, and again after `clear`. Waiting for one that is set doesn't let other tasks run first."""

    __slots__ = ("_event", "_set", "_waiters")

    def __init__(self) -> None:
        self._set = False
        self._waiters: list[asyncio.Future[None]] = []
        self._event: anyio.Event | None = None  # under another event loop than asyncio's

    def is_set(self) -> bool:
        """Whether it is."""
        return self._set

    def clear(self) -> None:
        """Those who wait from now on wait for the next `set`."""
        self._set = False
        self._event = None

    def set(self) -> None:
        """Wake all who wait."""
        self._set = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Until it is set."""
        if self._set:
            return
        try:
            waiter = asyncio.get_running_loop().create_future()
        except RuntimeError:
            self._event = self._event or anyio.Event()
            await self._event.wait()
            return
        self._waiters.append(waiter)
        await waiter
