"""Keys for other systems are unique: two lineages of one name are two where the store ends with the process."""

from __future__ import annotations

from typing import Any

import pytest
from support.graphs import flow

from graphagent import Executor, MemoryCheckpoints, NodeContext

pytestmark = pytest.mark.anyio


async def test_a_key_of_another_process_is_not_met_again() -> None:
    """A nightly job with a fixed lineage and a store in memory: the second night's payment has another key, so that the
    bank doesn't take it for a repetition. Within one store a re-run has the key that the first try had."""
    keys: list[str] = []
    numbers: list[float] = []

    async def pay(state: Any, ctx: NodeContext) -> dict[str, Any]:
        keys.append(ctx.idempotency_key("pay"))
        numbers.append(ctx.random.random())
        return {"item": await ctx.interrupt("sure", "sure?", str)}

    graph = flow("START -> pay -> END", pay=pay).compile()
    for _ in range(2):
        executor = Executor(graph, MemoryCheckpoints())
        await executor.run({}, lineage="nightly")
        await executor.resume("nightly", answer="yes")
    assert keys[0] == keys[1]
    assert keys[2] == keys[3]
    assert keys[0] != keys[2]
    assert len(set(numbers)) == 1
