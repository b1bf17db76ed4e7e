"""The ledger at a stored moment."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from support.writing import moment_at

from graphagent import Executor, NodeContext, StateGraph
from graphagent.debug.effects import EffectSeen, effects_of
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio


class State(BaseModel):
    total: int = 0


def paying(*, dies: bool = False) -> CompiledGraph:
    """A node that pays twice; with `dies` the second time fails on the way."""

    def pay(amount: int) -> int:
        if dies and amount == 2:
            raise ConnectionError("lost")
        return amount

    async def node(state: State, ctx: NodeContext) -> dict[str, Any]:
        return {"total": await ctx.step("pay", pay, 1) + await ctx.step("pay", pay, 2)}

    return StateGraph(State).add_node("node", node).set_entry_point("node").set_finish_point("node").compile()


async def test_effects_of_what_has_ended_and_of_what_comes(store: Any, engine: Any, lineage: str) -> None:
    """The same entries are seen from the row before the activation and from the one that it ended with."""
    executor = Executor(paying(), store, engine)
    await executor.run(lineage=lineage)
    due = [EffectSeen("node#1", "pay", number, True, number + 1) for number in range(2)]
    ended = [EffectSeen("node#1", "pay", number, True, number + 1, ended=True) for number in range(2)]
    assert await effects_of(executor, moment_at(lineage, 0)) == due
    assert await effects_of(executor, moment_at(lineage, 1)) == ended
    assert await effects_of(executor, moment_at(lineage, 2)) == ended


async def test_an_effect_with_unknown_outcome(store: Any, engine: Any, lineage: str) -> None:
    """One that was claimed and never committed says so."""
    executor = Executor(paying(dies=True), store, engine)
    assert (await executor.run(lineage=lineage)).status == "failed"
    assert await effects_of(executor, moment_at(lineage, 1)) == [
        EffectSeen("node#1", "pay", 0, True, 1),
        EffectSeen("node#1", "pay", 1, False),
    ]
