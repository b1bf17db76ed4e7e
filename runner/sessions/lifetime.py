"""How long sessions and shared states live after their last change."""

from __future__ import annotations

from dataclasses import dataclass

from graphagent.errors import SessionExists, SessionNotFound
from graphagent.ledger import SessionKey
from runner.sessions.scopes import Slot

SWEEP = 300.0
"""Seconds between two removals of what has expired; each is part of the next `create`."""


@dataclass(frozen=True, slots=True)
class Ttl:
    """Seconds after the last change until a session, a key of a user's or of an app's state expires; None: never.

    What has expired is gone for every reader at once, and removed from the store some minutes later. Reading doesn't
    prolong a life, changing does.
    """

    session: float | None = None
    user: float | None = None
    app: float | None = None

    @property
    def ends(self) -> bool:
        """True if anything expires at all."""
        return any(seconds is not None for seconds in (self.session, self.user, self.app))

    def session_end(self, now: float) -> float | None:
        """When a session that changes now expires."""
        return None if self.session is None else now + self.session

    def slot_end(self, slot: Slot, now: float) -> float | None:
        """When a key that changes now expires; one of a session goes with it."""
        seconds = None if slot.session else self.user if slot.user else self.app
        return None if seconds is None else now + seconds


def session_not_found(key: SessionKey) -> SessionNotFound:
    """The error for a session that isn't there."""
    return SessionNotFound(
        f"there is no session '{key.session}' of user '{key.user}' in app '{key.app}', or not any more; create it first"
    )


def session_exists(key: SessionKey) -> SessionExists:
    """The error for a session id that is taken."""
    return SessionExists(
        f"user '{key.user}' of app '{key.app}' has a session '{key.session}' already; get it, or choose another id"
    )
