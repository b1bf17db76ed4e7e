"""How far joins are, and what state every node and edge is in, at stored moments."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.writing import moment_at

from graphagent import END, START, Executor, NodeContext, StateGraph, append
from graphagent.debug.joins import JoinProgress, joins_of
from graphagent.debug.moment import moment_of
from graphagent.debug.states import NodeState, edges_taken, node_states
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio


class State(BaseModel):
    log: Annotated[list[str], append] = []


async def note(state: State) -> dict[str, Any]:
    """A node that writes."""
    return {"log": ["x"]}


def joined(mode: Any = "all", *, lost: bool = False) -> CompiledGraph:
    """`short` and `first` -> `long` go to a join; with `lost` the long branch ends before it."""
    graph = StateGraph(State)
    for name in ("split", "short", "first", "long", "last"):
        graph.add_node(name, note)
    graph.add_edge(START, "split").add_edge("split", "short").add_edge("split", "first")
    graph.add_join_edge(["short", "long"], "last", mode=mode).add_edge("last", END)
    if lost:
        graph.add_multi_conditional_edges("first", lambda s: [], ["long"])
    else:
        graph.add_edge("first", "long")
    return graph.compile()


async def test_progress_of_a_join(store: Any, engine: str, lineage: str) -> None:
    """What has arrived and what is missing, step by step; after it has fired nothing is left of it."""
    executor = Executor(joined(), store)
    await executor.run(lineage=lineage)
    progress = [(await joins_of(executor, moment_at(lineage, seq)))[0] for seq in range(5)]
    empty = JoinProgress("last", "last", "all", {}, ("short", "long"), False, False)
    assert progress[0] == progress[1] == empty
    assert progress[2] == JoinProgress("last", "last", "all", {"short": 1}, ("long",), False, False)
    assert progress[3] == progress[4] == empty


async def test_a_starved_join(store: Any, lineage: str) -> None:
    """Where nothing is left to run a join that waits is starved, and says what it waits for."""
    executor = Executor(joined(lost=True), store)
    assert (await executor.run(lineage=lineage)).status == "stalled"
    newest = (await executor.history(lineage))[0].seq
    assert await joins_of(executor, moment_at(lineage, newest)) == [
        JoinProgress("last", "last", "all", {"short": 1}, ("long",), False, True)
    ]


async def test_a_join_of_any_that_has_fired(store: Any, lineage: str) -> None:
    """An `any` join has fired for the first source and takes in the other."""
    executor = Executor(joined("any"), store)
    await executor.run(lineage=lineage)
    (progress,) = await joins_of(executor, moment_at(lineage, 2))
    assert (progress.mode, progress.have, progress.fired, progress.starved) == ("any", {"short": 1}, True, False)


async def states(executor: Executor, lineage: str, seq: int | None = None) -> dict[str, NodeState]:
    """The states of all nodes at a row."""
    headers = await executor.history(lineage)
    loaded = await executor.store.load(lineage, "", headers[0].seq if seq is None else seq)
    assert loaded is not None
    moment = moment_of(executor.graph, lineage, "", loaded.row)
    return dict(await node_states(executor, moment, headers))


async def test_states_of_nodes(store: Any, lineage: str) -> None:
    """Nodes that have run, that come next and that have not been reached, with their visits."""
    executor = Executor(joined(), store)
    await executor.run(lineage=lineage)
    found = await states(executor, lineage, 1)
    assert found["split"] == NodeState("done", 1, 1)
    assert found["short"] == found["first"] == NodeState("next")
    assert found["long"] == found["last"] == NodeState("idle")
    assert {state.state for state in (await states(executor, lineage)).values()} == {"done"}


async def test_nodes_that_wait_or_failed(store: Any, lineage: str) -> None:
    """A node that asks waits; one that an error row names has failed."""

    async def ask(state: State, ctx: NodeContext) -> dict[str, Any]:
        return {"log": [await ctx.interrupt("name", "who?", str)]}

    async def fail(state: State) -> None:
        raise ValueError("no")

    graph = StateGraph(State).add_node("ask", ask).add_node("fail", fail).add_node("fine", note)
    executor = Executor(graph.set_entry_point("ask").add_edge("ask", "fail").compile(strict=False), store)
    await executor.run(lineage=lineage)
    assert (await states(executor, lineage))["ask"].state == "waiting"
    assert (await executor.resume(lineage, answer="me")).status == "failed"
    found = await states(executor, lineage)
    assert {name: state.state for name, state in found.items()} == {"ask": "done", "fail": "failed", "fine": "idle"}


async def test_a_run_that_goes_on_is_running(store: Any, lineage: str) -> None:
    """While somebody holds the lineage, what comes at its newest row is running."""
    executor = Executor(joined(), store)
    await executor.run(lineage=lineage)
    await executor.fork(lineage, 1)
    assert (await states(executor, lineage))["short"].state == "next"
    lease = await store.acquire(lineage, "other run")
    assert (await states(executor, lineage))["short"].state == "running"
    assert (await states(executor, lineage, 1))["short"].state == "next"
    await store.release(lease)


async def test_edges_that_were_taken(store: Any, engine: Any, lineage: str) -> None:
    """Each edge with how often it was taken, a join's edges and the way to END among them."""
    executor = Executor(joined(), store, engine)
    for _ in range(2):
        await executor.run(lineage=lineage)
    newest = (await executor.history(lineage))[0].seq
    pairs = [(START, "split"), ("split", "short"), ("split", "first"), ("first", "long")]
    pairs += [("short", "last"), ("long", "last"), ("last", END)]
    assert await edges_taken(executor, moment_at(lineage, newest)) == dict.fromkeys(pairs, 2)
