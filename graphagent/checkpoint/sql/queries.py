"""What the SQL stores are asked, as generators of statements (see `operations`)."""

from __future__ import annotations

from graphagent.checkpoint.plain_json import loads
from graphagent.checkpoint.record import EffectRow, Header, Row
from graphagent.checkpoint.sql.operations import Operation
from graphagent.checkpoint.sql.plain import loads_each
from graphagent.checkpoint.sql.rows import (
    COLUMNS,
    FRAME_SHIFT,
    decode_deltas,
    decode_lists,
    decode_row,
    parent_of,
    seq_of,
    source_of,
)

_FRAME = "FROM ga_lineages l JOIN ga_frames f ON f.lineage = l.id"
_HISTORY = (
    f"WITH z AS (SELECT f.id << 32 AS zero {_FRAME} WHERE l.name = ? AND f.namespace = ?) "
    "SELECT r.id, r.source, r.step, r.parent, r.created_at, r.nodes, s.run_id, s.fingerprint, p.id FROM ("
    "SELECT id, source, step, parent, created_at, nodes, run FROM ga_rows "
    "WHERE id BETWEEN (SELECT zero FROM z) AND (SELECT zero + ? FROM z) ORDER BY id DESC LIMIT ?"
    ") r JOIN ga_runs s ON s.id = r.run LEFT JOIN ga_pins p ON p.id = r.id ORDER BY r.id DESC"
)
_CHANGES = (
    f"SELECT r.id, {', '.join('r.' + name for name in COLUMNS)}, s.run_id, s.fingerprint {_FRAME} "
    "JOIN ga_rows r ON r.id BETWEEN (f.id << 32) + ? AND (f.id << 32) + ? JOIN ga_runs s ON s.id = r.run "
    "WHERE l.name = ? AND f.namespace = ? ORDER BY r.id"
)
_DELTA, _LISTS = COLUMNS.index("delta"), COLUMNS.index("lists")
_ACTIVATIONS = (
    f"SELECT a.position, a.body {_FRAME} JOIN ga_activations a ON a.base = (f.id << 32) + ? "
    "WHERE l.name = ? AND f.namespace = ? ORDER BY a.position"
)
_EFFECTS = (
    f"SELECT e.position, e.name, e.ordinal, e.committed, e.result {_FRAME} "
    "JOIN ga_effects e ON e.base = (f.id << 32) + ? WHERE l.name = ? AND f.namespace = ?"
)
_LAST = (1 << FRAME_SHIFT) - 1
_NO_LIMIT = 1 << 62


def history(lineage: str, namespace: str, limit: int | None, before: int | None) -> Operation[list[Header]]:
    """Headers, newest first."""
    last = _LAST if before is None else min(before - 1, _LAST)
    rows = yield _HISTORY, (lineage, namespace, last, _NO_LIMIT if limit is None else limit)
    nodes = loads_each([row[5] for row in rows])
    headers = []
    for row, names in zip(rows, nodes, strict=True):
        key, source, step, parent, created_at, _, run_id, fingerprint, pinned = row
        headers.append(
            Header(
                lineage=lineage,
                namespace=namespace,
                seq=seq_of(key),
                parent=parent_of(seq_of(key), parent),
                source=source_of(source),
                step=step,
                nodes=tuple(names),
                created_at=created_at,
                run_id=run_id,
                fingerprint=fingerprint,
                pinned=pinned is not None,
            )
        )
    return headers


def changes(lineage: str, namespace: str, first: int, last: int) -> Operation[list[Row]]:
    """Rows with what each of them changed, as plain data, oldest first."""
    found = yield _CHANGES, (max(first, 0), min(last, _LAST), lineage, namespace)
    rows = [decode_row(seq_of(key), columns, None) for key, *columns in found]
    deltas = [columns[_DELTA] for _, *columns in found]
    lists = [columns[_LISTS] for _, *columns in found]
    changed = (row for row, delta in zip(rows, deltas, strict=True) if delta is not None)
    for row, change in zip(changed, decode_deltas(deltas), strict=True):
        row.values, row.patches = change
    listed = (row for row, blob in zip(rows, lists, strict=True) if blob is not None)
    for row, delta in zip(listed, decode_lists([blob for blob in lists if blob is not None]), strict=True):
        row.lists = delta
    return rows


def activations(lineage: str, namespace: str, base: int) -> Operation[list[tuple[int, bytes]]]:
    """Position and body of the kept activations of an open step, by position."""
    return (yield _ACTIVATIONS, (base, lineage, namespace))


def effects(lineage: str, namespace: str, base: int) -> Operation[list[EffectRow]]:
    """The ledger of a base row, by position, name and ordinal."""
    rows = yield _EFFECTS, (base, lineage, namespace)
    return [
        EffectRow(base, position, name, ordinal, bool(committed), None if result is None else loads(result))
        for position, name, ordinal, committed, result in sorted(rows, key=lambda row: row[:3])
    ]


def graph(fingerprint: str) -> Operation[bytes | None]:
    """The document of a graph as it was stored."""
    rows = yield "SELECT document FROM ga_graphs WHERE fingerprint = ?", (fingerprint,)
    return rows[0][0] if rows else None


def namespaces(lineage: str) -> Operation[list[str]]:
    """The frames of a lineage that have rows."""
    rows = yield (
        "SELECT f.namespace FROM ga_frames f JOIN ga_lineages l ON l.id = f.lineage WHERE l.name = ? "
        "AND EXISTS (SELECT 1 FROM ga_rows r WHERE r.id >= f.id * 4294967296 AND r.id < (f.id + 1) * 4294967296)",
        (lineage,),
    )
    return sorted(row[0] for row in rows)


def lineages(prefix: str, limit: int | None) -> Operation[list[str]]:
    """Lineages that have rows and begin with `prefix`, in the order of code points."""
    rows = yield (
        "SELECT l.name FROM ga_lineages l WHERE substr(l.name, 1, CAST(? AS INTEGER)) = ? AND EXISTS ("
        "SELECT 1 FROM ga_frames f JOIN ga_rows r ON r.id >= f.id * 4294967296 AND r.id < (f.id + 1) * 4294967296 "
        "WHERE f.lineage = l.id)",
        (len(prefix), prefix),
    )
    return sorted(row[0] for row in rows)[:limit]
