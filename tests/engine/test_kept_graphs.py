"""The documents of graphs are kept where their rows are, so that a later graph can tell what changed."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from support.graphs import Trail, flow, says

from graphagent import Executor, MemoryCheckpoints, StateGraph, append
from graphagent.checkpoint.record import Retention
from graphagent.errors import SaveError
from graphagent.graph.compiled import CompiledGraph
from graphagent.testing.faults import FaultyStore

pytestmark = pytest.mark.anyio


def nested() -> tuple[CompiledGraph, ...]:
    """A graph with a child, which has a child, from the outside in."""
    inner = flow("START -> deep -> END").compile()
    middle = StateGraph(Trail, name="middle").add_subgraph_node("in", inner).set_entry_point("in")
    outer = StateGraph(Trail, name="outer").add_node("first", says("first")).set_entry_point("first")
    middle_graph = middle.set_finish_point("in").compile()
    outer.add_subgraph_node("in", middle_graph).add_edge("first", "in")
    return outer.set_finish_point("in").compile(), middle_graph, inner


async def test_a_run_keeps_its_graph_and_its_children(open_store: Any, anyio_backend: str, lineage: str) -> None:
    """Every fingerprint in the rows of any frame leads to the document of the graph that wrote them."""
    graphs = nested()
    async with open_store() as store:
        await Executor(graphs[0], store).run({}, lineage=lineage)
    async with open_store() as store:
        spaces = await store.namespaces(lineage)
        prints = {header.fingerprint for space in spaces for header in await store.history(lineage, space)}
        assert prints == {graph.fingerprint for graph in graphs}
        for graph in graphs:
            assert await store.graph(graph.fingerprint) == graph.to_json()


async def test_a_graph_is_kept_once_and_before_its_rows(lineage: str) -> None:
    """Further runs, and other executors on the same store, write nothing for it."""
    store = FaultyStore(MemoryCheckpoints())
    graph = flow("START -> a -> END").compile()
    await Executor(graph, store).run({}, lineage=lineage)
    assert store.writes[:2] == ["acquire", f"save_graph {graph.fingerprint}"]
    for executor in (Executor(graph, store), Executor(flow("START -> a -> END").compile(), store)):
        await executor.run({}, lineage=lineage)
    assert [what for what in store.writes if what.startswith("save_graph")] == [f"save_graph {graph.fingerprint}"]


async def test_whoever_writes_rows_keeps_its_graph(lineage: str) -> None:
    """An edit by another graph, as after a deploy, keeps that graph too; pruning and deleting leave both."""
    store = MemoryCheckpoints()
    old, new = flow("START -> a -> END").compile(), flow("START -> a -> b -> END").compile()
    await Executor(old, store).run({}, lineage=lineage)
    await Executor(new, store).edit(lineage, None, {"log": ["edited"]})
    await store.prune(Retention(keep_last=1))
    await store.delete(lineage)
    for graph in (old, new):
        assert await store.graph(graph.fingerprint) == graph.to_json()


async def test_a_graph_that_cannot_be_kept_stops_the_run(lineage: str) -> None:
    """Nothing has run then, the failure is the result of the run, and the lineage is free again."""
    inner = MemoryCheckpoints()
    store = FaultyStore(inner, 2, "fail")
    executor = Executor(flow("START -> a -> END").compile(), store)
    result = await executor.run({}, lineage=lineage)
    assert isinstance(result.error, SaveError)
    assert "fault at write 2 (save_graph" in result.reason
    assert await inner.history(lineage) == []
    assert (await executor.run({}, lineage=lineage)).ok


async def test_without_a_store_no_document_is_made(lineage: str) -> None:
    """A run that isn't stored pays nothing for it."""
    executor = Executor(flow("START -> a -> END").compile())
    await executor.run({}, lineage=lineage)
    assert await executor.store.graph(executor.graph.fingerprint) is None


class Incomparable(list[int]):
    """What a default may hold whose comparison raises, as arrays do."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_a_default_that_cannot_be_compared_is_left_out_of_the_document() -> None:
    """The document of such a graph can be made."""

    class State(BaseModel):
        log: Annotated[list[str], append] = []
        rest: Any = Field(default_factory=Incomparable)

    document = flow("START -> a -> END", state=State).compile().to_json()
    assert "default" not in document["state"]["rest"]
