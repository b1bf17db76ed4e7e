"""Public fault reports about conditional routes (kind `route`): odd labels, lost branches, loops that stop."""

from __future__ import annotations

import gc
import itertools
import random
import tracemalloc
from collections import Counter
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.graphs import says

from graphagent import END, Command, Executor, NodeContext, Send, StateGraph, add, append
from graphagent.errors import RouteError

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["superstep", "eager"])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine; the way without debug mode is the same as far as this file goes."""
    return str(request.param)


class Log(BaseModel):
    log: Annotated[list[str], append] = []
    laps: Annotated[int, add] = 0
    label: str = ""


def counter(last: Any, labels: Any) -> StateGraph:
    """A worker that loops; after five laps its router returns `last`."""
    graph = StateGraph(Log).add_node("work", lambda _: {"laps": 1}, inline=True).set_entry_point("work")
    return graph.add_conditional_edges("work", lambda state: "work" if state.laps < 5 else last, labels)


@pytest.mark.parametrize("labels", [["work"], {"work": "work"}, {"again": "work", "work": "work"}])
async def test_c013_end_is_always_a_legal_label(store: Any, engine: Any, labels: Any) -> None:
    """A router may return END though its labels list only the worker; the five laps are kept."""
    result = await Executor(counter(END, labels).compile(), store, engine).run()
    assert (result.status, result.state.laps, result.steps) == ("completed", 5, 5)


async def test_c013_end_is_a_legal_label_among_several(store: Any, engine: Any) -> None:
    """A router of several labels may return END beside a node, and alone."""
    graph = StateGraph(Log).add_node("a", says("a")).add_node("b", says("b")).set_entry_point("a")
    graph.add_multi_conditional_edges("a", lambda state: [END, "b"] if not state.label else [END], ["b"])
    executor = Executor(graph.compile(), store, engine)
    both = await executor.run()
    assert (both.status, both.state.log) == ("completed", ["a", "b"])
    alone = await executor.run({"label": "x"})
    assert (alone.status, alone.state.log) == ("completed", ["a"])


async def test_c013_a_goto_to_end_needs_no_declaration(store: Any, engine: Any) -> None:
    """END is a legal target of a goto too, whatever destinations a node declares."""

    async def jumps(_: Any) -> Command:
        return Command({"log": ["a"]}, goto=END)

    graph = StateGraph(Log).add_node("a", jumps, destinations=["b"]).add_node("b", says("b")).set_entry_point("a")
    result = await Executor(graph.add_edge("a", "b").compile(), store, engine).run()
    assert (result.status, result.state.log) == ("completed", ["a"])


@pytest.mark.parametrize("label", ["end", "END", "wrok", None, "", 7, ("work",)])
async def test_c013_a_label_that_only_looks_like_end_is_a_typed_error(
    store: Any, engine: Any, lineage: str, label: Any
) -> None:
    """An undeclared label, of whatever type, fails the run with a RouteError after five laps that are kept."""
    executor = Executor(counter(label, ["work"]).compile(), store, engine)
    result = await executor.run(lineage=lineage)
    assert result.status == "failed"
    assert isinstance(result.error, RouteError)
    assert "'work'" in str(result.error)
    assert (await executor.state(result.lineage)).laps == 4
    assert result.error.node == "work"


def agent(label: Any, labels: list[str], calls: list[str]) -> StateGraph:
    """A model node with a router, as an agent has; `calls` counts what was paid for."""

    async def model(_: Any) -> dict[str, list[str]]:
        calls.append("model")
        return {"log": ["model"]}

    graph = StateGraph(Log).add_node("model", model).add_node("retrieve", says("retrieve")).set_entry_point("model")
    graph.add_node("tools", says("tools")).set_finish_point("retrieve", "tools")
    return graph.add_conditional_edges("model", lambda _: label, [*labels, END])


async def test_c014_an_unknown_label_names_router_and_labels(open_store: Any, engine: Any, lineage: str) -> None:
    """The error has router, label and known labels; the run goes on after the mend without paying the model again."""
    calls: list[str] = []
    async with open_store() as store:
        result = await Executor(agent("tools", ["retrieve"], calls).compile(), store, engine).run(lineage=lineage)
        assert result.status == "failed"
        assert isinstance(result.error, RouteError)
        assert (result.error.node, result.error.label) == ("model", "tools")
        for text in ("'model'", "'tools'", "'retrieve'"):
            assert text in str(result.error)
    async with open_store() as store:
        mended = Executor(agent("tools", ["retrieve", "tools"], calls).compile(), store, engine)
        assert [header.source for header in await mended.history(lineage)] == ["error", "input"]
        again = await mended.resume(lineage)
        assert (again.status, again.state.log) == ("completed", ["model", "tools"])
    assert calls == ["model"]


async def test_c014_a_router_that_raises_keeps_the_result_too(open_store: Any, engine: Any, lineage: str) -> None:
    """A router's own error is a RouteError naming the node; after the mend only the router is asked again."""
    calls: list[str] = []

    def graph(router: Any) -> Any:
        async def model(_: Any) -> dict[str, list[str]]:
            calls.append("model")
            return {"log": ["model"]}

        built = StateGraph(Log).add_node("model", model).add_node("b", says("b")).set_entry_point("model")
        return built.add_conditional_edges("model", router, ["b"]).compile()

    def broken(_: Any) -> str:
        raise KeyError("tools")

    async with open_store() as store:
        result = await Executor(graph(broken), store, engine).run(lineage=lineage)
        assert isinstance(result.error, RouteError)
        assert "'model'" in str(result.error)
        assert "KeyError" in str(result.error)
    async with open_store() as store:
        again = await Executor(graph(lambda _: "b"), store, engine).resume(lineage)
        assert (again.status, again.state.log, calls) == ("completed", ["model", "b"], ["model"])


async def test_c014_siblings_of_a_misrouted_node_are_kept(open_store: Any, lineage: str) -> None:
    """Two nodes of a step have finished when the router of one fails: neither is run again after the mend."""
    calls: list[str] = []

    def graph(label: str) -> Any:
        def node(name: str) -> Any:
            async def run(_: Any) -> dict[str, list[str]]:
                calls.append(name)
                return {"log": [name]}

            return run

        built = StateGraph(Log).add_node("a", node("a")).add_node("b", node("b")).add_node("c", says("c"))
        built.set_entry_point("a", "b").add_edge("b", "c").set_finish_point("c")
        return built.add_conditional_edges("a", lambda _: label, ["c"]).compile()

    async with open_store() as store:
        result = await Executor(graph("x"), store).run(lineage=lineage)
        assert (result.status, result.state.log) == ("failed", [])
    async with open_store() as store:
        again = await Executor(graph("c"), store).resume(lineage)
        assert again.unwrap().log == ["a", "b", "c"]
    assert sorted(calls) == ["a", "b"]


async def test_c014_an_unknown_goto_and_an_unknown_send_are_named(store: Any, engine: Any) -> None:
    """A goto and a Send to what is no node fail at the node that made them, with the nearest name."""

    async def jumps(state: Log) -> Any:
        return Command(goto="retreive") if state.label == "goto" else [Send("retreive")]

    graph = StateGraph(Log).add_node("a", jumps, destinations=["retrieve"]).add_node("retrieve", says("retrieve"))
    executor = Executor(graph.set_entry_point("a").compile(), store, engine)
    for how in ("goto", "send"):
        result = await executor.run({"label": how})
        assert isinstance(result.error, RouteError)
        assert "'a'" in str(result.error)
        assert "did you mean 'retrieve'" in str(result.error)


async def test_c016_every_odd_label_fails_its_run_and_memory_is_flat(engine: Any) -> None:
    """Runs with random labels all fail, and the compiled graph and its executor don't grow with them (400 runs stand
    for the report's 10,000: what is compared is the growth per run)."""
    graph = StateGraph(Log).add_node("a", says("a")).add_node("b", says("b")).set_entry_point("a")
    executor = Executor(graph.add_conditional_edges("a", lambda state: state.label, ["b"]).compile(), engine=engine)
    seeded = random.Random(16)

    async def some(count: int) -> int:
        for _ in range(count):
            result = await executor.run({"label": f"label-{seeded.getrandbits(64)}"})
            assert isinstance(result.error, RouteError)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        await some(50)
        before = await some(50)
        after = await some(300)
    finally:
        tracemalloc.stop()
    assert after - before < 300 * 30  # bytes; one leaked label alone is 70


ROUTERS = ("r1", "r2")


def double(order: tuple[str, ...]) -> StateGraph:
    """A source with two routers; what each emits is consumed by a router of the second layer that leads to a leaf."""
    graph = StateGraph(Log).set_entry_point("source")
    for name in ("source", "l", "r", "left", "right"):
        graph.add_node(name, says(name))
    routers = {"r1": lambda _: "L", "r2": lambda _: "R"}
    for name in order:
        graph.add_conditional_edges("source", routers[name], {"L": "l", "R": "r"})
    graph.add_conditional_edges("l", lambda _: "left", ["left"])
    return graph.add_conditional_edges("r", lambda _: "right", ["right"])


async def test_c018_two_routers_on_one_source_are_both_followed(store: Any, engine: Any) -> None:
    """Both routers' chains run to their leaves, with identical results for either order of declaration."""
    logs = []
    for order in itertools.permutations(ROUTERS):
        result = await Executor(double(order).compile(), store, engine).run()
        assert result.status == "completed"
        logs.append(result.state.log)
    assert logs[0] == logs[1]
    assert sorted(logs[0]) == ["l", "left", "r", "right", "source"]


async def test_c018_two_routers_that_agree_run_their_target_once(engine: Any) -> None:
    """Two routers of one node that name the same target trigger it once, and a plain edge adds no second run."""
    graph = StateGraph(Log).add_node("a", says("a")).add_node("b", says("b")).set_entry_point("a")
    for _ in range(2):
        graph.add_conditional_edges("a", lambda _: "b", ["b"], with_edges=True)
    result = await Executor(graph.add_edge("a", "b").set_finish_point("b").compile(), engine=engine).run()
    assert result.unwrap().log == ["a", "b"]


async def test_c022_a_router_driven_loop_runs_its_laps(store: Any, engine: Any, lineage: str) -> None:
    """Five laps of router and worker run; every visit of a node is told apart and can be counted in the history."""
    visits: list[tuple[str, int]] = []

    async def decide(state: Log, ctx: NodeContext) -> dict[str, Any]:
        visits.append((ctx.activation.id, ctx.activation.visit))
        return {"label": "more" if state.laps < 5 else "stop"}

    async def work(_: Any, ctx: NodeContext) -> dict[str, int]:
        visits.append((ctx.activation.id, ctx.activation.visit))
        return {"laps": 1}

    graph = StateGraph(Log).add_node("decide", decide).add_node("work", work).set_entry_point("decide")
    graph.add_conditional_edges("decide", lambda state: state.label, {"more": "work", "stop": END})
    graph.add_edge("work", "decide")
    executor = Executor(graph.compile(), store, engine)
    result = await executor.run(lineage=lineage)
    assert (result.status, result.state.laps, result.steps) == ("completed", 5, 11)
    counted = Counter(name for header in await executor.history(lineage) for name in header.nodes)
    assert counted == {"decide": 6, "work": 5}
    assert visits == [(f"{('decide', 'work')[i % 2]}#{i + 1}", i + 1) for i in range(11)]
