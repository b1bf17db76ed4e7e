"""How the SQL stores search runs, as generators of statements (see `operations`).

The newest row of a frame is found by its id, which is made of frame and seq; no index is kept for a search. What a
statement can tell narrows the candidates, newest first; statuses are then judged a chunk at a time until the page is
full, and only runs of the page are looked at more closely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from graphagent.checkpoint.finding import (
    NO_NODES,
    STATUSES,
    Extent,
    RunInfo,
    RunQuery,
    RunStatus,
    Verdict,
    told,
    verdict_on,
)
from graphagent.checkpoint.plain_json import dumps, loads
from graphagent.checkpoint.record import Row, Source
from graphagent.checkpoint.sql.operations import Dialect, Operation
from graphagent.checkpoint.sql.owner import describe, foreign_host, is_dead
from graphagent.checkpoint.sql.rows import COLUMNS, SOURCES, decode_row, seq_of

_CHUNK = 256  # candidates that are judged at once
_NO_LIMIT = 1 << 62
_OPEN: tuple[Source, ...] = ("step", "input", "interrupt", "edit", "fork", "error")
_SOURCES: dict[RunStatus, tuple[Source, ...]] = {
    "completed": ("end", "fork", "edit"),
    "interrupted": ("interrupt", "fork", "edit"),
    "failed": ("error",),
    "limit_reached": ("error", "step"),
    "stalled": ("step", "input", "fork", "edit"),
    "running": _OPEN,
    "unfinished": _OPEN,
}
"""The sources of the newest rows that a status can be judged from."""

_FRAMES = (
    "SELECT r.id, l.name, f.namespace, CASE WHEN l.owner IS NOT NULL AND l.expires >= {now} THEN l.owner END "
    "FROM ga_lineages l JOIN ga_frames f ON f.lineage = l.id JOIN ga_rows r ON r.id = ("
    "SELECT id FROM ga_rows WHERE id BETWEEN (f.id << 32) AND ((f.id + 1) << 32) - 1 ORDER BY id DESC LIMIT 1) "
    "WHERE replace(f.namespace, '@', '') = f.namespace{conditions} "
    "ORDER BY r.created_at DESC, l.name{bytewise} DESC, f.namespace{bytewise} DESC LIMIT ?"
)
_KNOWS_NODE = (  # or is of a graph whose nodes aren't known
    " AND l.id IN (SELECT lineage FROM ga_runs WHERE fingerprint NOT IN ("
    "SELECT fingerprint FROM ga_graphs WHERE NOT {holds}))"
)
_HEADS = (
    f"SELECT r.id, {', '.join('NULL' if name in ('delta', 'lists') else f'r.{name}' for name in COLUMNS)}, "
    "s.run_id, s.fingerprint FROM ga_rows r JOIN ga_runs s ON s.id = r.run WHERE r.id IN ({ids}){conditions}"
)
_HAS_RUN = (  # the order keeps PostgreSQL, which takes a range of ids for a ninth of all rows, from reading all of them
    " AND EXISTS (SELECT 1 FROM ga_frames f JOIN ga_frames g ON g.lineage = f.lineage WHERE f.id = (r.id >> 32) AND ("
    "SELECT id FROM ga_rows WHERE id BETWEEN (g.id << 32) AND ((g.id + 1) << 32) - 1 AND ({first} OR {later}) "
    "ORDER BY id DESC LIMIT 1) IS NOT NULL)"
)
_EXTENTS = (
    "SELECT r.id, (SELECT count(*) FROM ga_rows WHERE id BETWEEN (r.id >> 32 << 32) AND r.id), "
    "(SELECT created_at FROM ga_rows WHERE id >= (r.id >> 32 << 32) ORDER BY id LIMIT 1), "
    "(SELECT nodes FROM ga_rows WHERE id BETWEEN (r.id >> 32 << 32) AND r.id AND nodes <> ? ORDER BY id DESC LIMIT 1) "
    "FROM ga_rows r WHERE r.id IN ({ids})"
)
_OWNERS = "SELECT owner FROM ga_lineages WHERE owner IS NOT NULL GROUP BY owner ORDER BY max(since) DESC"

Document = Mapping[str, Any] | None


class _Candidate(NamedTuple):
    """A root frame by the id of its newest row; `owner` is that of a lease that hasn't run out."""

    id: int
    lineage: str
    namespace: str
    owner: str | None


class _Judged(NamedTuple):
    at: _Candidate
    row: Row
    verdict: Verdict


def find_runs(query: RunQuery, dialect: Dialect) -> Operation[list[RunInfo]]:
    """See `SearchableRuns.find_runs`."""
    sql, parameters = _frames(query, dialect)
    candidates = [_Candidate(*found) for found in (yield sql, parameters)]
    documents: dict[str, Document] = {}
    page: list[_Judged] = []
    alive = lru_cache(maxsize=None)(lambda owner: not is_dead(owner))
    for start in range(0, len(candidates), _CHUNK):
        rows = yield from _heads(candidates[start : start + _CHUNK], query, dialect)
        yield from _read_documents({row.fingerprint for _, row in rows}, documents)
        for at, row in rows:
            held = at.owner is not None and alive(at.owner)
            verdict = verdict_on(row, held, documents[row.fingerprint])
            if query.accepts(verdict):
                page.append(_Judged(at if held else at._replace(owner=None), row, verdict))
        if len(page) >= query.limit:
            break
    return (yield from _told(page[: query.limit], documents))


def written_elsewhere() -> Operation[str | None]:
    """See `SearchableRuns.written_elsewhere`."""
    owners = yield _OWNERS, ()
    return next((host for (owner,) in owners if (host := foreign_host(owner)) is not None), None)


def _frames(query: RunQuery, dialect: Dialect) -> tuple[str, list[Any]]:
    """The statement that finds the candidates, newest first."""
    conditions: list[str] = []
    parameters: list[Any] = []

    def add(condition: str, *given: Any) -> None:
        conditions.append(condition)
        parameters.extend(given)

    if query.prefix:
        add(" AND substr(l.name, 1, CAST(? AS INTEGER)) = ?", len(query.prefix), query.prefix)
    if query.text:
        add(" AND replace(l.name, ?, '') <> l.name", query.text)
    if query.since is not None:
        add(" AND r.created_at >= ?", float(query.since))
    if query.until is not None:
        add(" AND r.created_at <= ?", float(query.until))
    if sources := _sources(query):
        add(f" AND r.source IN ({', '.join(str(SOURCES.index(source)) for source in sources)})")
    if query.status == {"running"}:
        add(f" AND l.owner IS NOT NULL AND l.expires >= {dialect.now}")
    if query.node is not None:
        add(_KNOWS_NODE.format(holds=dialect.holds.format(whole="document", part="?")), dumps(query.node))
    if query.after is not None:
        updated, lineage, namespace = (*query.after, "")[:3]
        names = f"l.name{dialect.bytewise}, f.namespace{dialect.bytewise}"
        add(f" AND (r.created_at, {names}) < (?, ?, ?)", float(updated), lineage, namespace)
    judged = query.status or query.error or query.node is not None
    sql = _FRAMES.format(now=dialect.now, bytewise=dialect.bytewise, conditions="".join(conditions))
    return sql, [*parameters, _NO_LIMIT if judged else query.limit]


def _sources(query: RunQuery) -> list[Source]:
    """The sources of newest rows that can be meant; none where all can."""
    if not query.status:
        return [source for source in _OPEN if source != "interrupt"] if query.error else []
    return [source for source in SOURCES if any(source in _SOURCES[status] for status in query.status)]


def _heads(
    candidates: Sequence[_Candidate], query: RunQuery, dialect: Dialect
) -> Operation[list[tuple[_Candidate, Row]]]:
    """The newest rows of those candidates in whose lineage the wanted node has run, in their order."""
    ids = [candidate.id for candidate in candidates]
    parameters: list[Any] = list(ids)
    has_run = ""
    if query.node is not None:
        within = dialect.holds.format(whole="nodes", part="?")
        has_run = _HAS_RUN.format(first=within, later=within)
        name = dumps(query.node)
        parameters += [b"[" + name, b"," + name]  # not behind a backslash: there it is the end of a longer name
    found = yield _HEADS.format(ids=", ".join("?" * len(ids)), conditions=has_run), parameters
    rows = {key: decode_row(seq_of(key), columns, None) for key, *columns in found}
    return [(candidate, rows[candidate.id]) for candidate in candidates if candidate.id in rows]


def _read_documents(fingerprints: set[str], known: dict[str, Document]) -> Operation[None]:
    """Add the documents of graphs that aren't known yet; None for one that was not kept."""
    new = sorted(fingerprints - known.keys())
    if new:
        marks = ", ".join("?" * len(new))
        found = yield f"SELECT fingerprint, document FROM ga_graphs WHERE fingerprint IN ({marks})", new
        known.update(dict.fromkeys(new))
        known.update((fingerprint, loads(document)) for fingerprint, document in found)


def _told(page: Sequence[_Judged], documents: Mapping[str, Document]) -> Operation[list[RunInfo]]:
    """The runs of a page, with how far their frames go."""
    if not page:
        return []
    ids = [judged.at.id for judged in page]
    found = yield _EXTENTS.format(ids=", ".join("?" * len(ids))), [NO_NODES, *ids]
    extents = {
        key: Extent(rows, began, () if nodes is None else tuple(loads(nodes))) for key, rows, began, nodes in found
    }
    return [
        told(
            (at.lineage, at.namespace),
            row,
            verdict,
            extents[at.id],
            documents[row.fingerprint],
            None if at.owner is None else describe(at.owner),
        )
        for at, row, verdict in page
    ]


assert set(_SOURCES) == set(STATUSES)
