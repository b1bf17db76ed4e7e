"""Sessions made of the rows that `statements.read_sql` and `statements.LIST` find."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from graphagent.ledger import Event, Session, SessionKey, Summary
from runner.plain import copied, loads
from runner.sessions.encoding import decode_event
from runner.sessions.scopes import APP, USER
from runner.sessions.statements import ASKED, EVENT, HELD, SESSION, STATE, STRIDE, SUMMARY, TRACK
from runner.sessions.window import window
from runner.sql.database import Rows

_PREFIX = {"a": APP, "u": USER}


def read(key: SessionKey, rows: Rows, *, empty: bool = False, held: Sequence[Event] = ()) -> Session | None:
    """The session, None if it isn't there; `empty`: without events; `held`: the first ones, if the rows say so."""
    parts = _by_part(rows)
    if not parts[SESSION]:
        return None
    *_, created_at, updated_at = parts[SESSION][0]
    asked = [decode_event(body, place % STRIDE) for place, _, _, body, *_ in parts[ASKED]]
    events = [] if empty else [decode_event(body, place % STRIDE) for place, _, _, body, *_ in sorted(parts[EVENT])]
    if parts[HELD]:
        events = [*held, *events]
    tracks: dict[str, list[Any]] = {}
    for _, _, track, body, *_ in sorted(parts[TRACK]):
        tracks.setdefault(track, []).append(loads(body))
    return Session(
        app=key.app,
        user=key.user,
        id=key.session,
        events=[] if empty else list(window(events, asked[0] if asked else None, lambda event: event.is_user)),
        state={_PREFIX.get(owner, "") + name: loads(body) for _, owner, name, body, *_ in parts[STATE]},
        summaries={name: Summary.model_validate_json(body) for _, _, name, body, *_ in parts[SUMMARY]},
        tracks=tracks,
        created_at=created_at,
        updated_at=updated_at,
    )


def listed(app: str, user: str, rows: Rows) -> list[Session]:
    """The sessions of a page, the last changed first, then by id downwards."""
    parts = _by_part(rows)
    states: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for _, owner, name, body, *_ in parts[STATE]:
        states[owner][name] = loads(body)
    summaries: defaultdict[int, dict[str, Summary]] = defaultdict(dict)
    for session, _, name, body, *_ in parts[SUMMARY]:
        summaries[session][name] = Summary.model_validate_json(body)
    shared = {prefix + name: value for owner, prefix in _PREFIX.items() for name, value in states[owner].items()}
    found = [
        Session(
            app=app,
            user=user,
            id=name,
            state={**copied(shared), **states[f"s{name}"]},
            summaries=summaries[session],
            created_at=created_at,
            updated_at=updated_at,
        )
        for session, _, name, _, created_at, updated_at in parts[SESSION]
    ]
    return sorted(found, key=lambda session: (session.updated_at, session.id), reverse=True)


def _by_part(rows: Rows) -> defaultdict[int, Rows]:
    parts: defaultdict[int, Rows] = defaultdict(list)
    for part, *columns in rows:
        parts[part].append(tuple(columns))
    return parts
