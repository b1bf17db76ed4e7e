"""The exit statuses of the command line."""

from __future__ import annotations

from enum import IntEnum

from graphagent.engine.result import Status


class Exit(IntEnum):
    """What the exit status of the process says."""

    COMPLETED = 0
    FAILED = 1
    MISUSE = 2
    INTERRUPTED = 3
    STOPPED = 4
    CANCELLED = 5


_OF_STATUS = {
    "completed": Exit.COMPLETED,
    "failed": Exit.FAILED,
    "interrupted": Exit.INTERRUPTED,
    "limit_reached": Exit.STOPPED,
    "stalled": Exit.STOPPED,
    "cancelled": Exit.CANCELLED,
}


def exit_of(status: Status) -> Exit:
    """The exit status for how a run ended."""
    return _OF_STATUS[status]
