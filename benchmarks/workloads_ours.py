"""graphagent: no one listening, or (variant ``listen``) one reader on every stream mode.

Writes are validated; SQLite runs with sync="normal", or "full" (variant ``full``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, create_model

from benchmarks import agents_ours as agents
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
from graphagent import (
    END,
    START,
    Executor,
    Limits,
    MemoryCheckpoints,
    NodeContext,
    RunResult,
    Send,
    SqlCheckpoints,
    StateGraph,
    add,
    append,
)

UNLIMITED = Limits(max_steps=10**9)
EVERY_MODE = ("updates", "messages", "tasks", "checkpoints", "custom", "debug")

Play = Callable[[Executor, Any, str | None], Awaitable[RunResult]]


class Counter(BaseModel):
    x: int = 0


class Fan(BaseModel):
    out: Annotated[list[int], append] = []
    count: int = 0
    index: int = 0


class Chat(BaseModel):
    x: int = 0
    messages: Annotated[list[dict[str, str]], append] = []


class Stored(BaseModel):
    x: int = 0
    limit: int = 0
    messages: Annotated[list[dict[str, str]], append] = []


class Question(BaseModel):
    x: int = 0
    answer: str = ""


class Sum(BaseModel):
    x: Annotated[int, add] = 0


async def play_quietly(executor: Executor, values: Any, lineage: str | None = None) -> RunResult:
    return await executor.run(values, lineage=lineage)


async def play_listening(executor: Executor, values: Any, lineage: str | None = None) -> RunResult:
    async with executor.stream(values, lineage=lineage, modes=EVERY_MODE) as events:
        async for _ in events:
            pass
    assert events.result is not None, "a stream that was read to its end has a result"
    return events.result


def player(bench: Bench) -> Play:
    return play_listening if bench.variant == "listen" else play_quietly


def store(path: Path, bench: Bench) -> SqlCheckpoints:
    return SqlCheckpoints(f"sqlite:///{path}", sync="full" if bench.variant == "full" else "normal")


@asynccontextmanager
async def opened_unsaved(graph: Any) -> AsyncIterator[Executor]:
    yield Executor(graph, limits=UNLIMITED)


@asynccontextmanager
async def opened_memory(graph: Any) -> AsyncIterator[Executor]:
    yield Executor(graph, checkpoints=MemoryCheckpoints(), limits=UNLIMITED)


def opened_sqlite(bench: Bench) -> Callable[[Any], Any]:
    @asynccontextmanager
    async def opened(graph: Any) -> AsyncIterator[Executor]:
        async with store(bench.database(), bench) as checkpoints:
            yield Executor(graph, checkpoints=checkpoints, limits=UNLIMITED)

    return opened


def completed(result: RunResult) -> Any:
    """The final state; raises when the run did not complete."""
    expect("status", (result.status, result.reason), ("completed", result.reason))
    return result.state


def increment() -> Any:
    async def node(state: Any) -> dict[str, int]:
        return {"x": state.x + 1}

    return node


def chain(bench: Bench, size: int) -> Case:
    play = player(bench)

    def build() -> Any:
        graph = StateGraph(Counter)
        names = [f"n{index}" for index in range(size)]
        for name in names:
            graph.add_node(name, increment())
        for source, target in zip([START, *names], [*names, END], strict=True):
            graph.add_edge(source, target)
        return graph.compile()

    return Case(
        size,
        lambda executor: play(executor, {"x": 0}, None),
        build=build,
        opened=opened_unsaved,
        check=lambda result: expect("x", completed(result).x, size),
    )


def cycle(bench: Bench, size: int) -> Case:
    play = player(bench)

    def build() -> Any:
        return (
            StateGraph(Counter)
            .add_node("a", increment())
            .add_node("b", increment())
            .add_edge(START, "a")
            .add_edge("a", "b")
            .add_conditional_edges("b", lambda state: "a" if state.x < size else END, ["a", END])
            .compile()
        )

    return Case(
        size,
        lambda executor: play(executor, {"x": 0}, None),
        build=build,
        opened=opened_unsaved,
        check=lambda result: expect("x", completed(result).x, size),
    )


async def join(state: Fan) -> dict[str, int]:
    return {"count": len(state.out)}


def static_fan(size: int, sleep: float) -> Any:
    def worker(index: int) -> Any:
        async def node(state: Fan) -> dict[str, list[int]]:
            if sleep:
                await asyncio.sleep(sleep)
            return {"out": [index]}

        return node

    async def source(state: Fan) -> None:
        return None

    graph = StateGraph(Fan).add_node("source", source).add_edge(START, "source")
    names = [f"w{index}" for index in range(size)]
    for index, name in enumerate(names):
        graph.add_node(name, worker(index)).add_edge("source", name)
    return graph.add_node("join", join).add_join_edge(names, "join").add_edge("join", END).compile()


def dynamic_fan(size: int) -> Any:
    async def source(state: Fan) -> list[Send]:
        return [Send("worker", {"index": index}) for index in range(size)]

    async def worker(state: Fan) -> dict[str, list[int]]:
        return {"out": [state.index]}

    return (
        StateGraph(Fan)
        .add_node("source", source, destinations=["worker"])
        .add_node("worker", worker)
        .add_node("join", join)
        .add_edge(START, "source")
        .add_edge("worker", "join")
        .add_edge("join", END)
        .compile()
    )


def fan(bench: Bench, size: int, build: Callable[[], Any]) -> Case:
    play = player(bench)

    def check(result: RunResult) -> None:
        expect("out", completed(result).out, list(range(size)))
        expect("count", result.state.count, size)

    return Case(size + 2, lambda executor: play(executor, {}, None), build=build, opened=opened_unsaved, check=check)


def chat(bench: Bench, size: int, opened: Callable[[Any], Any]) -> Case:
    play = player(bench)

    async def model(state: Chat) -> dict[str, Any]:
        return {"messages": [{"role": "assistant", "content": MESSAGE}]}

    def build() -> Any:
        return (
            StateGraph(Chat)
            .add_node("user", increment())
            .add_node("model", model)
            .add_edge(START, "user")
            .add_edge("user", "model")
            .add_conditional_edges("model", lambda state: "user" if state.x < size else END, ["user", END])
            .compile()
        )

    return Case(
        2 * size,
        lambda executor: play(executor, {"x": 0, "messages": []}, "t"),
        build=build,
        opened=opened,
        check=lambda result: expect("messages", len(completed(result).messages), size),
    )


def wide(bench: Bench, size: int) -> Case:
    play = player(bench)
    names = [f"k{index}" for index in range(WIDE_FIELDS)]
    schema: Any = create_model("Wide", x=(int, 0), **dict.fromkeys(names, (str, "")))  # type: ignore[call-overload]
    values = {"x": 0} | dict.fromkeys(names, WIDE_VALUE)

    async def tick(state: Any) -> dict[str, Any]:
        x = state.x
        return {"x": x + 1, f"k{x % WIDE_FIELDS}": f"{x:0100d}"}

    def build() -> Any:
        return (
            StateGraph(schema)
            .add_node("tick", tick)
            .add_edge(START, "tick")
            .add_conditional_edges("tick", lambda state: "tick" if state.x < size else END, ["tick", END])
            .compile()
        )

    return Case(
        size,
        lambda executor: play(executor, values, "t"),
        build=build,
        opened=opened_sqlite(bench),
        check=lambda result: expect("x", completed(result).x, size),
    )


def load(bench: Bench, size: int) -> Case:
    """The lineage is one loop of size - 2 steps, which with its input and end has ``size`` checkpoints."""
    steps = size - 2
    play = player(bench)
    graph = (
        StateGraph(Stored)
        .add_node("tick", increment())
        .add_edge(START, "tick")
        .add_conditional_edges("tick", lambda state: "tick" if state.x < state.limit else END, ["tick", END])
        .compile()
    )

    async def fill(path: Path) -> None:
        messages = [{"role": "assistant", "content": MESSAGE}] * STORED_MESSAGES
        async with store(path, bench) as checkpoints:
            executor = Executor(graph, checkpoints=checkpoints, limits=UNLIMITED)
            completed(await executor.run({"x": 0, "limit": steps, "messages": messages}, lineage="t"))

    @asynccontextmanager
    async def opened(_: Any) -> AsyncIterator[Any]:
        path = await bench.database_from_seed(fill)
        async with AsyncExitStack() as stack:
            yield path, stack

    async def run(opened: tuple[Path, AsyncExitStack]) -> RunResult:
        path, stack = opened
        checkpoints = await stack.enter_async_context(store(path, bench))
        return await play(Executor(graph, checkpoints=checkpoints, limits=UNLIMITED), {"limit": 0}, "t")

    def check(result: RunResult) -> None:
        expect("x", completed(result).x, steps + 1)
        expect("messages", len(result.state.messages), STORED_MESSAGES)

    return Case(1, run, opened=opened, check=check)


def pause_resume(bench: Bench, size: int) -> Case:
    play = player(bench)

    async def ask(state: Question, ctx: NodeContext) -> dict[str, str]:
        return {"answer": await ctx.interrupt("ok", "ok?", str)}

    def build() -> Any:
        graph = StateGraph(Question).add_node("a", increment()).add_node("ask", ask).add_node("c", increment())
        for source, target in ((START, "a"), ("a", "ask"), ("ask", "c"), ("c", END)):
            graph.add_edge(source, target)
        return graph.compile()

    async def run(executor: Executor) -> list[RunResult]:
        results = []
        for index in range(size):
            paused = await play(executor, {"x": 0}, f"t{index}")
            expect("status", paused.status, "interrupted")
            results.append(await executor.resume(f"t{index}", {"ok": "yes"}))
        return results

    def check(results: list[RunResult]) -> None:
        states = [completed(result) for result in results]
        expect("answers", [(state.x, state.answer) for state in states], [(2, "yes")] * size)

    return Case(size, run, build=build, opened=opened_sqlite(bench), check=check)


def diamonds(bench: Bench, size: int) -> Case:
    play = player(bench)

    async def one(state: Sum) -> dict[str, int]:
        return {"x": 1}

    def build() -> Any:
        graph = StateGraph(Sum)
        for name in "abcde":
            graph.add_node(name, one)
        for source, target in ((START, "a"), ("a", "b"), ("a", "c"), ("d", "e"), ("e", END)):
            graph.add_edge(source, target)
        return graph.add_join_edge(["b", "c"], "d").compile()

    async def run(executor: Executor) -> list[RunResult]:
        return await asyncio.gather(*(play(executor, {"x": 0}, None) for _ in range(size)))

    return Case(
        5 * size,
        run,
        build=build,
        opened=opened_unsaved,
        check=lambda results: expect("x of each run", [completed(result).x for result in results], [5] * size),
    )


WORKLOADS: dict[str, Callable[[Bench, int], Case]] = {
    "W1": chain,
    "W2": cycle,
    "W3": lambda bench, size: fan(bench, size, lambda: static_fan(size, 0)),
    "W3d": lambda bench, size: fan(bench, size, lambda: dynamic_fan(size)),
    "W4": lambda bench, size: fan(bench, size, lambda: static_fan(size, SLEEP_SECONDS)),
    "W5m": lambda bench, size: chat(bench, size, opened_memory),
    "W5s": lambda bench, size: chat(bench, size, opened_sqlite(bench)),
    "W6": wide,
    "W7": load,
    "W8": pause_resume,
    "W9": lambda bench, size: agents.by_itself(bench, size, player(bench)),
    "W9m": lambda bench, size: agents.by_runner(size, agents.in_memory),
    "W9s": lambda bench, size: agents.by_runner(size, agents.in_sqlite(bench)),
    "W10": diamonds,
}
