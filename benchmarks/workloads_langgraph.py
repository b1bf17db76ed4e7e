"""LangGraph: its async API with default durability, run in the venv that peers.sh makes."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from benchmarks import agents_langgraph as agents
from benchmarks.contract import (
    MESSAGE,
    SLEEP_SECONDS,
    STORED_MESSAGES,
    WIDE_FIELDS,
    WIDE_VALUE,
    Bench,
    Case,
    expect,
)

State = dict[str, Any]


class Counter(TypedDict):
    x: int


class Fan(TypedDict):
    out: Annotated[list[Any], operator.add]
    count: int


class Chat(TypedDict):
    x: int
    messages: Annotated[list[Any], operator.add]


class Stored(TypedDict):
    x: int
    limit: int
    messages: Annotated[list[Any], operator.add]


class Question(TypedDict):
    x: int
    answer: str


class Sum(TypedDict):
    x: Annotated[int, operator.add]


def config(thread: str = "t") -> Any:
    return {"recursion_limit": 10**9, "configurable": {"thread_id": thread}}


def increment() -> Any:
    async def node(state: State) -> State:
        return {"x": state["x"] + 1}

    return node


def chain(bench: Bench, size: int) -> Case:
    def build() -> Any:
        graph = StateGraph(Counter)
        names = [f"n{index}" for index in range(size)]
        for name in names:
            graph.add_node(name, increment())
        for source, target in zip([START, *names], [*names, END], strict=True):
            graph.add_edge(source, target)
        return graph.compile()

    async def run(graph: Any) -> Any:
        return await graph.ainvoke({"x": 0}, config())

    return Case(size, run, build=build, check=lambda state: expect("x", state["x"], size))


def cycle(bench: Bench, size: int) -> Case:
    def build() -> Any:
        graph = StateGraph(Counter)
        graph.add_node("a", increment())
        graph.add_node("b", increment())
        graph.add_edge(START, "a")
        graph.add_edge("a", "b")
        graph.add_conditional_edges("b", lambda state: "a" if state["x"] < size else END, ["a", END])
        return graph.compile()

    async def run(graph: Any) -> Any:
        return await graph.ainvoke({"x": 0}, config())

    return Case(size, run, build=build, check=lambda state: expect("x", state["x"], size))


async def source(state: State) -> State:
    return {"count": 0}


async def join(state: State) -> State:
    return {"count": len(state["out"])}


def static_fan(size: int, sleep: float) -> Any:
    def worker(index: int) -> Any:
        async def node(state: State) -> State:
            if sleep:
                await asyncio.sleep(sleep)
            return {"out": [index]}

        return node

    graph = StateGraph(Fan)
    graph.add_node("source", source)
    graph.add_node("join", join)
    graph.add_edge(START, "source")
    names = [f"w{index}" for index in range(size)]
    for index, name in enumerate(names):
        graph.add_node(name, worker(index))
        graph.add_edge("source", name)
    graph.add_edge(names, "join")
    graph.add_edge("join", END)
    return graph.compile()


def dynamic_fan(size: int) -> Any:
    async def worker(item: State) -> State:
        return {"out": [item["index"]]}

    graph = StateGraph(Fan)
    graph.add_node("source", source)
    graph.add_node("worker", worker)
    graph.add_node("join", join)
    graph.add_edge(START, "source")
    sends = [Send("worker", {"index": index}) for index in range(size)]
    graph.add_conditional_edges("source", lambda state: sends, ["worker"])
    graph.add_edge("worker", "join")
    graph.add_edge("join", END)
    return graph.compile()


def fan(size: int, build: Callable[[], Any]) -> Case:
    async def run(graph: Any) -> Any:
        return await graph.ainvoke({"out": [], "count": 0}, config())

    def check(state: State) -> None:
        expect("out", sorted(state["out"]), list(range(size)))
        expect("count", state["count"], size)

    return Case(size + 2, run, build=build, check=check)


def opened_sqlite(bench: Bench) -> Callable[[Any], Any]:
    @asynccontextmanager
    async def opened(graph: StateGraph) -> AsyncIterator[Any]:
        async with AsyncSqliteSaver.from_conn_string(str(bench.database())) as saver:
            yield graph.compile(checkpointer=saver)

    return opened


@asynccontextmanager
async def opened_memory(graph: StateGraph) -> AsyncIterator[Any]:
    yield graph.compile(checkpointer=InMemorySaver())


def chat(size: int, opened: Callable[[Any], Any]) -> Case:
    async def model(state: State) -> State:
        return {"messages": [{"role": "assistant", "content": MESSAGE}]}

    def build() -> Any:
        graph = StateGraph(Chat)
        graph.add_node("user", increment())
        graph.add_node("model", model)
        graph.add_edge(START, "user")
        graph.add_edge("user", "model")
        graph.add_conditional_edges("model", lambda state: "user" if state["x"] < size else END, ["user", END])
        return graph

    async def run(graph: Any) -> Any:
        return await graph.ainvoke({"x": 0, "messages": []}, config())

    return Case(
        2 * size,
        run,
        build=build,
        opened=opened,
        check=lambda state: expect("messages", len(state["messages"]), size),
    )


def wide(bench: Bench, size: int) -> Case:
    fields = [f"k{index}" for index in range(WIDE_FIELDS)]
    schema: Any = TypedDict("Wide", {"x": int} | dict.fromkeys(fields, str))  # type: ignore[misc]

    async def tick(state: State) -> State:
        x = state["x"]
        return {"x": x + 1, f"k{x % WIDE_FIELDS}": f"{x:0100d}"}

    def build() -> Any:
        graph = StateGraph(schema)
        graph.add_node("tick", tick)
        graph.add_edge(START, "tick")
        graph.add_conditional_edges("tick", lambda state: "tick" if state["x"] < size else END, ["tick", END])
        return graph

    async def run(graph: Any) -> Any:
        return await graph.ainvoke({"x": 0} | dict.fromkeys(fields, WIDE_VALUE), config())

    return Case(size, run, build=build, opened=opened_sqlite(bench), check=lambda state: expect("x", state["x"], size))


def load(bench: Bench, size: int) -> Case:
    """The thread is one loop of size - 2 steps, which with its input and start has ``size`` checkpoints."""
    steps = size - 2
    graph = StateGraph(Stored)
    graph.add_node("tick", increment())
    graph.add_edge(START, "tick")
    graph.add_conditional_edges("tick", lambda state: "tick" if state["x"] < state["limit"] else END, ["tick", END])

    async def fill(path: Path) -> None:
        messages = [{"role": "assistant", "content": MESSAGE}] * STORED_MESSAGES
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            compiled = graph.compile(checkpointer=saver)
            await compiled.ainvoke({"x": 0, "limit": steps, "messages": messages}, config())

    @asynccontextmanager
    async def opened(_: Any) -> AsyncIterator[Any]:
        path = await bench.database_from_seed(fill)
        async with AsyncExitStack() as stack:
            yield path, stack

    async def run(opened: tuple[Path, AsyncExitStack]) -> Any:
        path, stack = opened
        saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(path)))
        return await graph.compile(checkpointer=saver).ainvoke({"limit": 0}, config())

    def check(state: State) -> None:
        expect("x", state["x"], steps + 1)
        expect("messages", len(state["messages"]), STORED_MESSAGES)

    return Case(1, run, opened=opened, check=check)


def pause_resume(bench: Bench, size: int) -> Case:
    async def ask(state: State) -> State:
        return {"answer": interrupt({"ask": "ok?"})}

    def build() -> Any:
        graph = StateGraph(Question)
        graph.add_node("a", increment())
        graph.add_node("ask", ask)
        graph.add_node("c", increment())
        for before, after in ((START, "a"), ("a", "ask"), ("ask", "c"), ("c", END)):
            graph.add_edge(before, after)
        return graph

    async def run(graph: Any) -> list[State]:
        states = []
        for index in range(size):
            paused = await graph.ainvoke({"x": 0}, config(f"t{index}"))
            expect("number of interrupts", len(paused["__interrupt__"]), 1)
            states.append(await graph.ainvoke(Command(resume="yes"), config(f"t{index}")))
        return states

    def check(states: list[State]) -> None:
        expect("answers", [(state["x"], state["answer"]) for state in states], [(2, "yes")] * size)

    return Case(size, run, build=build, opened=opened_sqlite(bench), check=check)


def diamonds(bench: Bench, size: int) -> Case:
    async def one(state: State) -> State:
        return {"x": 1}

    def build() -> Any:
        graph = StateGraph(Sum)
        for name in "abcde":
            graph.add_node(name, one)
        for before, after in ((START, "a"), ("a", "b"), ("a", "c"), ("d", "e"), ("e", END)):
            graph.add_edge(before, after)
        graph.add_edge(["b", "c"], "d")
        return graph.compile()

    async def run(graph: Any) -> Any:
        return await asyncio.gather(*(graph.ainvoke({"x": 0}, config()) for _ in range(size)))

    return Case(
        5 * size,
        run,
        build=build,
        check=lambda states: expect("x of each run", [state["x"] for state in states], [5] * size),
    )


WORKLOADS: dict[str, Callable[[Bench, int], Case]] = {
    "W1": chain,
    "W2": cycle,
    "W3": lambda bench, size: fan(size, lambda: static_fan(size, 0)),
    "W3d": lambda bench, size: fan(size, lambda: dynamic_fan(size)),
    "W4": lambda bench, size: fan(size, lambda: static_fan(size, SLEEP_SECONDS)),
    "W5m": lambda bench, size: chat(size, opened_memory),
    "W5s": lambda bench, size: chat(size, opened_sqlite(bench)),
    "W6": wide,
    "W7": load,
    "W8": pause_resume,
    "W9": lambda bench, size: agents.unsaved(bench, size, config),
    "W9m": lambda bench, size: agents.saved(size, config, opened_memory),
    "W9s": lambda bench, size: agents.saved(size, config, opened_sqlite(bench)),
    "W10": diamonds,
}
