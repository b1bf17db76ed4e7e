"""Which of a session's events a reader gets: never a beginning that nobody asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from graphagent.errors import UsageError

T = TypeVar("T")


def window(rest: Sequence[T], last_asked: T | None, asked: Callable[[T], bool]) -> Sequence[T]:
    """What is handed out of the events that were wanted (`rest`); `asked` tells whether a person said it.

    Events before the first that a person said are left out; if there is none, the last such event of the whole
    session (`last_asked`) stands before the others; without one there is nothing.
    """
    for place, event in enumerate(rest):
        if asked(event):
            return rest[place:]
    return [] if last_asked is None else [last_asked, *rest]


def check_last(last: int | None) -> None:
    """Raise UsageError for a number of events that is none."""
    if last is not None and last < 0:
        raise UsageError(f"last={last}: a number of events is 0 or more; leave it out for all")


def check_page(offset: int, limit: int | None) -> None:
    """Raise UsageError for a page that is none."""
    if offset < 0 or (limit is not None and limit < 1):
        raise UsageError(f"offset={offset}, limit={limit}: a page begins at 0 or later and has at least one entry")
