"""Graphs of every shape for the debugger's tests, and what a run of one leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from graphagent import END, START, Executor, NodeContext, RunResult, Send, StateGraph, append
from graphagent.checkpoint.changes import rows_between
from graphagent.debug import DebugSession, ExecutorDriver, Stopped
from graphagent.graph.compiled import CompiledGraph
from support.graphs import Trail, flow, says

ENDED = frozenset({"completed", "failed", "limit_reached", "stalled", "cancelled"})


@dataclass(frozen=True)
class Shape:
    """A graph, what it is given, and the answers to its questions, in the order in which they are asked.

    `side_by_side`: several activations run at once, so that the eager engine may write its rows in another order.
    """

    make: Callable[[], CompiledGraph]
    given: Mapping[str, Any] = field(default_factory=dict)
    answers: tuple[Mapping[str, Any], ...] = ()
    side_by_side: bool = False


class Inner(BaseModel):
    """State of a child graph."""

    log: Annotated[list[str], append] = []
    n: int = 0


def chain() -> CompiledGraph:
    """Three nodes in a row."""
    return flow("START -> a -> b -> c -> END").compile()


def branches() -> CompiledGraph:
    """Two branches of different length that meet at a join."""
    built = flow("START -> a -> b", "a -> c -> d", "e -> END")
    return built.add_join_edge(["b", "d"], "e").compile()


def sends() -> CompiledGraph:
    """A node that sends three, and one behind them."""

    async def split(_: Any) -> list[Send]:
        return [Send("work", {"item": f"i{n}"}) for n in range(3)]

    async def work(state: Any) -> dict[str, Any]:
        return {"log": [state.item]}

    built = StateGraph(Trail).add_node("split", split, destinations=["work"]).add_node("work", work)
    return built.add_node("last", says("last")).set_entry_point("split").add_edge("work", "last").compile()


def loop() -> CompiledGraph:
    """Two nodes that go round three times."""

    async def count(state: Any) -> dict[str, Any]:
        return {"n": state.n + 1, "log": [f"n{state.n}"]}

    def more(state: Any) -> Literal["count", "done"]:
        return "count" if state.n < 3 else "done"

    return flow("START -> count -> look", "done -> END", count=count).add_conditional_edges("look", more).compile()


def inner() -> CompiledGraph:
    """A child of two nodes."""
    return flow("START -> x -> y -> END", state=Inner).compile()


def deep() -> CompiledGraph:
    """A child with a child."""
    built = StateGraph(Inner).add_node("before", says("before")).add_subgraph_node("sub", inner())
    return built.add_edge(START, "before").add_edge("before", "sub").add_edge("sub", END).compile()


def nested() -> CompiledGraph:
    """Child graphs that run side by side, one with a child of its own, and one more behind them."""
    built = StateGraph(Trail).add_node("a", says("a")).add_subgraph_node("one", inner())
    built.add_subgraph_node("two", deep()).add_subgraph_node("three", inner()).add_node("z", says("z"))
    built.add_edge(START, "a").add_edge("a", "one").add_edge("a", "two").add_edge("three", "z").add_edge("z", END)
    return built.add_join_edge(["one", "two"], "three").compile()


class Order(BaseModel):
    """What a map node goes over."""

    items: list[str] = []
    item: str = ""
    log: Annotated[list[str], append] = []


def mapped() -> CompiledGraph:
    """A map node."""

    async def work(state: Any) -> dict[str, Any]:
        return {"log": [state.item]}

    built = StateGraph(Order).add_map_node("fan", work, over="items", item_key="item", collect="all")
    return built.add_node("all", says("all")).set_entry_point("fan").set_finish_point("all").compile()


def asking() -> CompiledGraph:
    """A child that asks beside a node that doesn't, then a node that asks in its body."""

    async def ask(state: Any, ctx: NodeContext) -> dict[str, Any]:
        return {"log": [await ctx.interrupt("word", "which word?", answer_type=str)]}

    child = flow("START -> x -> ask -> y -> END", state=Inner, ask=ask).compile()
    built = StateGraph(Trail).add_node("a", says("a")).add_subgraph_node("sub", child).add_node("b", says("b"))
    built.add_node("c", ask).add_edge(START, "a").add_edge("a", "sub").add_edge("a", "b").add_edge("c", END)
    return built.add_join_edge(["sub", "b"], "c").compile()


def caught() -> CompiledGraph:
    """A node that fails, and whose failure an error edge takes."""

    async def fails(_: Any) -> Any:
        raise ValueError("no")

    built = flow("START -> a -> b -> END", "mend -> END", b=fails)
    return built.add_error_edge("b", "mend").compile()


SHAPES = {
    "chain": Shape(chain),
    "branches": Shape(branches, side_by_side=True),
    "sends": Shape(sends, side_by_side=True),
    "loop": Shape(loop),
    "nested": Shape(nested, side_by_side=True),
    "map": Shape(mapped, {"items": ["p", "q"]}, side_by_side=True),
    "asking": Shape(asking, {}, ({"word": "one"}, {"word": "two"}), side_by_side=True),
    "caught": Shape(caught),
}


def debugging(executor: Executor, lineage: str, **options: Any) -> DebugSession:
    """A session on a lineage of an executor."""
    return DebugSession(ExecutorDriver(executor, lineage), **options)


async def plain_run(executor: Executor, shape: Shape, lineage: str) -> RunResult:
    """The shape's run without a debugger, to its end."""
    return await plain_end(executor, await executor.run(shape.given, lineage=lineage), shape.answers)


async def plain_end(executor: Executor, result: RunResult, answers: tuple[Mapping[str, Any], ...]) -> RunResult:
    """A run that is resumed until it ends. A question with the n-th answer waits for it where it is the n-th."""
    left = list(answers)
    while result.status == "interrupted":
        asks = any(one.kind == "ask" for one in result.interrupts)
        result = await executor.resume(result.lineage, left.pop(0) if asks else {})
    return result


async def steps_to_end(session: DebugSession, shape: Shape, first: Stopped) -> list[Stopped]:
    """Every stop of a run that is stepped through to its end, with the questions answered as they come."""
    stops, left = [first], list(shape.answers)
    while stops[-1].why not in ENDED:
        if stops[-1].why == "interrupted":
            for key, value in left.pop(0).items():
                await session.answer(key, value)
        stops.append(await session.step())
    return stops


async def rows_left(store: Any, lineage: str) -> dict[str, list[Any]]:
    """All rows of a lineage by frame, run ids and times left out."""
    found = {}
    for namespace in await store.namespaces(lineage):
        newest = (await store.history(lineage, namespace, limit=1))[0].seq
        rows = [row async for row in rows_between(store, lineage, namespace, 0, newest)]
        found[namespace] = [replace(row, run_id="", created_at=0.0) for row in rows]
    return found


def worth(state: Any, *, ordered: bool = True) -> dict[str, Any]:
    """The fields of a state, to compare. `ordered` False: what the log has, in whatever order."""
    values = {name: getattr(state, name) for name in type(state).model_fields}
    return values if ordered else {**values, "log": sorted(values["log"])}
