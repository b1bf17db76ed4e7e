"""How a row and the state that it stands for are read, as generators of statements (see `operations`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from graphagent.checkpoint.fold import fold_values
from graphagent.checkpoint.sql.operations import Claim, Dialect, Operation, acquire
from graphagent.checkpoint.sql.plain import merge_plain
from graphagent.checkpoint.sql.rows import (
    COLUMNS,
    FRAME_SHIFT,
    SOURCES,
    decode_deltas,
    fold_list_blobs,
    row_id,
    seq_of,
)

AT_ONCE = 256
"""Rows that are read with all of their changes at once; of a longer history what is needed is read apart."""

_BASE, _SNAP, _ROOT, _DELTA = (COLUMNS.index(name) for name in ("base", "snap", "root", "delta"))
_STOPPED = tuple(SOURCES.index(source) for source in ("interrupt", "error"))  # may have activations beside them
_ROW = (
    f"SELECT r.id, {', '.join('r.' + name for name in COLUMNS)}, s.run_id, s.fingerprint, {{newest}} AS newest "
    "FROM ga_lineages l JOIN ga_frames f ON f.lineage = l.id JOIN ga_rows r ON r.id = {which} "
    "JOIN ga_runs s ON s.id = r.run WHERE l.name = ? AND f.namespace = ?"
)
_NEWEST_ROW = _ROW.format(
    newest="1",
    which="(SELECT id FROM ga_rows WHERE id BETWEEN (f.id << 32) AND ((f.id + 1) << 32) - 1 ORDER BY id DESC LIMIT 1)",
)
_ROW_AT = _ROW.format(
    newest="NOT EXISTS (SELECT 1 FROM ga_rows WHERE id > r.id AND id < ((f.id + 1) << 32))",
    which="(f.id << 32) + ?",
)
_NEWEST_WHOLE, _WHOLE_AT = (
    f"WITH h AS ({row}) "
    f"SELECT 0 AS part, id, {', '.join(COLUMNS)}, run_id, fingerprint, newest, (SELECT pointer FROM ga_rows "
    "WHERE id >= (h.id >> 32 << 32) + h.root ORDER BY id LIMIT 1) AS start FROM h "
    + "".join(
        f"UNION ALL SELECT {part}, {key}, {', '.join(blob if name == 'delta' else 'NULL' for name in COLUMNS)}, "
        f"NULL, NULL, NULL, NULL FROM h {rest} "
        for part, key, blob, rest in (
            (1, "r.id", "r.delta", "JOIN ga_rows r ON r.id BETWEEN (h.id >> 32 << 32) + h.snap AND h.id"),
            (
                2,
                "r.id",
                "r.lists",
                "JOIN ga_rows r ON r.id BETWEEN (h.id >> 32 << 32) + h.root AND h.id WHERE r.lists IS NOT NULL",
            ),
            (
                3,
                "a.position",
                "a.body",
                f"JOIN ga_activations a ON a.base = coalesce((h.id >> 32 << 32) + h.base, h.id) "
                f"WHERE h.source IN {_STOPPED}",
            ),
        )
    )
    + "ORDER BY 1, 2"
    for row in (_NEWEST_ROW, _ROW_AT)
)
"""The row, then what its values are folded from, its lists and the activations beside it: all in one statement."""

_CHANGES = "SELECT id, delta, lists, pointer FROM ga_rows WHERE id BETWEEN ? AND ? ORDER BY id"
_ACTIVATIONS = "SELECT position, body FROM ga_activations WHERE base = ? ORDER BY position"


class Place(NamedTuple):
    """A row of a lineage: of a frame the newest one, or the one with `seq`."""

    namespace: str
    seq: int | None


class Found(NamedTuple):
    """A row as columns, its folded state as plain data, and the figures of `Loaded`.

    `columns` are `COLUMNS`, then run id and fingerprint. `finished`: position and body of the activations that are
    kept beside a row at which a step stopped, None of another row.
    """

    frame: int
    seq: int
    columns: Sequence[Any]
    values: dict[str, Any]
    lists: dict[str, list[Any]]
    newest: bool
    delta_rows: int
    delta_size: int
    snap_size: int
    finished: list[tuple[int, bytes]] | None


def load(lineage: str, namespace: str, seq: int | None) -> Operation[Found | None]:
    """A row and what it builds on."""
    if seq is None:
        rows = yield _NEWEST_ROW, (lineage, namespace)
    else:
        rows = yield _ROW_AT, (seq, lineage, namespace)
    if not rows:
        return None
    key, *columns, newest = rows[0]
    frame = key >> FRAME_SHIFT
    finished = None
    if columns[0] in _STOPPED:
        finished = yield _ACTIVATIONS, (row_id(frame, seq_of(key) if columns[_BASE] is None else columns[_BASE]),)
    blobs, lists = yield from _state(frame, seq_of(key), columns)
    return found_of(key, columns, bool(newest), blobs, lists, finished)


class Elsewhere(Exception):
    """The lists of a row go back to another row: more than one statement is needed to read them."""


def load_alone(lineage: str, namespace: str, seq: int | None) -> Operation[Found | None]:
    """A row and what it builds on, in one statement. Raises Elsewhere."""
    if seq is None:
        rows = yield _NEWEST_WHOLE, (lineage, namespace)
    else:
        rows = yield _WHOLE_AT, (seq, lineage, namespace)
    if not rows:
        return None
    _, key, *columns, newest, start = rows[0]
    if start is not None:
        raise Elsewhere
    blobs, lists, finished = ([(row[1], row[2 + _DELTA]) for row in rows if row[0] == part] for part in (1, 2, 3))
    return found_of(
        key,
        columns,
        bool(newest),
        [blob for _, blob in blobs],
        fold_list_blobs([blob for _, blob in lists]),
        finished if columns[0] in _STOPPED else None,
    )


def found_of(
    key: int,
    columns: Sequence[Any],
    newest: bool,
    blobs: Sequence[bytes | None],
    lists: dict[str, list[Any]],
    finished: list[tuple[int, bytes]] | None,
) -> Found:
    """A row from its parts; `blobs` is the column `delta` of the rows that its values are folded from."""
    sizes = [0 if blob is None else len(blob) for blob in blobs]
    return Found(
        frame=key >> FRAME_SHIFT,
        seq=seq_of(key),
        columns=columns,
        values=fold_values(decode_deltas(blobs), merge_plain),
        lists=lists,
        newest=newest,
        delta_rows=len(blobs) - 1,
        delta_size=sum(sizes[1:]),
        snap_size=sizes[0],
        finished=finished,
    )


def _state(
    frame: int, seq: int, columns: Sequence[Any]
) -> Operation[tuple[Sequence[bytes | None], dict[str, list[Any]]]]:
    """The deltas and the lists of a row."""
    snap, root = columns[_SNAP], columns[_ROOT]
    first = min(snap, root)
    if seq - first < AT_ONCE:
        rows = yield _CHANGES, (row_id(frame, first), row_id(frame, seq))
        state = state_of(rows, row_id(frame, snap), row_id(frame, root))
        if state is not None:
            return state
    deltas = yield from deltas_from(frame, snap, seq)
    return deltas, (yield from lists_at(frame, root, seq))


def state_of(
    rows: Sequence[tuple[int, bytes | None, bytes | None, int | None]], snap: int, root: int
) -> tuple[Sequence[bytes | None], dict[str, list[Any]]] | None:
    """The deltas and the lists of the last of `rows`, which are (id, delta, lists, pointer) from row `snap` and row
    `root` on (ids). None if the history of the lists begins at another row."""
    segment = [row for row in rows if row[0] >= root]
    if segment[0][3] is not None:
        return None
    return [row[1] for row in rows if row[0] >= snap], _folded([[row[2] for row in segment if row[2] is not None]])


def deltas_from(frame: int, snap: int, seq: int) -> Operation[list[bytes | None]]:
    """The column `delta` of the rows that the values of row `seq` are folded from."""
    rows = yield (
        "SELECT delta FROM ga_rows WHERE id BETWEEN ? AND ? ORDER BY id",
        (row_id(frame, snap), row_id(frame, seq)),
    )
    return [row[0] for row in rows]


def lists_at(frame: int, root: int, seq: int) -> Operation[dict[str, list[Any]]]:
    """The append-like fields at row `seq`: along the pointers to where their history begins."""
    return _folded((yield from _segments(frame, root, seq)))


def _segments(frame: int, root: int, seq: int) -> Operation[list[list[bytes]]]:
    """The column `lists` from row `root` to row `seq`, then that of what row `root` points to, and so on."""
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
            return segments
        first, last = row_id(frame, start[0][1]), start[0][0]


def _folded(segments: Sequence[list[bytes]]) -> dict[str, list[Any]]:
    """The lists after all changes, of which the newest segment comes first."""
    return fold_list_blobs([blob for segment in reversed(segments) for blob in segment])


def take(claim: Claim, reads: Place | None, dialect: Dialect) -> Operation[tuple[int, int, Found | None]]:
    """Take a lineage and read a row of it, if asked to; returns its key, the token, what was found.

    Raises LineageBusy.
    """
    key, token = yield from acquire(claim, dialect)
    return key, token, None if reads is None else (yield from load(claim.lineage, *reads))
