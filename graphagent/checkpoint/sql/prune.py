"""Pruning in SQL: gather the facts, let `retention` decide, fold what is needed, remove the rest."""

from __future__ import annotations

import time
from collections.abc import Sequence

from graphagent.checkpoint.fold import fold_values, merge_lists
from graphagent.checkpoint.plain_json import dumps, loads
from graphagent.checkpoint.record import Retention
from graphagent.checkpoint.retention import Gap, RowFacts, bases_to_keep, gaps, origins_of, rows_to_keep
from graphagent.checkpoint.sql.loading import deltas_from, lists_at
from graphagent.checkpoint.sql.operations import Dialect, Operation
from graphagent.checkpoint.sql.plain import merge_plain
from graphagent.checkpoint.sql.rows import (
    decode_deltas,
    decode_lists,
    encode_plain_lists,
    parent_of,
    questions_of,
    row_id,
    seq_of,
)

_FACTS = (
    "SELECT r.id, r.parent, r.base, r.snap, r.root, r.pointer, r.created_at, "
    "length(r.delta), length(r.lists), length(r.nodes) + length(r.marking) + coalesce(length(r.extra), 0), "
    "p.id, r.extra, r.marking FROM ga_rows r LEFT JOIN ga_pins p ON p.id = r.id WHERE r.id BETWEEN ? AND ? "
    "ORDER BY r.id"
)


def prune_lineage(lineage: str, policy: Retention, dry_run: bool, dialect: Dialect) -> Operation[tuple[int, int]]:
    """Prune one lineage; returns the rows removed and the bytes freed, snapshots taken off."""
    lock = "" if dry_run else dialect.exclusive
    found = yield f"SELECT id FROM ga_lineages WHERE name = ?{lock}", (lineage,)
    if not found:
        return 0, 0
    key = found[0][0]
    frames = yield "SELECT id, namespace FROM ga_frames WHERE lineage = ?", (key,)
    facts: dict[str, list[RowFacts]] = {}
    for frame, namespace in frames:
        facts[namespace] = yield from _facts(frame)
    keep = rows_to_keep(facts, policy, time.time())
    removed = freed = 0
    for frame, namespace in frames:
        gone = [row for row in facts[namespace] if row.seq not in keep[namespace]]
        removed += len(gone)
        freed += sum(row.size for row in gone)
        if not gone or dry_run:
            continue
        for gap in gaps(facts[namespace], keep[namespace]):
            freed -= yield from _close(frame, gap)
        yield from _forget(frame, facts[namespace], bases_to_keep(facts[namespace], keep[namespace]))
    if removed and not dry_run:
        yield from _drop_unused_runs(key, [frame for frame, _ in frames])
    return removed, freed


def _facts(frame: int) -> Operation[list[RowFacts]]:
    rows = yield _FACTS, (row_id(frame, 0), row_id(frame + 1, 0) - 1)
    facts = []
    for key, parent, base, snap, root, pointer, created_at, delta, lists, rest, pinned, extra, marking in rows:
        seq = seq_of(key)
        facts.append(
            RowFacts(
                seq=seq,
                parent=parent_of(seq, parent),
                base=seq if base is None else base,
                snap=snap,
                root=root,
                pointer=pointer,
                created_at=created_at,
                size=(delta or 0) + (lists or 0) + rest,
                changes=delta is not None,
                listed=lists is not None,
                pinned=pinned is not None,
                asks=tuple(question.frame for question in questions_of(extra) if question.frame is not None),
                origins=origins_of(loads(marking)) if b'"o":' in marking else (),
            )
        )
    return facts


def _close(frame: int, gap: Gap) -> Operation[int]:
    """Carry a gap out; returns by how many bytes the heir grew."""
    key = row_id(frame, gap.heir)
    rows = yield "SELECT snap, root, delta, lists FROM ga_rows WHERE id = ?", (key,)
    snap, root, delta, lists = rows[0]
    before = len(delta or b"") + len(lists or b"")
    if gap.snapshot:
        changes = decode_deltas((yield from deltas_from(frame, snap, gap.heir)))
        snap, delta = gap.heir, dumps([fold_values(changes, merge_plain)])
    if gap.listed:
        lists = yield from _merged_lists(frame, gap)
    if (snap, root) != (rows[0][0], gap.root) or gap.listed:
        yield (
            "UPDATE ga_rows SET snap = ?, root = ?, pointer = ?, delta = ?, lists = ? WHERE id = ?",
            (snap, gap.root, gap.pointer, delta, lists, key),
        )
    for first, last in _runs(gap.seqs):
        yield "DELETE FROM ga_rows WHERE id BETWEEN ? AND ?", (row_id(frame, first), row_id(frame, last))
    return len(delta or b"") + len(lists or b"") - before


def _merged_lists(frame: int, gap: Gap) -> Operation[bytes]:
    rows = yield (
        "SELECT lists FROM ga_rows WHERE id BETWEEN ? AND ? AND lists IS NOT NULL ORDER BY id",
        (row_id(frame, gap.listed[0]), row_id(frame, gap.heir)),
    )
    changes = decode_lists([row[0] for row in rows])
    merged = merge_lists(changes, None)
    if merged is None:
        start = {}
        if gap.before is not None:
            roots = yield "SELECT root FROM ga_rows WHERE id = ?", (row_id(frame, gap.before),)
            start = yield from lists_at(frame, roots[0][0], gap.before)
        merged = merge_lists(changes, start)
    return encode_plain_lists(merged or {})


def _runs(seqs: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring numbers as (first, last)."""
    spans: list[tuple[int, int]] = []
    for seq in seqs:
        if spans and spans[-1][1] == seq - 1:
            spans[-1] = (spans[-1][0], seq)
        else:
            spans.append((seq, seq))
    return spans


def _forget(frame: int, rows: Sequence[RowFacts], bases: set[int]) -> Operation[None]:
    """Remove activations and effects that no row goes on from."""
    span = (row_id(frame, 0), row_id(frame + 1, 0) - 1)
    for table in ("activations", "effects"):
        found = yield f"SELECT DISTINCT base FROM ga_{table} WHERE base BETWEEN ? AND ?", span
        for (key,) in found:
            if seq_of(key) not in bases:
                yield f"DELETE FROM ga_{table} WHERE base = ?", (key,)


def _drop_unused_runs(lineage: int, frames: Sequence[int]) -> Operation[None]:
    used: set[int] = set()
    for frame in frames:
        rows = yield (
            "SELECT DISTINCT run FROM ga_rows WHERE id BETWEEN ? AND ?",
            (row_id(frame, 0), row_id(frame + 1, 0) - 1),
        )
        used.update(row[0] for row in rows)
    for (run,) in (yield "SELECT id FROM ga_runs WHERE lineage = ?", (lineage,)):
        if run not in used:
            yield "DELETE FROM ga_runs WHERE id = ?", (run,)
