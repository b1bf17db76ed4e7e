"""When it is worth looking for memories. Pure.

Source: spec/context, 17.5, point 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from runner.memory.extraction import Said


class Waiting(NamedTuple):
    """What would be looked at. `last`: when that was done last, in seconds since the epoch (None: never); `now`."""

    messages: tuple[Said, ...]
    last: float | None
    now: float


Check = Callable[[Waiting], bool]
"""False leaves the messages to the next time."""


def always(waiting: Waiting) -> bool:
    """After each run."""
    return True


def message_count(more_than: int) -> Check:
    """When more than so many messages wait."""
    return lambda waiting: len(waiting.messages) > more_than


def interval(seconds: float) -> Check:
    """When the last time is longer ago; the first time at once."""
    return lambda waiting: waiting.last is None or waiting.now - waiting.last > seconds


def all_of(*checks: Check) -> Check:
    """When all of these say so."""
    return lambda waiting: all(check(waiting) for check in checks)


def any_of(*checks: Check) -> Check:
    """When one of these says so."""
    return lambda waiting: any(check(waiting) for check in checks)
