"""What the SQL stores are asked, as generators of statements (see `operations`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphagent.checkpoint.fold import fold_values
from graphagent.checkpoint.plain_json import loads
from graphagent.checkpoint.record import EffectRow, Header
from graphagent.checkpoint.sql.operations import FRAME, Operation
from graphagent.checkpoint.sql.plain import loads_each, merge_plain
from graphagent.checkpoint.sql.rows import (
    COLUMNS,
    decode_deltas,
    fold_list_blobs,
    parent_of,
    row_id,
    seq_of,
    source_of,
)

_ROW = (
    f"SELECT r.id, {', '.join('r.' + name for name in COLUMNS)}, s.run_id, s.fingerprint "
    "FROM ga_rows r JOIN ga_runs s ON s.id = r.run WHERE r.id BETWEEN ? AND ? ORDER BY r.id DESC LIMIT 1"
)
_HISTORY = (
    "SELECT r.id, r.source, r.step, r.parent, r.created_at, r.nodes, s.run_id, s.fingerprint, p.id FROM ("
    "SELECT id, source, step, parent, created_at, nodes, run FROM ga_rows "
    "WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
    ") r JOIN ga_runs s ON s.id = r.run LEFT JOIN ga_pins p ON p.id = r.id ORDER BY r.id DESC"
)
_NO_LIMIT = 1 << 62
_SNAP, _ROOT = 1 + COLUMNS.index("snap"), 1 + COLUMNS.index("root")


@dataclass(frozen=True, slots=True)
class Found:
    """A row as columns, its folded state as plain data, and the figures of `Loaded`."""

    seq: int
    columns: tuple[Any, ...]
    values: dict[str, Any]
    lists: dict[str, list[Any]]
    newest: bool
    delta_rows: int
    delta_size: int
    snap_size: int


def load(lineage: str, namespace: str, seq: int | None) -> Operation[Found | None]:
    """A row and what it builds on."""
    found = yield FRAME, (lineage, namespace)
    if not found:
        return None
    frame = found[0][0]
    last = row_id(frame + 1, 0) - 1
    rows = yield _ROW, (row_id(frame, 0), last) if seq is None else (row_id(frame, seq), row_id(frame, seq))
    if not rows:
        return None
    row = rows[0]
    newer = [] if seq is None else (yield "SELECT 1 FROM ga_rows WHERE id > ? AND id <= ? LIMIT 1", (row[0], last))
    blobs = yield from deltas_from(frame, row[_SNAP], seq_of(row[0]))
    sizes = [0 if blob is None else len(blob) for blob in blobs]
    return Found(
        seq=seq_of(row[0]),
        columns=row[1:],
        values=fold_values(decode_deltas(blobs), merge_plain),
        lists=(yield from lists_at(frame, row[_ROOT], seq_of(row[0]))),
        newest=not newer,
        delta_rows=len(blobs) - 1,
        delta_size=sum(sizes[1:]),
        snap_size=sizes[0],
    )


def deltas_from(frame: int, snap: int, seq: int) -> Operation[list[bytes | None]]:
    """The column `delta` of the rows that the values of row `seq` are folded from."""
    rows = yield (
        "SELECT delta FROM ga_rows WHERE id BETWEEN ? AND ? ORDER BY id",
        (row_id(frame, snap), row_id(frame, seq)),
    )
    return [row[0] for row in rows]


def lists_at(frame: int, root: int, seq: int) -> Operation[dict[str, list[Any]]]:
    """The append-like fields at row `seq`: along the pointers to where their history begins."""
    segments: list[list[bytes]] = []
    first, last = row_id(frame, root), row_id(frame, seq)
    while True:
        rows = yield (
            "SELECT lists FROM ga_rows WHERE id BETWEEN ? AND ? AND lists IS NOT NULL ORDER BY id",
            (first, last),
        )
        segments.append([row[0] for row in rows])
        start = yield (
            "SELECT p.id, p.root FROM ga_rows f JOIN ga_rows p ON p.id = ? + f.pointer "
            "WHERE f.id = (SELECT min(id) FROM ga_rows WHERE id >= ?)",
            (row_id(frame, 0), first),
        )
        if not start:
            return fold_list_blobs([blob for segment in reversed(segments) for blob in segment])
        first, last = row_id(frame, start[0][1]), start[0][0]


def history(lineage: str, namespace: str, limit: int | None, before: int | None) -> Operation[list[Header]]:
    """Headers, newest first."""
    found = yield FRAME, (lineage, namespace)
    if not found:
        return []
    frame = found[0][0]
    end = row_id(frame + 1, 0) if before is None else row_id(frame, before)
    rows = yield _HISTORY, (row_id(frame, 0), end - 1, _NO_LIMIT if limit is None else limit)
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


def activations(lineage: str, namespace: str, base: int) -> Operation[list[tuple[int, bytes]]]:
    """Position and body of the kept activations of an open step, by position."""
    found = yield FRAME, (lineage, namespace)
    if not found:
        return []
    key = row_id(found[0][0], base)
    rows = yield "SELECT position, body FROM ga_activations WHERE base = ? ORDER BY position", (key,)
    return [(position, body) for position, body in rows]


def effects(lineage: str, namespace: str, base: int) -> Operation[list[EffectRow]]:
    """The ledger of a base row, by position, name and ordinal."""
    found = yield FRAME, (lineage, namespace)
    if not found:
        return []
    rows = yield (
        "SELECT position, name, ordinal, committed, result FROM ga_effects WHERE base = ?",
        (row_id(found[0][0], base),),
    )
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
