"""Time that stands still until a test moves it."""

from graphagent.clock import SystemClock


class HandClock(SystemClock):
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def now(self) -> float:
        """The time that was set last, in seconds since the epoch."""
        return self.time
