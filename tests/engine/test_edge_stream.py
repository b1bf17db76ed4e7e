"""Streams and the barrier at the end of a node: edge cases 91, 92 and 94 of the graph specification."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.graphs import Trail, flow, says

from graphagent import Executor, Limits, NodeCallbacks, NodeContext, StateGraph
from graphagent.errors import NodeError, NodeTimeout, UsageError

pytestmark = pytest.mark.anyio
MODES = ("updates", "messages", "tasks", "checkpoints", "custom", "debug")


def talkative(fails: bool = False) -> StateGraph:
    """talk -> last -> END; the first streams text, sends an event and reports progress; the last may fail."""

    async def talk(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        await ctx.stream_text("hel")
        await ctx.stream_text("lo")
        await ctx.emit("note", {"x": 1})
        await ctx.progress(0.5, "half")
        return {"log": ["talk"]}

    async def last(state: Trail) -> dict[str, Any]:
        if fails:
            raise ValueError("late")
        return {"log": ["last"]}

    return flow("START -> talk -> last -> END", talk=talk, last=last)


async def modes_seen(executor: Executor, lineage: str, modes: list[str]) -> list[str]:
    """The modes of the events that come when those are asked for, without repetition."""
    async with executor.stream(lineage=lineage, modes=modes) as events:
        return list(dict.fromkeys([event.mode async for event in events]))


async def test_e91_a_stream_has_the_modes_asked_for(store: Any, engine: Any, lineage: str) -> None:
    """Only events of the wanted modes come; `messages` is model output alone; `debug` brings tasks and checkpoints."""
    executor = Executor(talkative().compile(), store, engine)
    for modes in ([], ["updates"], ["messages"], ["tasks"], ["checkpoints"], ["custom"], ["messages", "custom"]):
        assert await modes_seen(executor, f"{lineage}-{modes}", modes) == modes
    assert await modes_seen(executor, lineage, ["debug"]) == ["checkpoints", "tasks", "debug"]


async def test_e91_an_error_passes_in_every_mode(store: Any, engine: Any, lineage: str) -> None:
    """Whatever was asked for, the failure of the run comes, once and last."""
    executor = Executor(talkative(fails=True).compile(), store, engine)
    for mode in (None, *MODES):
        async with executor.stream(lineage=f"{lineage}-{mode}", modes=[] if mode is None else [mode]) as stream:
            events = [event async for event in stream]
        assert [event.mode for event in events].count("error") == 1
        assert events[-1].mode == "error"
        assert "node 'last' failed: ValueError: late" in events[-1].data["reason"]
        assert [event.seq for event in events] == list(range(len(events)))


async def test_e91_an_unknown_mode_is_refused(store: Any, lineage: str) -> None:
    """A mode that isn't one is an error with the nearest one, before anything runs."""
    executor = Executor(talkative().compile(), store)
    with pytest.raises(UsageError, match=r"no stream mode 'update': did you mean 'updates'\?"):
        async with executor.stream(lineage=lineage, modes=["update"]):
            pass
    assert await executor.history(lineage) == []


async def test_e92_progress_is_clamped(store: Any, engine: Any, lineage: str) -> None:
    """A fraction above 1 is told as 1, below 0 as 0."""

    async def work(state: Trail, ctx: NodeContext) -> None:
        for fraction in (1.5, -0.05, 0.25, 150, float("inf")):
            await ctx.progress(fraction, "working")

    executor = Executor(flow("START -> a -> END", a=work).compile(), store, engine)
    async with executor.stream(lineage=lineage, modes=["custom"]) as events:
        data = [event.data async for event in events if event.kind == "progress"]
    assert [item["fraction"] for item in data] == [1.0, 0.0, 0.25, 1.0, 1.0]
    assert {item["message"] for item in data} == {"working"}


async def test_e92_nobody_listens(store: Any, engine: Any, lineage: str) -> None:
    """Without a listener, and after the run has ended, sending events does nothing and harms nothing."""
    contexts: list[NodeContext] = []

    async def work(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        contexts.append(ctx)
        await ctx.emit("note", object())
        await ctx.stream_text("text")
        await ctx.progress(0.1)
        return {"log": ["work"]}

    executor = Executor(flow("START -> a -> END", a=work).compile(), store, engine)
    assert (await executor.run(lineage=lineage)).unwrap().log == ["work"]
    async with executor.stream(lineage=lineage, modes=["custom"]) as events:
        assert [event.kind async for event in events] == ["note", "progress"]
    for ctx in contexts:
        await ctx.emit("late", 1)
        await ctx.stream_text("late")


async def test_e92_a_sync_node_emits_from_its_thread(store: Any, engine: Any, lineage: str) -> None:
    """In a sync node the same calls are plain ones, and the events come in their order."""

    def work(state: Trail, ctx: Any) -> dict[str, Any]:
        for fraction in (0.0, 0.5, 1.0):
            ctx.progress(fraction)
        ctx.stream_text("done")
        return {"log": ["sync"]}

    executor = Executor(flow("START -> a -> END", a=work).compile(), store, engine)
    async with executor.stream(lineage=lineage, modes=["custom", "messages"]) as events:
        data = [event.data async for event in events]
    assert [item["fraction"] for item in data[:3]] == [0.0, 0.5, 1.0]
    assert data[3] == "done"


async def test_e94_a_node_counts_as_finished_after_its_barrier(store: Any, engine: Any, lineage: str) -> None:
    """`on_activation_end` is awaited for each node before its step is written and before what follows starts."""
    order: list[str] = []

    async def persist(ctx: NodeContext, outcome: Any) -> None:
        await anyio.lowlevel.checkpoint()
        rows = [header.source for header in await store.history(lineage)]
        order.append(f"{ctx.activation.node} {rows.count('step')}")

    async def node(state: Trail, ctx: NodeContext) -> None:
        order.append(f"run {ctx.activation.node}")

    graph = flow("START -> a -> b -> END", a=node, b=node).compile()
    executor = Executor(graph, store, engine, callbacks=[NodeCallbacks(on_activation_end=persist)])
    assert (await executor.run(lineage=lineage)).ok
    assert order == ["run a", "a 0", "run b", "b 1"]


async def test_e94_a_barrier_that_is_not_passed_in_time(store: Any, engine: Any, lineage: str) -> None:
    """If the callback takes longer than `save_timeout`, the run fails and says so; nothing of the node is kept."""

    async def stuck(ctx: NodeContext, outcome: Any) -> None:
        await anyio.sleep_forever()

    builder = flow("START -> a -> b -> END").with_node_callbacks(NodeCallbacks(on_activation_end=stuck), node="b")
    executor = Executor(builder.compile(), store, engine, limits=Limits(save_timeout=0.3))
    with anyio.fail_after(10):
        result = await executor.run(lineage=lineage)
    assert isinstance(result.error, NodeTimeout)
    for part in ("'b'", "on_activation_end", "0.3 s", "limits.save_timeout"):
        assert part in result.reason
    assert result.state.log == ["a"]


async def test_e94_a_barrier_that_fails(store: Any, engine: Any, lineage: str) -> None:
    """An error of the callback fails the run, whatever error edges the node has; a resume runs the node again."""
    broken = True

    async def persist(ctx: NodeContext, outcome: Any) -> None:
        if broken:
            raise OSError("events could not be written")

    builder = flow("START -> a -> END").add_node("handler", says("handler")).add_error_edge("a", "handler")
    builder.set_finish_point("handler")
    executor = Executor(builder.compile(), store, engine, callbacks=[NodeCallbacks(on_activation_end=persist)])
    result = await executor.run(lineage=lineage)
    assert isinstance(result.error, NodeError)
    assert "node 'a' failed: OSError: events could not be written" in result.reason
    broken = False
    assert (await executor.resume(lineage)).unwrap().log == ["a"]
