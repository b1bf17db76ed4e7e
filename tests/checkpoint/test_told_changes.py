"""Rows with what each of them changed: they add up to what `load` says."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.region_run import Nodes, graph_with
from support.regions import Builder

from graphagent import Executor
from graphagent.checkpoint.changes import TellsChanges, rows_between
from graphagent.checkpoint.fold import Change, fold_lists, fold_values, merge_mapping
from graphagent.checkpoint.sql.plain import merge_plain

pytestmark = pytest.mark.anyio


async def test_changes_add_up_to_the_state(store: Any, lineage: str) -> None:
    """Folded in order, the changes of all rows are the state of the last; each row is as `load` has it besides."""
    builder = Builder(random.Random(5))
    region = builder.region(2)
    await Executor(graph_with(builder, region, Nodes(5, 0.0)), store).run(lineage=lineage)
    assert isinstance(store, TellsChanges)
    newest = (await store.history(lineage))[0].seq
    rows = await store.changes(lineage, "", 0, newest)
    loaded = [await store.load(lineage, "", row.seq) for row in rows]
    assert [(row.seq, row.marking, row.nodes, row.note) for row in rows] == [
        (one.row.seq, one.row.marking, one.row.nodes, one.row.note) for one in loaded
    ]
    merge = merge_plain if store.persistent else merge_mapping
    values = fold_values([Change(row.values, row.patches) for row in rows], merge)
    assert {**values, **fold_lists([row.lists for row in rows])} == loaded[-1].values


async def test_a_part_of_the_rows(store: Any, lineage: str) -> None:
    """Both bounds are included; rows that aren't there are left out; an unknown lineage has none."""
    builder = Builder(random.Random(5))
    region = builder.region(2)
    await Executor(graph_with(builder, region, Nodes(5, 0.0)), store).run(lineage=lineage)
    assert [row.seq for row in await store.changes(lineage, "", 1, 2)] == [1, 2]
    assert [row.seq async for row in rows_between(store, lineage, "", -3, 1)] == [0, 1]
    assert await store.changes(lineage, "", 500, 600) == []
    assert await store.changes(f"{lineage}-other", "", 0, 5) == []
