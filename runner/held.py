"""Sessions of the last runs, so that the next run in one of them reads only what has come since."""

from __future__ import annotations

from graphagent.ledger import Session, SessionKey
from graphagent.services import RefreshableSessions, SessionService

HELD = 4_000
"""Events that are held unless a policy says otherwise; a single longer session is held beside them."""


class HeldSessions:
    """Copies of the sessions that were used last, up to so many events together, and beside them the last one that has
    more than that alone: else each turn of a long session would read all of it. None for a limit of 0, or a service
    that can't read on from a copy. They are never handed out as they are: each run reads its session on from there, so
    that writers in other processes are seen."""

    def __init__(self, sessions: SessionService, limit: int) -> None:
        self._limit = limit if isinstance(sessions, RefreshableSessions) else 0
        self._copies: dict[SessionKey, Session] = {}  # the one that was used longest ago comes first
        self._long: Session | None = None
        self._events = 0

    def take(self, key: SessionKey) -> Session | None:
        """The copy of a session, which is then held no longer."""
        if (long := self._long) is not None and long.key == key:
            self._long = None
            return long
        copy = self._copies.pop(key, None)
        self._events -= 0 if copy is None else len(copy.events)
        return copy

    def put(self, session: Session) -> None:
        """Hold a copy; those that were used longest ago go for it."""
        self.take(session.key)
        if not session.events or self._limit <= 0:
            return
        copy = session.model_copy(update={"events": list(session.events)})
        if len(copy.events) > self._limit:
            self._long = copy
            return
        self._copies[session.key] = copy
        self._events += len(copy.events)
        while self._events > self._limit:
            self.take(next(iter(self._copies)))
