"""Runs that go on in another version of their graph, or on the other engine: what is in flight finds its place."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.graphs import Trail, flow, says

from graphagent import Executor, Send, StateGraph, Transient, append
from graphagent.errors import IncompatibleCheckpoint

pytestmark = pytest.mark.anyio


async def asks(state: Trail, ctx: Any) -> dict[str, Any]:
    """A node that asks twice, each time after something that was paid for."""
    paid = await ctx.step("pay", lambda: state.log.append("paid") or "receipt")  # type: ignore[func-returns-value]
    first = await ctx.interrupt("first?")
    second = await ctx.interrupt("second?")
    return {"log": [f"{paid}:{first}:{second}"]}


def answers(result: Any, value: Any) -> dict[str, Any]:
    """The same answer to everything that is asked."""
    return {item.id: value for item in result.interrupts}


@pytest.mark.parametrize(("first", "second"), [("eager", "superstep"), ("superstep", "eager")])
async def test_the_other_engine_goes_on(store: Any, first: Any, second: Any, lineage: str) -> None:
    """A run that one engine has stored in the middle of its branches is ended by the other, step after step."""

    def graph() -> Any:
        return flow("START -> a, b -> c -> d -> e -> END", "a -> x -> y -> END", b=asks).compile()

    result = await Executor(graph(), store, first).run(lineage=lineage)
    result = await Executor(graph(), store, second).resume(lineage, answers(result, 1))
    result = await Executor(graph(), store, second).resume(lineage, answers(result, 2))
    assert result.status == "completed", result.reason
    assert result.state.log.count("receipt:1:2") == 1
    result = await Executor(graph(), store, second).run(lineage=lineage)
    assert result.status == "interrupted"


async def test_questions_of_a_renamed_node_find_it(store: Any, engine: Any, lineage: str) -> None:
    """A node that waits is called otherwise after a deploy: its first answer and its effect are still its own."""

    def graph(name: str, *former: str) -> Any:
        builder = flow("START -> a").add_node(name, asks, formerly=former)
        return builder.add_edge("a", name).set_finish_point(name).compile()

    result = await Executor(graph("old"), store, engine).run(lineage=lineage)
    result = await Executor(graph("old"), store, engine).resume(lineage, answers(result, 1))
    result = await Executor(graph("new", "old"), store, engine).resume(lineage, answers(result, 2))
    assert result.unwrap().log == ["a", "receipt:1:2"]


async def test_a_child_of_a_renamed_node_goes_on(store: Any, engine: Any, lineage: str) -> None:
    """A subgraph node is called otherwise: the child goes on where it waits, also when it is stopped once more."""
    runs: list[str] = []

    async def counted(state: Trail) -> dict[str, Any]:
        runs.append("child")
        return {"log": ["child"]}

    def graph(name: str, *former: str) -> Any:
        child = flow("START -> c -> q -> r -> END", c=counted, q=asks, r=says("r")).compile()
        builder = flow("START -> a, b").add_subgraph_node(name, child, formerly=former)
        builder.add_edge("a", name).set_finish_point(name, "b")
        return builder.compile()

    result = await Executor(graph("old"), store, engine).run(lineage=lineage)
    result = await Executor(graph("new", "old"), store, engine).resume(lineage, answers(result, 1))
    assert result.status == "interrupted"
    result = await Executor(graph("new", "old"), store, engine).resume(lineage, answers(result, 2))
    assert result.status == "completed", result.reason
    assert sorted(result.state.log) == ["a", "b", "child", "r", "receipt:1:2"]
    assert runs == ["child"]


async def test_a_changed_child_is_refused_before_anything_runs(store: Any, engine: Any, lineage: str) -> None:
    """The child graph in flight has lost the node it stands at: refused with the node of the parent and the reason."""

    def graph(*chains: str, **functions: Any) -> Any:
        child = flow(*chains, **functions).compile()
        return flow("START -> a").add_subgraph_node("sub", child).add_edge("a", "sub").set_finish_point("sub").compile()

    await Executor(graph("START -> q -> END", q=asks), store, engine).run(lineage=lineage)
    before = await store.history(lineage)
    with pytest.raises(IncompatibleCheckpoint, match=r"child graph of node 'sub'.*node 'q' is gone"):
        await Executor(graph("START -> p -> END"), store, engine).resume(lineage, answer=1)
    assert await store.history(lineage) == before


async def test_a_join_that_has_lost_its_missing_source_fires(store: Any, lineage: str) -> None:
    """Two of three sources have arrived, and the new graph waits for these two only: the join fires at once."""

    def graph(*sources: str) -> StateGraph:
        builder = flow("START -> a, b, c", "d -> END", c=says("c"))
        return builder.add_join_edge(sources, "d", id="all").set_finish_point("c")

    old = graph("a", "b", "c").interrupt_before_nodes("c").compile()
    assert (await Executor(old, store, "eager").run(lineage=lineage)).status == "interrupted"
    result = await Executor(graph("a", "b").compile(), store, "eager").resume(lineage)
    assert result.status == "completed", result.reason
    assert sorted(result.state.log) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("action", ["fork", "edit"])
async def test_going_back_asks_too(store: Any, engine: Any, lineage: str, action: str) -> None:
    """A fork or an edit by a graph in which the run has no place is refused: its row would look like that graph's."""
    old = flow("START -> a -> b -> END").interrupt_before_nodes("b").compile()
    await Executor(old, store, engine).run(lineage=lineage)
    other = Executor(flow("START -> a -> c -> END").compile(), store, engine)
    with pytest.raises(IncompatibleCheckpoint, match="node 'b' is gone"):
        await (other.fork(lineage) if action == "fork" else other.edit(lineage, None, {"n": 1}))


class Old(BaseModel):
    """Items as text."""

    log: Annotated[list[str], append] = []
    item: str = ""
    given_up: int = 0
    client: int = 0


class New(BaseModel):
    """Items as numbers, in a list of another name."""

    numbers: Annotated[list[int], append] = []
    item: int = 0
    client: Transient[object] = None


def fan(state: type, wait: bool) -> Any:
    """split sends an item to each work; one work waits for an answer, the others have finished."""

    async def split(current: Any) -> list[Send]:
        return [Send("work", {"item": text}) for text in ("1", "2", "3")]

    async def work(current: Any, ctx: Any) -> dict[str, Any]:
        if str(current.item) == "2":
            await ctx.interrupt("go?")
        ran.append(current.item)
        return {"log": [current.item]} if state is Old else {"numbers": [current.item]}

    ran: list[Any] = []
    builder = StateGraph(state, name="fan").add_node("split", split, destinations=["work"]).add_node("work", work)
    builder.add_node("end", lambda current: None, inline=True)
    builder.add_edge("work", "end").set_entry_point("split").set_finish_point("end")
    if state is New:
        builder.migrates(
            fields={"log": "numbers"},
            values={"numbers": lambda plain: [int(text) for text in plain], "item": lambda plain: int(plain or 0)},
            drop=["given_up"],
        )
    return builder.compile(), ran


async def test_finished_work_and_overlays_are_migrated(store: Any, engine: Any, lineage: str) -> None:
    """Overlays of Sends and results of finished siblings are read in the new types too, and not run again."""
    old, _ = fan(Old, True)
    assert (await Executor(old, store, engine).run(lineage=lineage)).status == "interrupted"
    new, ran = fan(New, False)
    result = await Executor(new, store, engine).resume(lineage, answer=True)
    assert sorted(result.unwrap().numbers) == [1, 2, 3]
    assert ran == ([2, 3] if engine == "eager" else [2])  # eager: one activation of a node at a time, in turn
