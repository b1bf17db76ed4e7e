"""The SQL text of the search index, for both databases; `?` are parameters.

A word is in the index with the user's scope before it (`search_text.scope_of`), so the places of a word are those of
one user, however many others there are. SQLite has them in an FTS5 table that triggers on `ga_search` keep, PostgreSQL
in a GIN index on the words of a row; both tell only in which messages a word stands, the rest is in the rows.
"""

from __future__ import annotations

from runner.sessions.statements import ALIVE, NAMED, STRIDE
from runner.sql.full_text import TOKENS

SESSIONS = f"SELECT id, name, said, words FROM ga_sessions WHERE app = ? AND user_id = ? AND {ALIVE}"
SESSION = f"{SESSIONS} AND name = ?"


def _places(bounds: str) -> dict[str, str]:
    return {
        "sqlite": (
            "SELECT (SELECT json_group_array(place) FROM (SELECT rowid AS place FROM ga_search_words WHERE "
            f"ga_search_words MATCH w.value {bounds.format('rowid')} ORDER BY rowid DESC LIMIT ?)) "
            "FROM json_each(?) w ORDER BY w.key"
        ),
        "postgresql": (  # OFFSET 0 and place + 0: else it may go through all messages by place
            "SELECT (SELECT string_agg(int8send(place), ''::bytea) FROM (SELECT place FROM (SELECT place "
            f"FROM ga_search WHERE {TOKENS} @> ARRAY[w.value] {bounds.format('place + 0')} OFFSET 0) a "
            "ORDER BY place DESC LIMIT ?) q) "
            "FROM unnest(?::text[]) WITH ORDINALITY AS w(value, key) ORDER BY w.key"
        ),
    }


PLACES = _places("")
"""For each word its places, newest first, or NULL: as a JSON array (SQLite), or 8 bytes each (PostgreSQL, where that
takes a sixth off). Parameters: how many at most, the tokens (SQLite: as a JSON array)."""
PLACES_WITHIN = _places("AND {0} >= ? AND {0} < ? AND NOT ({0} >= ? AND {0} < ?)")
"""The same in a span, whose four numbers are the first parameters."""


def token(dialect: str, scope: str, word: str) -> str:
    """A word of a user as PLACES takes it."""
    return f'"{scope}{word}"' if dialect == "sqlite" else f"{scope}{word};"


IN = {"sqlite": "IN (SELECT value FROM json_each(?))", "postgresql": "= ANY(?::bigint[])"}

_ROW = "s.place, s.seq, s.role, s.filter_key, s.speakers, s.size, s.words"
ROWS = {
    "sqlite": (
        f"SELECT {_ROW} FROM json_each(?) r CROSS JOIN ga_search s "
        "WHERE s.place >= json_extract(r.value, '$[0]') AND s.place < json_extract(r.value, '$[1]')"
    ),
    "postgresql": (  # OFFSET 0: each run is looked up, however small the table is said to be
        "SELECT f.* FROM json_array_elements(?::json) AS r(run) CROSS JOIN LATERAL "
        f"(SELECT {_ROW} FROM ga_search s WHERE s.place >= (r.run->>0)::bigint AND s.place < (r.run->>1)::bigint "
        "OFFSET 0) f"
    ),
}
"""Parameter: the runs of places as a JSON array of pairs, first and one behind the last."""
EVENTS = {dialect: f"SELECT place, body FROM ga_events WHERE place {some}" for dialect, some in IN.items()}

_IDS = {
    "sqlite": "WITH ids AS (SELECT value AS id FROM json_each(?))",
    "postgresql": "WITH ids AS (SELECT unnest(?::bigint[]) AS id)",
}
VECTORS = {
    dialect: (
        f"{ids} SELECT v.place, v.vector FROM ids CROSS JOIN ga_vectors v "
        f"WHERE v.place >= ids.id * {STRIDE} AND v.place < (ids.id + 1) * {STRIDE} AND v.name = ?"
    )
    for dialect, ids in _IDS.items()
}
WITHOUT_VECTOR = {
    dialect: (
        f"{ids} SELECT s.place, e.body FROM ids CROSS JOIN ga_search s JOIN ga_events e ON e.place = ids.id * {STRIDE} "
        f"+ s.seq WHERE s.place >= ids.id * {STRIDE} AND s.place < (ids.id + 1) * {STRIDE} AND s.role <> '' "
        "AND NOT EXISTS (SELECT 1 FROM ga_vectors v WHERE v.place = s.place AND v.name = ?) "
        "ORDER BY s.place DESC LIMIT ?"
    )
    for dialect, ids in _IDS.items()
}
"""Parameters of these two: keys of sessions, the embedder's name; how many."""
PUT_VECTOR = (
    "INSERT INTO ga_vectors (place, name, vector) SELECT place, ?, ? FROM ga_search WHERE place = ? "
    "ON CONFLICT (place) DO UPDATE SET name = excluded.name, vector = excluded.vector"
)

_ROLES = "role IN (?, ?, ?, ?)"
WINDOW = (
    f"WITH a AS (SELECT e.place, e.session * {STRIDE} AS base, e.session * {STRIDE} + e.said AS said FROM ga_events e "
    f"JOIN ga_sessions s ON s.id = e.session WHERE e.id = ? AND e.session = "
    f"(SELECT id FROM ga_sessions WHERE {NAMED} AND {ALIVE})), "
    "b AS (SELECT seq FROM ga_search WHERE place <= (SELECT said FROM a) AND place > (SELECT base FROM a) "
    f"AND seq < (SELECT place - base FROM a) AND {_ROLES} ORDER BY place DESC LIMIT ?), "
    "c AS (SELECT seq FROM ga_search WHERE place > (SELECT said FROM a) "
    f"AND place < (SELECT base FROM a) + {STRIDE} AND {_ROLES} ORDER BY place LIMIT ?) "
    "SELECT place, body FROM ga_events WHERE place IN (SELECT place FROM a UNION ALL "
    "SELECT (SELECT base FROM a) + seq FROM b UNION ALL SELECT (SELECT base FROM a) + seq FROM c) ORDER BY place"
)
"""An event with so many messages before and after it. Parameters: its id; app, user, name, now; roles; how many before;
roles; how many after."""

LEASE = (
    "INSERT INTO ga_leases (session, filter_key, owner, until) "
    f"SELECT id, ?, ?, ? FROM ga_sessions WHERE {NAMED} AND {ALIVE} "
    "ON CONFLICT (session, filter_key) DO UPDATE SET owner = excluded.owner, until = excluded.until "
    "WHERE ga_leases.owner = excluded.owner OR ga_leases.until <= ? RETURNING session"
)
"""Parameters: filter key, owner, until when; app, user, name, now; now."""
RELEASE = (
    f"DELETE FROM ga_leases WHERE filter_key = ? AND owner = ? AND session = (SELECT id FROM ga_sessions WHERE {NAMED})"
)
