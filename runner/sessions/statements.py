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

ALIVE = "(expires IS NULL OR expires > ?)"
NAMED = "app = ? AND user_id = ? AND name = ?"
_STATE_ROWS = (
    f"SELECT {STATE}, 0, CASE WHEN user_id = '' THEN 'a' WHEN session = '' THEN 'u' ELSE 's' || session END, key, "
    "value, 0, 0 FROM ga_states"
)
_FIRST, _END = f"(SELECT id FROM s) * {STRIDE}", f"place < ((SELECT id FROM s) + 1) * {STRIDE}"
_RANGE = f"place >= {_FIRST} AND {_END}"
_SINCE = f" AND place >= (SELECT place FROM ga_events WHERE {_RANGE} AND shown > 0 AND at >= ? ORDER BY place LIMIT 1)"
_SHOWN = f"SELECT place, body FROM ga_events WHERE {_RANGE} AND shown > 0"
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
        f"WITH s AS (SELECT id, created_at, updated_at FROM ga_sessions WHERE {NAMED} AND {ALIVE}){known} "
        f"SELECT {SESSION} AS part, id AS place, '' AS owner, '' AS name, '' AS body, created_at, updated_at FROM s "
        f"UNION ALL {_STATE_ROWS} WHERE app = ? AND user_id IN ('', ?) AND session IN ('', ?) AND {ALIVE} "
        f"UNION ALL SELECT {SUMMARY}, session, '', filter_key, body, 0, 0 FROM ga_summaries "
        f"WHERE session = (SELECT id FROM s) "
        f"UNION ALL SELECT {TRACK}, place, '', track, body, 0, 0 FROM ({tracks}) t "
        f"UNION ALL SELECT {EVENT}, place, '', '', body, 0, 0 FROM ({events}) e{more}"
    )


_NUMBERED = f"{_FIRST} + ?"
REFRESH = _read_sql(
    f", k AS (SELECT e.place FROM ga_events e JOIN ga_events f ON f.place = {_NUMBERED} AND f.shown > 0 "
    f"JOIN s ON s.created_at = ? WHERE e.place = {_NUMBERED} AND e.id = ? AND e.shown - f.shown + 1 = ? AND NOT EXISTS "
    f"(SELECT 1 FROM ga_events WHERE place >= {_FIRST} AND place < {_NUMBERED} AND asked = 1))",
    f"SELECT place, track, body FROM ga_tracks WHERE {_RANGE}",
    f"SELECT place, body FROM ga_events WHERE place > coalesce((SELECT place FROM k), {_FIRST}) AND {_END} "
    "AND shown > 0",
    f" UNION ALL SELECT {HELD}, place, '', '', '', 0, 0 FROM k",
)
"""A session as `read_sql` has it, of its events only those that come after the ones that a reader holds, if it holds
all from the first that a person said: then there is a row HELD. Nothing of it is done once for each event held: how
many there are is told by their numbers in `shown`. Parameters: app, user, name, now; the number of the first event
held; when the session was made; number and id of the last one, how many are held, the number of the first; app, user,
name, now."""


LIST = (
    "WITH s AS (SELECT id, name, created_at, updated_at FROM ga_sessions WHERE app = ? AND user_id = ? "
    f"AND {ALIVE} ORDER BY updated_at DESC, name DESC LIMIT ? OFFSET ?) "
    f"SELECT {SESSION} AS part, id AS place, '' AS owner, name, '' AS body, created_at, updated_at FROM s "
    f"UNION ALL {_STATE_ROWS} WHERE app = ? AND user_id IN ('', ?) AND session IN "
    f"(SELECT '' UNION ALL SELECT name FROM s) AND {ALIVE} "
    f"UNION ALL SELECT {SUMMARY}, session, '', filter_key, body, 0, 0 FROM ga_summaries WHERE session IN "
    "(SELECT id FROM s)"
)

CREATE = (
    "INSERT INTO ga_sessions (app, user_id, name, seq, shown, said, words, created_at, updated_at, expires) "
    "VALUES (?, ?, ?, 0, 0, 0, 0, ?, ?, ?) "
    "ON CONFLICT (app, user_id, name) DO NOTHING RETURNING id"
)
WHO_IS_THERE = f"SELECT created_at, seq, expires FROM ga_sessions WHERE {NAMED}"
IS_ALIVE = f"SELECT 1 FROM ga_sessions WHERE {NAMED} AND {ALIVE}"
DELETE = f"DELETE FROM ga_sessions WHERE {NAMED} RETURNING id, expires"
DELETE_EXPIRED = f"DELETE FROM ga_sessions WHERE {NAMED} AND expires <= ? RETURNING id"
EXPIRED = "SELECT app, user_id, name FROM ga_sessions WHERE expires <= ? LIMIT 500"
DELETE_EXPIRED_STATES = "DELETE FROM ga_states WHERE expires <= ?"
_PLACED = ("ga_events", "ga_tracks", "ga_search", "ga_vectors")
DELETE_PLACES = tuple(f"DELETE FROM {table} WHERE place >= ? AND place < ?" for table in _PLACED)
DELETE_KEYED = tuple(f"DELETE FROM {table} WHERE session = ?" for table in ("ga_summaries", "ga_leases"))
DELETE_STATE = "DELETE FROM ga_states WHERE app = ? AND user_id = ? AND session = ?"

TOUCH = f"UPDATE ga_sessions SET seq = seq + ?, updated_at = ?, expires = ? WHERE {NAMED} AND {ALIVE} RETURNING id, seq"
PROLONG = f"UPDATE ga_sessions SET expires = ? WHERE {NAMED} AND {ALIVE} RETURNING id"

_UNKNOWN = "NOT EXISTS (SELECT 1 FROM ga_events WHERE session = ga_sessions.id AND id = ?)"
TOUCH_FOR_EVENT = (
    "UPDATE ga_sessions SET seq = seq + 1, shown = shown + ?, said = said + ?, words = words + ?, updated_at = ?, "
    f"expires = ? WHERE {NAMED} AND {ALIVE} AND {_UNKNOWN} RETURNING id, seq, shown, said"
)
_EVENT = "INSERT INTO ga_events (place, session, said, id, at, shown, asked, body)"
INSERT_EVENT = f"{_EVENT} VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_SAID = "INSERT INTO ga_search (place, seq, scope, role, filter_key, speakers, size, words, marks)"
INSERT_SAID = f"{_SAID} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
KNOWN_EVENT = (
    "SELECT body, place FROM ga_events WHERE id = ? AND session = "
    f"(SELECT id FROM ga_sessions WHERE {NAMED} AND {ALIVE})"
)
INSERT_TRACK = "INSERT INTO ga_tracks (place, track, at, body) VALUES (?, ?, ?, ?)"

_PUT = "ON CONFLICT (app, user_id, session, key) DO UPDATE SET value = excluded.value, expires = excluded.expires"
PUT_STATE = f"INSERT INTO ga_states (app, user_id, session, key, value, expires) VALUES (?, ?, ?, ?, ?, ?) {_PUT}"
SHARED = f"SELECT key, value FROM ga_states WHERE app = ? AND user_id = ? AND session = '' AND {ALIVE}"

SUMMARY_OF = "SELECT body FROM ga_summaries WHERE session = ? AND filter_key = ?"
PUT_SUMMARY = (
    "INSERT INTO ga_summaries (session, filter_key, body) VALUES (?, ?, ?) "
    "ON CONFLICT (session, filter_key) DO UPDATE SET body = excluded.body"
)


@lru_cache(maxsize=64)
def append_at_once(values: int, said: bool) -> str:
    """TOUCH_FOR_EVENT, INSERT_EVENT, INSERT_SAID (if it can be found) and so many PUT_STATE as one statement of
    PostgreSQL, which commits by itself.

    Its parameters are those of these, of the event without place, session and said, of what was said without place
    and number. Its row has the number
    of the event, 0 if there is no such session or the event is there. Two writers that bring the same event at the same
    moment: the second waits for the first at the session's row, doesn't see the event yet, and then adds nothing.
    """
    found = states = ""
    if said:
        found = (
            f", f AS ({_SAID} SELECT s.id * {STRIDE} + s.said, s.seq, ?::text, ?::text, ?::text, ?::text, ?::bigint, "
            "?::text, ?::text FROM s, e)"
        )
    if values:
        rows = ", ".join(["(?::text, ?::text, ?::text, ?::text, ?::text, ?::float8)"] * values)
        states = (
            ", p AS (INSERT INTO ga_states (app, user_id, session, key, value, expires) "
            f"SELECT v.* FROM e, (VALUES {rows}) v {_PUT})"
        )
    return (
        f"WITH s AS ({TOUCH_FOR_EVENT}), e AS ({_EVENT} "
        f"SELECT s.id * {STRIDE} + s.seq, s.id, s.said, ?::text, ?::float8, ?::int * s.shown, ?::int, ?::text FROM s "
        f"ON CONFLICT (session, id) DO NOTHING RETURNING place){found}{states} "
        f"SELECT coalesce((SELECT mod(place, {STRIDE}) FROM e), 0)"
    )
