"""Public fault reports about limits and budgets (kind `limit`).

A model that spends tokens is a node that calls `ctx.usage`; the agents built of such nodes are tested with the agents.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.graphs import Trail, flow

from graphagent import Budget, Executor, Limits, NodeContext, StateGraph
from graphagent.errors import LimitReached, UsageError

pytestmark = pytest.mark.anyio


def research(stop_at: int = 10**9) -> StateGraph:
    """A loop of two nodes that ends when `n` reaches `stop_at`."""

    async def search(state: Trail) -> dict[str, Any]:
        return {"log": ["search"], "n": state.n + 1}

    graph = flow("START -> search -> judge", search=search)
    return graph.add_conditional_edges("judge", lambda s: "search" if s.n < stop_at else "__end__", ["search"])


# -- C091 --------------------------------------------------------------------------------------------


async def test_c091_a_limit_shows_the_work_and_the_loop(store: Any, engine: Any, lineage: str) -> None:
    """The result has the state, the count and the cycle of nodes that repeats; it isn't a success."""
    executor = Executor(research().compile(), store, engine, limits=Limits(max_steps=25))
    result = await executor.run({}, lineage=lineage)
    assert (result.status, result.steps, result.state.n) == ("limit_reached", 25, 13)
    for part in ("25", "'judge' -> 'search'", "max_steps"):
        assert part in result.reason
    with pytest.raises(LimitReached, match="25"):
        result.unwrap()


async def test_c091_the_run_goes_on_with_a_higher_limit(store: Any, engine: Any, lineage: str) -> None:
    """Another executor with more steps resumes where the limit cut in; the count begins anew with each run."""
    await Executor(research(20).compile(), store, engine, limits=Limits(max_steps=25)).run({}, lineage=lineage)
    result = await Executor(research(20).compile(), store, engine).resume(lineage)
    assert (result.status, result.state.n, result.steps) == ("completed", 20, 15)
    assert result.state.log.count("search") == 20


@pytest.mark.parametrize("limit", [1, 2])
async def test_c091_a_limit_is_exact(store: Any, engine: Any, limit: int) -> None:
    """A run that needs as many steps as it may take completes; with one less it is cut off."""
    graph = flow("START -> a -> b -> END").compile()
    result = await Executor(graph, store, engine, limits=Limits(max_steps=limit)).run({})
    assert (result.status, len(result.state.log)) == (("completed", 2) if limit == 2 else ("limit_reached", 1))


# -- C093 --------------------------------------------------------------------------------------------


async def test_c093_the_limit_is_the_same_in_every_node(store: Any, engine: Any, lineage: str) -> None:
    """All nodes see the same limit and one step less each; a child graph has a count of its own under that limit."""
    seen: list[tuple[str, int, int]] = []

    async def look(state: Trail, ctx: NodeContext) -> None:
        seen.append((ctx.activation.node, ctx.max_steps, ctx.remaining_steps))

    child = flow("START -> x -> y -> END", x=look, y=look).compile()
    graph = flow("START -> a -> b", "c -> END", a=look, b=look, c=look).add_subgraph_node("child", child)
    graph.add_conditional_edges("b", lambda s: "child", ["child", "c"]).add_edge("child", "c")
    result = await Executor(graph.compile(), store, engine, limits=Limits(max_steps=10)).run({})
    assert result.status == "completed"
    assert seen == [("a", 10, 9), ("b", 10, 8), ("x", 10, 9), ("y", 10, 8), ("c", 10, 6)]


# -- C094 --------------------------------------------------------------------------------------------


async def test_c094_a_landing_node_makes_an_answer_of_the_work(store: Any, engine: Any, lineage: str) -> None:
    """The landing node has the last allowed step; the status says `limit_reached`, and the run can be resumed."""

    async def answer(state: Trail) -> dict[str, Any]:
        return {"item": f"answer after {state.n} searches"}

    graph = research(4).add_node("answer", answer).compile()
    executor = Executor(graph, store, engine, limits=Limits(max_steps=4, landing="answer"))
    result = await executor.run({}, lineage=lineage)
    assert (result.status, result.steps, result.state.item) == ("limit_reached", 4, "answer after 2 searches")
    assert "landed at 'answer'" in result.reason
    assert (await executor.state(lineage)).item == "answer after 2 searches"
    resumed = await Executor(graph, store, engine).resume(lineage)
    assert (resumed.status, resumed.state.n) == ("completed", 4)


async def test_c094_a_caller_asks_for_one_final_answer(store: Any, engine: Any, lineage: str) -> None:
    """Without a landing node the caller edits the state (`no more tools`) and resumes: the router ends the loop."""
    executor = Executor(research().compile(), store, engine, limits=Limits(max_steps=3))
    assert (await executor.run({}, lineage=lineage)).status == "limit_reached"
    await executor.edit(lineage, None, {"n": 10**9})
    result = await executor.resume(lineage)
    assert (result.status, result.steps) == ("completed", 1)
    assert (await executor.run({"n": 0}, lineage=lineage)).status == "limit_reached"


@pytest.mark.parametrize("fault", ["raises", "asks"])
async def test_c094_a_landing_node_that_fails(store: Any, engine: Any, lineage: str, fault: str) -> None:
    """A landing node that doesn't end well is said in the reason; the limit stays the outcome, the work is kept."""

    async def answer(state: Trail, ctx: NodeContext) -> None:
        if fault == "asks":
            await ctx.interrupt("more?")
        raise ValueError("no answer")

    graph = research().add_node("answer", answer).compile()
    executor = Executor(graph, store, engine, limits=Limits(max_steps=4, landing="answer"))
    result = await executor.run({}, lineage=lineage)
    assert (result.status, result.state.n) == ("limit_reached", 2)
    assert "landing node 'answer' did not end well" in result.reason


def test_c094_an_unknown_landing_node_is_refused() -> None:
    """A wrong name is found when the executor is made, with the nearest one beside it."""
    with pytest.raises(UsageError, match="did you mean 'judge'"):
        Executor(research().compile(), limits=Limits(landing="jugde"))


# -- C097 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2])
async def test_c097_a_budget_spans_child_graphs(store: Any, engine: Any, lineage: str, depth: int) -> None:
    """1,000 tokens for a child that spends 5,000 in five calls: it stops inside, and total and reason say so."""

    async def call(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        ctx.usage(input_tokens=900, output_tokens=100, cost=0.01, calls=1)
        return {"log": ["call"], "n": state.n + 1}

    graph = flow("START -> call", call=call)
    graph.add_conditional_edges("call", lambda s: "call" if s.n < 5 else "__end__", ["call"])
    compiled = graph.compile()
    for _ in range(depth):
        outer = flow("START -> before", "after -> END").add_subgraph_node("child", compiled)
        compiled = outer.add_edge("before", "child").add_edge("child", "after").compile()
    executor = Executor(compiled, store, engine)
    result = await executor.run({}, lineage=lineage, budget=Budget(tokens=1000))
    assert (result.status, result.reason) == ("limit_reached", "budget: tokens")
    assert (result.usage.tokens, result.usage.calls) == (1000, 1)
    resumed = await executor.resume(lineage, budget=Budget(tokens=10_000))
    assert (resumed.status, resumed.usage.calls) == ("completed", 4)
    assert resumed.state.log.count("call") == 5


BUDGETS = {
    "steps": (Budget(steps=3), 3),
    "tokens": (Budget(tokens=25), 3),
    "cost": (Budget(cost=2.5), 3),
    "time": (Budget(seconds=30), 3),
}


@pytest.mark.parametrize("bound", list(BUDGETS))
async def test_c097_every_bound_of_a_budget(store: Any, engine: Any, bound: str) -> None:
    """Steps, tokens, cost and time each end a run between steps, and the reason names the bound."""
    budget, steps = BUDGETS[bound]

    class Clock:
        """Ten seconds pass in every node."""

        time = 0.0

        def now(self) -> float:
            return self.time

        monotonic = now

        async def sleep(self, seconds: float) -> None:
            raise AssertionError("nothing waits here")

    clock = Clock()

    async def call(state: Trail, ctx: NodeContext) -> None:
        ctx.usage(output_tokens=10, cost=1.0)
        clock.time += 10

    graph = flow("START -> call -> call", call=call).compile()
    executor = Executor(graph, store, engine, clock=clock)
    result = await executor.run({}, budget=budget)
    assert (result.status, result.reason, result.steps) == ("limit_reached", f"budget: {bound}", steps)


async def test_c097_parallel_children_share_the_budget(store: Any, engine: Any) -> None:
    """Two children side by side spend from one budget: both stop when it is used up, and the total has both."""

    async def call(state: Trail, ctx: NodeContext) -> None:
        ctx.usage(output_tokens=100)

    child = flow("START -> call -> call", call=call).compile()
    graph = flow("START -> split").add_subgraph_node("left", child).add_subgraph_node("right", child)
    graph.add_edge("split", "left").add_edge("split", "right")
    result = await Executor(graph.compile(), store, engine).run({}, budget=Budget(tokens=1000))
    assert (result.status, result.reason) == ("limit_reached", "budget: tokens")
    assert 1000 <= result.usage.tokens <= 1100
