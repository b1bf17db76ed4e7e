"""The rows of a frame as they were written, each with what it changed: an optional port of stores.

`load` says what the state was; who looks for where a part of it came from wants thousands of rows and the whole state
of none. A store need not have the port: `rows_between` does without, at the price of a `load` for each row.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Protocol, runtime_checkable

from graphagent.checkpoint.record import Row
from graphagent.checkpoint.store import CheckpointStore

AT_ONCE = 1000
"""Rows that are read at a time."""


@runtime_checkable
class TellsChanges(Protocol):
    """What a `CheckpointStore` may offer besides: its rows without the state that they lead to."""

    async def changes(self, lineage: str, namespace: str, first: int, last: int) -> list[Row]:
        """The rows from `first` to `last`, both included, that are there, with `values`, `patches` and `lists` as they
        are kept: plain data of a persistent store, else the values themselves, which must not be changed. Raises
        LoadError."""
        ...


async def rows_between(
    store: CheckpointStore, lineage: str, namespace: str, first: int, last: int
) -> AsyncIterator[Row]:
    """The rows of a frame from `first` to `last`, oldest first, a bounded number of them in memory at a time.

    Of a store that doesn't tell changes every row is a snapshot: all of the state is in its `values`, lists too, and
    `snap` is its own number.
    """
    if isinstance(store, TellsChanges):
        for start in range(first, last + 1, AT_ONCE):
            for row in await store.changes(lineage, namespace, start, min(last, start + AT_ONCE - 1)):
                yield row
        return
    headers = await store.history(lineage, namespace, before=last + 1, limit=last + 1 - first)
    for header in reversed(headers):
        loaded = await store.load(lineage, namespace, header.seq) if header.seq >= first else None
        if loaded is not None:
            row = loaded.row
            yield replace(row, values=loaded.values, patches={}, lists={}, snap=row.seq)
