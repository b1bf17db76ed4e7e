"""Which of a session's events a reader gets: never a beginning that nobody asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from graphagent.errors import AnchorNotFound, UsageError
from graphagent.ledger import SessionKey

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


ROLES = ("user", "assistant", "tool", "system")


def role_columns(roles: Collection[str]) -> tuple[str, ...]:
    """Four roles, as many as there are: those of `roles` (none: all), the first of them again where it has less."""
    known = [role for role in ROLES if role in roles or not roles] or [_NOBODY]
    return tuple(known + known[:1] * (len(ROLES) - len(known)))


_NOBODY = "?"


def check_around(before: int, after: int) -> None:
    """Raise UsageError for a window that is none."""
    if before < 0 or after < 0:
        raise UsageError(f"before={before}, after={after}: how many events around one must be 0 or more")


def no_such_event(key: SessionKey, event_id: str) -> AnchorNotFound:
    """The error for an event that isn't there."""
    return AnchorNotFound(
        f"anchor event not found: {event_id}: session '{key.session}' of user '{key.user}' in app '{key.app}' has no "
        "such event, or isn't there any more; take an id that a search or the session itself gave"
    )


def check_page(offset: int, limit: int | None) -> None:
    """Raise UsageError for a page that is none."""
    if offset < 0 or (limit is not None and limit < 1):
        raise UsageError(f"offset={offset}, limit={limit}: a page begins at 0 or later and has at least one entry")
