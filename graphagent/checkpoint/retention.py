"""Which rows `prune` removes, and what must be folded into the rows that stay.

The newest row of a frame always stays, so a removed row has a row after it that stays. That one takes over what later
rows build on: its values become a snapshot, its list changes take in those of the removed rows. Rows after that one
need no rewriting: where a row that folding should begin at (`snap`, `root`) is gone, the first row after it that is
left stands in for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from graphagent.checkpoint.record import Retention

Address = tuple[str, int]
"""Namespace and seq of a row."""


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What retention needs to know of a row.

    `size` is in encoded bytes, `asks` are the rows of child graphs that it waits for, `origins` the rows from which
    activations of its frontier started, where that isn't `base` for all (the eager engine).
    """

    seq: int
    parent: int | None
    base: int
    snap: int
    root: int
    pointer: int | None
    created_at: float
    size: int
    changes: bool  # has values or patches
    listed: bool  # has list changes
    pinned: bool = False
    asks: tuple[Address, ...] = ()
    origins: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """Neighbouring rows that go, and `heir`, the row after them, that takes over what it needs of their changes.

    `snapshot` says that it must become one, `listed` which of the rows have list changes for it. `root` and
    `pointer` are the heir's from then on; `before` is the row whose lists the merged change starts from, None for
    empty lists.
    """

    seqs: tuple[int, ...]
    heir: int
    snapshot: bool
    listed: tuple[int, ...]
    root: int
    pointer: int | None
    before: int | None


def rows_to_keep(frames: Mapping[str, Sequence[RowFacts]], policy: Retention, now: float) -> dict[str, set[int]]:
    """The rows of each frame of a lineage that stay: those within all bounds, and those never removed.

    Never removed are the newest row of a frame, pinned rows, and what a row that stays refers to: the start of its
    lists, the row it was forked from, the rows of child graphs whose questions it holds.
    """
    keep: dict[str, set[int]] = {}
    todo: list[tuple[str, RowFacts]] = []
    known = {(namespace, row.seq): row for namespace, rows in frames.items() for row in rows}
    pointers = {namespace: _pointers(rows) for namespace, rows in frames.items()}
    for namespace, rows in frames.items():
        todo += [(namespace, row) for row in _within(rows, policy, now)]
        keep[namespace] = set()
    while todo:
        namespace, row = todo.pop()
        if row.seq in keep[namespace]:
            continue
        keep[namespace].add(row.seq)
        wanted: list[Address] = list(row.asks)
        if row.parent is not None and row.parent != row.seq - 1:
            wanted.append((namespace, row.parent))
        pointer = pointers[namespace].get(row.seq)
        if pointer is not None:
            wanted.append((namespace, pointer))
        todo += [(address[0], known[address]) for address in wanted if address in known]
    return keep


def _within(rows: Sequence[RowFacts], policy: Retention, now: float) -> Iterator[RowFacts]:
    total = 0
    for place, row in enumerate(reversed(rows)):
        total += row.size
        inside = (
            (policy.keep_last is None or place < policy.keep_last)
            and (policy.max_age is None or row.created_at >= now - policy.max_age)
            and (policy.max_bytes is None or total <= policy.max_bytes)
        )
        if place == 0 or inside or row.pinned:
            yield row


def _pointers(rows: Sequence[RowFacts]) -> dict[int, int | None]:
    """The pointer that the lists of each row begin with."""
    found: dict[int, int | None] = {}
    pointer: int | None = None
    for row, starts in _segments(rows):
        pointer = row.pointer if starts else pointer
        found[row.seq] = pointer
    return found


def _segments(rows: Sequence[RowFacts]) -> Iterator[tuple[RowFacts, bool]]:
    """Every row, and whether the history of its lists starts with it."""
    previous: int | None = None
    for row in rows:
        yield row, previous is None or row.root > previous
        previous = row.seq


def gaps(rows: Sequence[RowFacts], keep: Set[int]) -> Iterator[Gap]:
    """What to do in a frame, oldest first: each gap can be carried out before the next is looked at."""
    gone: list[RowFacts] = []
    listed: list[int] = []
    last: int | None = None  # the newest row that stayed of those whose lists the row at hand goes on from
    pointer: int | None = None
    for row, starts in _segments(rows):
        if starts:
            listed, last, pointer = [], None, row.pointer
        if row.seq not in keep:
            gone.append(row)
            listed += [row.seq] if row.listed else []
            continue
        if gone:
            lost = any(r.seq >= row.snap and (r.changes or r.seq == r.snap) for r in gone)
            yield Gap(
                seqs=tuple(r.seq for r in gone),
                heir=row.seq,
                snapshot=lost and row.snap != row.seq,
                listed=tuple(listed),
                root=row.seq if last is None else row.root,
                pointer=pointer if last is None else row.pointer,
                before=pointer if last is None else last,
            )
        gone, listed, last = [], [], row.seq


def bases_to_keep(rows: Sequence[RowFacts], keep: Set[int]) -> set[int]:
    """The base rows whose activations and effects are still of use: some row that stays would go on from them."""
    bases = set(keep)
    for row in rows:
        if row.seq in keep:
            bases.update((row.base, *row.origins))
    return bases


def origins_of(marking: Any) -> tuple[int, ...]:
    """The rows from which the activations of a stored marking started, where the engine wrote them down.

    It does so as `{"m": marking, "o": [[base, position, visit, started], ...]}` (see `graphagent.engine.persist`).
    """
    origins = marking.get("o", ()) if type(marking) is dict and "m" in marking else ()
    return tuple(origin[0] for origin in origins)
