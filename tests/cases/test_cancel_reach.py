"""Where a cancellation gets to: threads, parallel nodes, child graphs, retries, other executors, other processes."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import anyio
import pytest
from support.graphs import Trail, flow, says
from support.runs import cancelled, started
from support.worker import other_process

from graphagent import Executor, NodeContext, RetryPolicy, SqlCheckpoints
from graphagent.errors import NodeError

pytestmark = pytest.mark.anyio


async def quiet(state: Trail) -> None:
    """A node that writes nothing."""


async def test_nothing_runs_any_more_when_cancelled_is_reported(store: Any, engine: Any, lineage: str) -> None:
    """A node may take its time to clean up: the result comes after that."""
    reached, order = anyio.Event(), []

    async def slow(state: Trail) -> None:
        try:
            reached.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.02)
            order.append("cleaned up")

    executor = Executor(flow("START -> slow -> END", slow=slow).compile(), store, engine)
    result = await cancelled(executor, lineage, reached)
    order.append(result.status)
    assert order == ["cleaned up", "cancelled"]


@pytest.mark.parametrize("wide", [False, True])
async def test_a_thread_is_told_and_waited_for(store: Any, engine: Any, lineage: str, wide: bool) -> None:
    """A sync node sees `ctx.cancelled` in its thread, alone or beside others, and is not left behind."""
    reached, ended, pause = anyio.Event(), [], threading.Event()

    def blocking(state: Trail, ctx: NodeContext) -> None:
        ctx.emit("here")
        reached_here()
        while not ctx.cancelled:
            pause.wait(0.002)
        time.sleep(0.02)
        ended.append(ctx.activation.node)

    loop = asyncio.get_running_loop()

    def reached_here() -> None:
        loop.call_soon_threadsafe(reached.set)

    names = "a, b" if wide else "a"
    executor = Executor(flow(f"START -> {names} -> last -> END", a=blocking, b=blocking).compile(), store, engine)
    result = await cancelled(executor, lineage, reached)
    assert result.status == "cancelled"
    assert sorted(ended) == (["a", "b"] if wide else ["a"])


async def test_a_scope_around_the_run_reaches_threads(store: Any, engine: Any, lineage: str) -> None:
    """When the caller's own scope is cancelled the threads are told, and the lineage is free afterwards."""
    told, pause, begun = [], threading.Event(), threading.Barrier(2, timeout=5)
    loop = asyncio.get_running_loop()

    def blocking(state: Trail, ctx: NodeContext) -> None:
        if begun.wait() == 0:
            loop.call_soon_threadsafe(scope.cancel)
        while not ctx.cancelled:
            pause.wait(0.002)
        told.append(ctx.activation.node)

    executor = Executor(flow("START -> a, b -> END", a=blocking, b=blocking).compile(), store, engine)
    with anyio.CancelScope() as scope:
        await executor.run({}, lineage=lineage)
    assert scope.cancelled_caught
    assert sorted(told) == ["a", "b"]
    await store.release(await store.acquire(lineage, "another"))


@pytest.mark.parametrize("wide", [False, True])
async def test_an_effect_that_was_done_is_recorded(store: Any, engine: Any, lineage: str, wide: bool) -> None:
    """A cancel that comes while the result of an effect is being written doesn't cut the write off."""
    reached, done = anyio.Event(), []

    class Slow:
        """The store, taking its time over commits."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def commit_effect(self, *arguments: Any) -> None:
            if len(done) == (2 if wide else 1):
                reached.set()
            await reached.wait()
            await anyio.sleep(0.01)
            await store.commit_effect(*arguments)

    async def act(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        def effect() -> str:
            done.append(ctx.activation.node)
            return ctx.activation.node

        return {"log": [await ctx.step("act", effect)]}

    graph = flow(f"START -> {'a, b' if wide else 'a'} -> last -> END", a=act, b=act, last=quiet).compile()
    result = await cancelled(Executor(graph, Slow(), engine), lineage, reached)
    assert result.status == "cancelled"
    assert [effect.committed for effect in await store.effects(lineage, "", 0)] == [True] * len(done)
    resumed = await Executor(graph, store, engine).resume(lineage)
    assert resumed.unwrap().log == (["a", "b"] if wide else ["a"])
    assert sorted(done) == sorted(set(done))


@pytest.mark.parametrize("depth", [1, 3])
async def test_child_graphs_are_reached(store: Any, engine: Any, lineage: str, depth: int) -> None:
    """A cancel ends a child graph at any depth; a resume goes on inside it, without repeating what it had done."""
    reached, runs = anyio.Event(), []

    async def first(state: Trail) -> dict[str, Any]:
        runs.append("first")
        return {"log": ["first"]}

    async def second(state: Trail) -> dict[str, Any]:
        runs.append("second")
        if runs.count("second") == 1:
            reached.set()
            await anyio.sleep_forever()
        return {"log": ["second"]}

    graph = flow("START -> first -> second -> END", first=first, second=second).compile()
    for _ in range(depth):
        outer = flow("START -> before", "after -> END").add_subgraph_node("child", graph)
        graph = outer.add_edge("before", "child").add_edge("child", "after").compile()
    executor = Executor(graph, store, engine)
    assert (await cancelled(executor, lineage, reached)).status == "cancelled"
    assert (await executor.resume(lineage)).unwrap().log == ["before"] * depth + ["first", "second"] + ["after"] * depth
    assert runs == ["first", "second", "second"]


async def test_cancellation_is_not_retried(store: Any, engine: Any, lineage: str) -> None:
    """Neither a node that is cancelled nor the wait before its next attempt leads to another attempt."""
    reached, attempts = anyio.Event(), []

    async def flaky(state: Trail) -> None:
        attempts.append(1)
        reached.set()
        raise OSError("busy")

    retry = RetryPolicy(max_attempts=5, initial=60, jitter=False)
    graph = flow("START -> ok -> END").add_node("flaky", flaky, retry=retry).add_edge("ok", "flaky").compile()
    result = await cancelled(Executor(graph, store, engine), lineage, reached)
    assert (result.status, len(attempts)) == ("cancelled", 1)


@pytest.mark.parametrize("wide", [False, True])
async def test_what_was_cancelled_elsewhere_is_a_failure(engine: Any, wide: bool) -> None:
    """A node that awaits a task somebody else has cancelled fails; the run neither hangs nor counts as cancelled."""

    async def victim(state: Trail) -> None:
        task = asyncio.ensure_future(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
        await task

    graph = flow(f"START -> {'victim, other' if wide else 'victim'} -> END", victim=victim, other=says("other"))
    with anyio.fail_after(5):
        result = await Executor(graph.compile(), engine=engine).run({})
    assert result.status == "failed"
    assert isinstance(result.error, NodeError)
    assert "'victim'" in str(result.error)


async def test_another_executor_on_the_store_is_asked(store: Any, engine: Any, lineage: str) -> None:
    """`cancel` on one executor reaches a run that another one of the same process has on the same store."""
    reached = anyio.Event()

    async def slow(state: Trail) -> None:
        reached.set()
        await anyio.sleep_forever()

    graph = flow("START -> slow -> END", slow=slow).compile()
    async with started(Executor(graph, store, engine), lineage, reached) as results:
        other = Executor(graph, store, engine)
        assert not await other.cancel(lineage + "-unknown")
        assert await other.cancel(lineage)
    assert results[0].status == "cancelled"


async def test_another_store_object_is_asked(database: str, lineage: str) -> None:
    """A cancel through another store on the same database is heard within about a second."""
    reached = anyio.Event()

    async def slow(state: Trail) -> None:
        reached.set()
        await anyio.sleep_forever()

    graph = flow("START -> slow -> END", slow=slow).compile()
    async with SqlCheckpoints(database, lease_ttl=0.3) as one, SqlCheckpoints(database) as two:
        async with started(Executor(graph, one), lineage, reached) as results:
            assert await Executor(graph, two).cancel(lineage)
        assert results[0].status == "cancelled"
        assert not await Executor(graph, two).cancel(lineage)


async def test_a_deleted_lineage_ends_its_run(store: Any, engine: Any, lineage: str) -> None:
    """Deleting a lineage under a run ends the run with a typed error, and nothing of it is written again."""
    reached = anyio.Event()
    go = anyio.Event()

    async def slow(state: Trail) -> dict[str, Any]:
        reached.set()
        with anyio.move_on_after(0.05):
            await go.wait()
        return {"log": ["slow"]}

    executor = Executor(flow("START -> slow -> last -> END", slow=slow).compile(), store, engine)
    async with started(executor, lineage, reached) as results:
        assert await executor.delete(lineage) > 0
    assert results[0].status == "failed"
    assert "LeaseLost" in type(results[0].error).__name__
    assert await executor.history(lineage) == []


async def test_a_run_in_another_process_is_reached(database: str, lineage: str) -> None:
    """A cancel crosses processes through the store, on each database."""
    async with SqlCheckpoints(database) as store, other_process(database) as other:
        await other.tell(f"hold {lineage}")
        assert await other.hear() == f"held {lineage}"
        executor = Executor(flow("START -> a -> END").compile(), store)
        assert await executor.cancel(lineage)
        assert await other.hear() == f"over {lineage} cancelled "
