"""Public fault reports about what stays behind (kind `leak`): memory of a process, rows of a deleted thread."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
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
    result = await executor.run({}, lineage=name)
    assert result.status == "interrupted", result.reason
    assert (await executor.resume(name, {"q": "x"})).unwrap().log == ["a", "b", "x", "x", "y"]
    await executor.delete(name)


@pytest.mark.parametrize("engine", ["superstep", "eager"])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "none"])
async def test_c154_memory_is_flat(tmp_path: Path, engine: Any, kind: str) -> None:
    """After a warm-up 60 more runs leave less than five blocks of memory each behind, and no task or thread.

    A run that was kept would leave dozens each; the count itself goes up and down by some 200, as caches fill.
    """
    store = {"memory": MemoryCheckpoints, "sqlite": lambda: SqlCheckpoints(f"sqlite:///{tmp_path}/a.db")}.get(kind)
    executor = Executor(busy_graph(), None if store is None else store(), engine)
    unsaved = Executor(flow("START -> a -> b -> END").compile(), engine=engine)

    async def blocks_after(first: int, last: int) -> int:
        for number in range(first, last):
            await life(executor, f"l{number}")
            await unsaved.run({})
        gc.collect()
        return sys.getallocatedblocks()

    await blocks_after(0, 30)
    warm = await blocks_after(30, 40)
    tasks, threads = len(asyncio.all_tasks()), threading.active_count()
    after = await blocks_after(40, 100)
    assert after - warm < 300, f"{(after - warm) / 60} blocks a run"
    assert len(asyncio.all_tasks()) == tasks
    assert threading.active_count() <= threads  # idle threads of earlier tests may have ended meanwhile
    assert (executor._running, unsaved._running) == ({}, {})
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


# -- C156 --------------------------------------------------------------------------------------------


def big_graph() -> CompiledGraph:
    """Twenty steps with a value of 10 KB each, in the graph, a child graph, overlays, effects and open steps."""

    async def step(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        text = await ctx.step("big", lambda: f"{state.n:04}" * 2_500)
        return {"log": [text], "n": state.n + 1}

    async def split(state: Trail) -> list[Send]:
        return [Send("work", {"item": name * 10_000}) for name in "ab"]

    async def work(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        if state.item.startswith("b"):
            await ctx.interrupt("q", "?" * 10_000)
        return {"log": [state.item]}

    child = flow("START -> step", step=step)
    child.add_conditional_edges("step", lambda s: "step" if s.n < 20 else "__end__", ["step"])
    graph = StateGraph(Trail).add_subgraph_node("child", child.compile())
    graph.add_node("split", split, destinations=["work"]).add_node("work", work)
    return graph.set_entry_point("child").add_edge("child", "split").set_finish_point("work").compile()


@pytest.mark.parametrize("engine", ["superstep", "eager"])
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_c156_a_delete_leaves_no_row(tmp_path: Path, engine: Any, kind: str) -> None:
    """After a delete no table has a row of the thread: children, forks, edits, effects, open steps and pins included.

    Values are 10 KB instead of 1 MB; what counts are rows.
    """
    if kind == "postgres":
        with postgres_schema() as url:
            await leaves_nothing(url, engine)
    else:
        await leaves_nothing(f"sqlite:///{tmp_path}/a.db", engine)


async def leaves_nothing(url: str, engine: Any) -> None:
    """Two threads, one of which is deleted with all it has, in an empty database."""
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
        alike = ("ga_activations", "ga_graphs")  # both threads have the same graph
        assert all(counts[table] > kept[table] or table in alike for table in counts)
        await executor.delete("elsewhere")
        removed = await executor.delete("gone")
        assert row_counts(url) == kept
        assert removed >= 20
        assert await executor.delete("gone") == 0
        assert await executor.history("gone") == []
        assert (await executor.resume("kept", {"q": "x"})).status == "completed"
        await executor.delete("kept")
        assert {table for table, count in row_counts(url).items() if count} == {"ga_graphs"}
