"""The SQL text of sessions; `?` are parameters. What differs between the databases is one statement, APPEND_AT_ONCE.

An event's or track item's place is its session's key times `STRIDE` plus its number, so those of one session are one
range. Reading is one statement, hence one snapshot and one round trip; its rows have the columns of `PARTS`.
"""

from __future__ import annotations

from functools import lru_cache

STRIDE = 1 << 32

PARTS = "part, place, owner, name, body, created_at, updated_at"
SESSION, STATE, SUMMARY, TRACK, EVENT, ASKED, HELD = range(7)
"""What a row of READ or LIST is; `owner` of a state row is app, user or session (`a`, `u`, `s`)."""

_ALIVE = "(expires IS NULL OR expires > ?)"
_NAMED = "app = ? AND user_id = ? AND name = ?"
_STATE_ROWS = (
    f"SELECT {STATE}, 0, CASE WHEN user_id = '' THEN 'a' WHEN session = '' THEN 'u' ELSE 's' || session END, key, "
    "value, 0, 0 FROM ga_states"
)
_RANGE = f"place >= (SELECT id FROM s) * {STRIDE} AND place < ((SELECT id FROM s) + 1) * {STRIDE}"
_SINCE = f" AND place >= (SELECT place FROM ga_events WHERE {_RANGE} AND shown = 1 AND at >= ? ORDER BY place LIMIT 1)"
_SHOWN = f"SELECT place, body FROM ga_events WHERE {_RANGE} AND shown = 1"
_LAST_ASKED = f"SELECT place, body FROM ga_events WHERE {_RANGE} AND asked = 1 ORDER BY place DESC LIMIT 1"


@lru_cache(maxsize=4)
def read_sql(last: bool, since: bool) -> str:
    """A session with all it has. Parameters: app, user, name, now; app, user, name, now; with `last` how many track
    items; with `since` the time, of tracks; with `since` the time; with `last` how many."""
    tracks = f"SELECT place, track, body FROM ga_tracks WHERE {_RANGE}"
    if last:
        numbered = f"row_number() OVER (PARTITION BY track ORDER BY place DESC) AS n FROM ga_tracks WHERE {_RANGE}"
        tracks = f"SELECT place, track, body FROM (SELECT place, track, body, at, {numbered}) r WHERE n <= ?"
    tracks += " AND at >= ?" if since else ""
    events = _SHOWN + (_SINCE if since else "") + (" ORDER BY place DESC LIMIT ?" if last else "")
    asked = f" UNION ALL SELECT {ASKED}, place, '', '', body, 0, 0 FROM ({_LAST_ASKED}) q" if last or since else ""
    return _read_sql("", tracks, events, asked)


def _read_sql(known: str, tracks: str, events: str, more: str) -> str:
    return (
        f"WITH s AS (SELECT id, created_at, updated_at FROM ga_sessions WHERE {_NAMED} AND {_ALIVE}){known} "
        f"SELECT {SESSION} AS part, id AS place, '' AS owner, '' AS name, '' AS body, created_at, updated_at FROM s "
        f"UNION ALL {_STATE_ROWS} WHERE app = ? AND user_id IN ('', ?) AND session IN ('', ?) AND {_ALIVE} "
        f"UNION ALL SELECT {SUMMARY}, session, '', filter_key, body, 0, 0 FROM ga_summaries "
        f"WHERE session = (SELECT id FROM s) "
        f"UNION ALL SELECT {TRACK}, place, '', track, body, 0, 0 FROM ({tracks}) t "
        f"UNION ALL SELECT {EVENT}, place, '', '', body, 0, 0 FROM ({events}) e{more}"
    )


_NUMBERED = f"(SELECT id FROM s) * {STRIDE} + ?"
REFRESH = _read_sql(
    f", c AS (SELECT count(*) AS n, max(place) AS place FROM ga_events WHERE place >= {_NUMBERED} AND "
    f"place <= {_NUMBERED} AND shown = 1), k AS (SELECT c.place FROM c JOIN ga_events e ON e.place = c.place "
    f"JOIN s ON s.created_at = ? WHERE c.n = ? AND e.id = ? AND NOT EXISTS (SELECT 1 FROM ga_events WHERE {_RANGE} "
    f"AND asked = 1 AND place < {_NUMBERED}))",
    f"SELECT place, track, body FROM ga_tracks WHERE {_RANGE}",
    f"{_SHOWN} AND place > coalesce((SELECT place FROM k), 0)",
    f" UNION ALL SELECT {HELD}, place, '', '', '', 0, 0 FROM k",
)
"""A session as `read_sql` has it, of its events only those that come after the ones that a reader holds, if it holds
all from the first that a person said: then there is a row HELD. Parameters: app, user, name, now; numbers of the first
and the last event held; when the session was made, how many events are held, the id of the last; the number of the
first; app, user, name, now."""


LIST = (
    "WITH s AS (SELECT id, name, created_at, updated_at FROM ga_sessions WHERE app = ? AND user_id = ? "
    f"AND {_ALIVE} ORDER BY updated_at DESC, name DESC LIMIT ? OFFSET ?) "
    f"SELECT {SESSION} AS part, id AS place, '' AS owner, name, '' AS body, created_at, updated_at FROM s "
    f"UNION ALL {_STATE_ROWS} WHERE app = ? AND user_id IN ('', ?) AND session IN "
    f"(SELECT '' UNION ALL SELECT name FROM s) AND {_ALIVE} "
    f"UNION ALL SELECT {SUMMARY}, session, '', filter_key, body, 0, 0 FROM ga_summaries WHERE session IN "
    "(SELECT id FROM s)"
)

CREATE = (
    "INSERT INTO ga_sessions (app, user_id, name, seq, created_at, updated_at, expires) VALUES (?, ?, ?, 0, ?, ?, ?) "
    "ON CONFLICT (app, user_id, name) DO NOTHING RETURNING id"
)
WHO_IS_THERE = f"SELECT created_at, seq, expires FROM ga_sessions WHERE {_NAMED}"
DELETE = f"DELETE FROM ga_sessions WHERE {_NAMED} RETURNING id, expires"
DELETE_EXPIRED = f"DELETE FROM ga_sessions WHERE {_NAMED} AND expires <= ? RETURNING id"
EXPIRED = "SELECT app, user_id, name FROM ga_sessions WHERE expires <= ? LIMIT 500"
DELETE_EXPIRED_STATES = "DELETE FROM ga_states WHERE expires <= ?"
DELETE_PLACES = tuple(f"DELETE FROM {table} WHERE place >= ? AND place < ?" for table in ("ga_events", "ga_tracks"))
DELETE_SUMMARIES = "DELETE FROM ga_summaries WHERE session = ?"
DELETE_STATE = "DELETE FROM ga_states WHERE app = ? AND user_id = ? AND session = ?"

TOUCH = (
    f"UPDATE ga_sessions SET seq = seq + ?, updated_at = ?, expires = ? WHERE {_NAMED} AND {_ALIVE} RETURNING id, seq"
)
PROLONG = f"UPDATE ga_sessions SET expires = ? WHERE {_NAMED} AND {_ALIVE} RETURNING id"

_UNKNOWN = "NOT EXISTS (SELECT 1 FROM ga_events WHERE session = ga_sessions.id AND id = ?)"
TOUCH_FOR_EVENT = (
    f"UPDATE ga_sessions SET seq = seq + 1, updated_at = ?, expires = ? WHERE {_NAMED} AND {_ALIVE} AND {_UNKNOWN} "
    "RETURNING id, seq"
)
INSERT_EVENT = "INSERT INTO ga_events (place, session, id, at, shown, asked, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
KNOWN_EVENT = (
    "SELECT body, place FROM ga_events WHERE id = ? AND session = "
    f"(SELECT id FROM ga_sessions WHERE {_NAMED} AND {_ALIVE})"
)
INSERT_TRACK = "INSERT INTO ga_tracks (place, track, at, body) VALUES (?, ?, ?, ?)"

_PUT = "ON CONFLICT (app, user_id, session, key) DO UPDATE SET value = excluded.value, expires = excluded.expires"
PUT_STATE = f"INSERT INTO ga_states (app, user_id, session, key, value, expires) VALUES (?, ?, ?, ?, ?, ?) {_PUT}"
SHARED = f"SELECT key, value FROM ga_states WHERE app = ? AND user_id = ? AND session = '' AND {_ALIVE}"

SUMMARY_OF = "SELECT body FROM ga_summaries WHERE session = ? AND filter_key = ?"
PUT_SUMMARY = (
    "INSERT INTO ga_summaries (session, filter_key, body) VALUES (?, ?, ?) "
    "ON CONFLICT (session, filter_key) DO UPDATE SET body = excluded.body"
)


@lru_cache(maxsize=64)
def append_at_once(values: int) -> str:
    """TOUCH_FOR_EVENT, INSERT_EVENT and so many PUT_STATE as one statement of PostgreSQL, which commits by itself.

    Its parameters are those of the three, of the event without place and session. Its row has the number
    of the event, 0 if there is no such session or the event is there. Two writers that bring the same event at the same
    moment: the second waits for the first at the session's row, doesn't see the event yet, and then adds nothing.
    """
    states = ""
    if values:
        rows = ", ".join(["(?::text, ?::text, ?::text, ?::text, ?::text, ?::float8)"] * values)
        states = (
            ", p AS (INSERT INTO ga_states (app, user_id, session, key, value, expires) "
            f"SELECT v.* FROM e, (VALUES {rows}) v {_PUT})"
        )
    return (
        f"WITH s AS ({TOUCH_FOR_EVENT}), e AS (INSERT INTO ga_events (place, session, id, at, shown, asked, body) "
        f"SELECT s.id * {STRIDE} + s.seq, s.id, ?::text, ?::float8, ?::int, ?::int, ?::text FROM s "
        f"ON CONFLICT (session, id) DO NOTHING RETURNING place){states} "
        f"SELECT coalesce((SELECT mod(place, {STRIDE}) FROM e), 0)"
    )
