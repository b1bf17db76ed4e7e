"""What sessions do in a database in more than one statement: steps that a database runs in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from graphagent.checkpoint.sql.operations import Operation
from graphagent.ledger import SessionKey, Summary
from runner.sessions import statements
from runner.sessions.lifetime import session_exists, session_not_found
from runner.sessions.search_statements import LEASE, PUT_VECTOR, RELEASE
from runner.sessions.search_text import Said, scope_of
from runner.sessions.statements import STRIDE


class Times(NamedTuple):
    """When a change is made, and when the session then expires."""

    now: float
    expires: float | None


class EventRow(NamedTuple):
    """The columns of an event; `shown`: 1 if it has content, which is counted when it is stored."""

    id: str
    at: float
    shown: int
    asked: int
    body: str


States = Sequence[Sequence[Any]]
"""Parameters of PUT_STATE, one entry a key."""


def counted(said: Said | None) -> tuple[int, int]:
    """How many messages and words an event adds to what can be searched."""
    return (0, 0) if said is None else (1, said.size)


def findable(key: SessionKey, said: Said | None) -> tuple[Any, ...]:
    """The columns of what an event is found by, after its places; none if it can't be found."""
    return () if said is None else (scope_of(key.app, key.user), *said)


def create(key: SessionKey, times: Times, states: States) -> Operation[None]:
    """Make a session. Raises SessionExists."""
    row = (*key, times.now, *times)
    if not (yield statements.CREATE, row):
        if (yield statements.WHO_IS_THERE, key) == [(times.now, 0, times.expires)]:
            return  # this very call made it, only the reply was lost
        if not (yield from remove_expired(key, times.now)):
            raise session_exists(key)
        yield statements.CREATE, row
    yield from put_states(states)


def put_states(states: States) -> Operation[None]:
    """Store values of states."""
    for state in states:
        yield statements.PUT_STATE, state


def append(key: SessionKey, times: Times, event: EventRow, said: Said | None, states: States) -> Operation[int]:
    """Add an event, what it is found by, and its state; its number, or 0 if there is no such session, or the event is
    there already."""
    found = yield statements.TOUCH_FOR_EVENT, (event.shown, *counted(said), *times, *key, times.now, event.id)
    if not found:
        return 0
    session, seq, shown, number = found[0]
    row = event._replace(shown=event.shown * shown)
    yield statements.INSERT_EVENT, (session * STRIDE + seq, session, number, *row)
    if said is not None:
        yield statements.INSERT_SAID, (session * STRIDE + number, seq, *findable(key, said))
    yield from put_states(states)
    return int(seq)


def touch(key: SessionKey, times: Times, count: int) -> Operation[tuple[int, int]]:
    """Lock a session and take so many numbers; its key and the last of them. Raises SessionNotFound."""
    found = yield statements.TOUCH, (count, *times, *key, times.now)
    if not found:
        raise session_not_found(key)
    return found[0][0], found[0][1]


def update_state(key: SessionKey, times: Times, states: States) -> Operation[None]:
    """Change the state. Raises SessionNotFound."""
    yield from touch(key, times, 0)
    yield from put_states(states)


def append_track(key: SessionKey, times: Times, track: str, bodies: Sequence[str]) -> Operation[None]:
    """Add items to a track. Raises SessionNotFound."""
    session, last = yield from touch(key, times, len(bodies))
    for number, body in enumerate(bodies, last - len(bodies) + 1):
        yield statements.INSERT_TRACK, (session * STRIDE + number, track, times.now, body)


def put_summary(
    key: SessionKey, times: Times, filter_key: str, body: str, expected: tuple[Summary | None, Summary]
) -> Operation[bool]:
    """Store a summary if the stored one is one of the two expected. Raises SessionNotFound."""
    locked = yield statements.PROLONG, (times.expires, *key, times.now)
    if not locked:
        raise session_not_found(key)
    found = yield statements.SUMMARY_OF, (locked[0][0], filter_key)
    stored = Summary.model_validate_json(found[0][0]) if found else None
    if stored not in expected:
        return False
    yield statements.PUT_SUMMARY, (locked[0][0], filter_key, body)
    return True


def put_vectors(name: str, vectors: Iterable[tuple[int, bytes]]) -> Operation[None]:
    """Keep vectors of messages, as far as these are still there."""
    for place, vector in vectors:
        yield PUT_VECTOR, (name, vector, place)


def lease_summary(key: SessionKey, filter_key: str, owner: str, times: Times) -> Operation[bool]:
    """Take or keep the right to make a summary until `times.expires`. Raises SessionNotFound."""
    taken = yield LEASE, (filter_key, owner, times.expires, *key, times.now, times.now)
    if not taken and not (yield statements.IS_ALIVE, (*key, times.now)):
        raise session_not_found(key)
    return bool(taken)


def release_summary(key: SessionKey, filter_key: str, owner: str) -> Operation[None]:
    """Give the right back, if this owner has it."""
    yield RELEASE, (filter_key, owner, *key)


def delete(key: SessionKey, now: float) -> Operation[bool]:
    """Remove a session and all it has; False if there was none, or none any more."""
    found = yield statements.DELETE, key
    if not found:
        return False
    session, expires = found[0]
    yield from _remove_parts(session, key)
    return expires is None or bool(expires > now)


def remove_expired(key: SessionKey, now: float) -> Operation[bool]:
    """Remove a session if it has expired; whether it had."""
    found = yield statements.DELETE_EXPIRED, (*key, now)
    if found:
        yield from _remove_parts(found[0][0], key)
    return bool(found)


def _remove_parts(session: int, key: SessionKey) -> Operation[None]:
    for statement in statements.DELETE_PLACES:
        yield statement, (session * STRIDE, (session + 1) * STRIDE)
    for statement in statements.DELETE_KEYED:
        yield statement, (session,)
    yield statements.DELETE_STATE, key


def purge(now: float) -> Operation[tuple[int, bool]]:
    """Remove some of what has expired: how many sessions, and whether there may be more."""
    found = yield statements.EXPIRED, (now,)
    removed = 0
    for row in found:
        removed += yield from remove_expired(SessionKey(*row), now)
    yield statements.DELETE_EXPIRED_STATES, (now,)
    return removed, bool(found)
