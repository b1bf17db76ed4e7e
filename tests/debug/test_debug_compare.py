"""Two runs aligned step by step: where they part, and in what."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from graphagent import END, Executor, StateGraph, append, merge
from graphagent.debug.compare import Comparison, compare_runs
from graphagent.engine.timetravel import Change
from graphagent.errors import CheckpointNotFound
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio


class State(BaseModel):
    severity: int = 0
    log: Annotated[list[str], append] = []
    facts: Annotated[dict[str, int], merge] = {}
    done: bool = False


def triage(noise: list[int] | None = None) -> CompiledGraph:
    """Reads, then goes the quick or the slow way by the severity. `noise`: what `read` adds to it, run by run."""

    async def read(state: State) -> dict[str, Any]:
        return {"facts": {"seen": 1}, "severity": state.severity + (noise.pop(0) if noise else 0), "log": ["read"]}

    def says(text: str) -> Any:
        async def node(state: State) -> dict[str, Any]:
            return {"log": [text]}

        return node

    graph = StateGraph(State).add_node("read", read).add_node("quick", says("quick")).add_node("slow", says("slow"))
    graph.add_node("end", says("end")).set_entry_point("read")
    graph.add_conditional_edges("read", lambda s: "high" if s.severity > 1 else "low", {"high": "slow", "low": "quick"})
    return graph.add_edge("quick", "end").add_edge("slow", "end").add_edge("end", END).compile()


def nodes(found: Comparison) -> list[tuple[str, str, bool]]:
    """The steps as short tuples."""
    return [(" ".join(step.nodes_a), " ".join(step.nodes_b), step.alike) for step in found.steps]


async def test_runs_that_are_alike(store: Any, engine: Any, lineage: str) -> None:
    """The same input leads the same way: nothing parts."""
    executor = Executor(triage(), store, engine)
    for name in ("a", "b"):
        await executor.run({"severity": 1}, lineage=f"{lineage}-{name}")
    found = await compare_runs(executor, f"{lineage}-a", f"{lineage}-b")
    assert (found.shared, found.parting) == (0, None)
    assert nodes(found) == [("", "", True), ("read", "read", True), ("quick", "quick", True), ("end", "end", True)]


async def test_another_input(store: Any, engine: Any, lineage: str) -> None:
    """Runs with other inputs part in the first row, and what came of it is told in the steps."""
    executor = Executor(triage(), store, engine)
    for name, severity in (("a", 1), ("b", 2)):
        await executor.run({"severity": severity}, lineage=f"{lineage}-{name}")
    found = await compare_runs(executor, f"{lineage}-a", f"{lineage}-b")
    assert found.parting is not None
    assert (found.parting.index, found.parting.why) == (0, "state")
    assert found.parting.changes == {"severity": Change(1, 2)}
    assert nodes(found)[2] == ("quick", "slow", False)


async def test_a_node_with_another_result(store: Any, engine: Any, lineage: str) -> None:
    """The first step whose change differs, the fields, and the labels of the router that then went apart."""
    executor = Executor(triage([0, 5]), store, engine)
    for name in ("a", "b"):
        await executor.run({"severity": 1}, lineage=f"{lineage}-{name}")
    found = await compare_runs(executor, f"{lineage}-a", f"{lineage}-b")
    assert found.parting is not None
    assert (found.parting.index, found.parting.why) == (1, "state")
    assert found.parting.changes == {"severity": Change(1, 6)}
    assert found.parting.labels == {"read": ("low", "high")}
    assert nodes(found) == [("", "", True), ("read", "read", False), ("quick", "slow", False), ("end", "end", True)]


async def test_a_fork_begins_where_it_was_made(store: Any, engine: Any, lineage: str) -> None:
    """Rows that a fork has in common with its lineage are counted, not listed; one that goes the same way is alike."""
    executor = Executor(triage(), store, engine)
    await executor.run({"severity": 1}, lineage=lineage)
    other = f"{lineage}-fork"
    await executor.fork(lineage, 1, new_lineage=other)
    await executor.resume(other)
    found = await compare_runs(executor, lineage, other)
    assert (found.shared, found.parting) == (2, None)
    assert nodes(found) == [("quick", "quick", True), ("end", "end", True)]
    await executor.edit(other, 0, {"severity": 3})
    await executor.resume(other)
    found = await compare_runs(executor, lineage, other)
    assert found.parting is not None
    assert (found.parting.index, found.parting.why) == (0, "nodes")


async def test_two_histories_of_one_lineage(store: Any, lineage: str) -> None:
    """Checkpoints stand for the histories that lead to them, so a lineage can be compared with its own past."""
    executor = Executor(triage(), store)
    await executor.run({"severity": 1}, lineage=lineage)
    await executor.edit(lineage, 0, {"severity": 2})
    await executor.resume(lineage)
    found = await compare_runs(executor, f"{lineage}:4", lineage)
    assert found.shared == 1
    assert nodes(found)[:2] == [("read", "", False), ("quick", "read", False)]


async def test_a_run_that_is_shorter(store: Any, lineage: str) -> None:
    """Where one run has no more rows they part by length."""
    executor = Executor(triage(), store)
    await executor.run({"severity": 1}, lineage=f"{lineage}-a")
    found = await compare_runs(executor, f"{lineage}-a", f"{lineage}-a:2")
    assert (found.shared, found.parting and found.parting.why) == (3, "length")
    assert [(step.nodes_a, step.b) for step in found.steps] == [(("end",), None)]


async def test_a_name_that_is_not_there(store: Any, lineage: str) -> None:
    """An unknown lineage is an error with what there is."""
    executor = Executor(triage(), store)
    await executor.run(lineage=lineage)
    with pytest.raises(CheckpointNotFound, match="no lineage or checkpoint"):
        await compare_runs(executor, lineage, "nowhere")
