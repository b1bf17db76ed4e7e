"""Comparison of what two lineages have stored."""

from __future__ import annotations

from typing import Any

import pytest
from support.graphs import flow

from graphagent import Executor, NodeContext
from graphagent.testing.compare import content, differences

pytestmark = pytest.mark.anyio


async def test_two_equal_runs_have_equal_content(store: Any, lineage: str) -> None:
    """Names of lineages, run ids and times are left out; rows, states, activations and effects are in."""

    async def b(state: Any, ctx: NodeContext) -> dict[str, Any]:
        await ctx.step("look", lambda: 3)
        return {"log": ["b"]}

    async def ask(state: Any, ctx: NodeContext) -> dict[str, Any]:
        return {"item": await ctx.interrupt("why", "why?", str)}

    graph = flow("START -> a -> b, ask", b=b, ask=ask).compile()
    found = []
    for name in (lineage, f"{lineage}-other"):
        await Executor(graph, store).run({}, lineage=name)
        found.append(await content(store, name))
    one, other = found
    assert differences(one, other) == []
    assert list(one) == ["root/0", "root/1", "root/2", "root/0 beside", "root/1 beside"]
    assert [row["node"] for row in one["root/1 beside"]["activations"]] == ["b"]
    assert [row["name"] for row in one["root/1 beside"]["effects"]] == ["look"]


async def test_differences_are_named(store: Any, lineage: str) -> None:
    """By row and field, with both values; rows that only one has are named too."""
    for name, n in ((lineage, 1), (f"{lineage}-other", 2)):
        await Executor(flow("START -> a -> END").compile(), store).run({"n": n}, lineage=name)
    one, other = await content(store, lineage), await content(store, f"{lineage}-other")
    lines = differences(one, other)
    assert lines
    assert all("'n': 1" in line and "'n': 2" in line for line in lines)
    del other["root/2"]
    assert "root/2: only in the first" in differences(one, other)
    assert differences(one, {}, limit=1) == ["root/0: only in the first"]
