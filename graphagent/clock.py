"""Where time and randomness come from, so that tests and replays can steer both."""

from __future__ import annotations

import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """A source of time."""

    def now(self) -> float:
        """Wall-clock time in seconds since the epoch; goes into rows and events, never into decisions."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards; used for durations and budgets."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds (retry delays go through here)."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """`time.time()`."""
        return time.time()

    def monotonic(self) -> float:
        """`time.monotonic()`."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """`anyio.sleep`."""
        await anyio.sleep(seconds)
