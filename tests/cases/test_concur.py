"""Public fault reports about shared databases (kind `concur`): processes side by side, connections that die, clocks.

C146, C151 and C153 are in `test_conflict.py`.
"""

from __future__ import annotations

import sqlite3
import threading
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import psycopg
import pytest
from support.graphs import Trail, flow
from support.tables import all_rows
from support.worker import Log, log_graph, other_process

from graphagent import Executor, NodeContext, SqlCheckpoints
from graphagent.checkpoint.sql.options import PoolOptions

pytestmark = pytest.mark.anyio


# -- C142 --------------------------------------------------------------------------------------------


async def test_c142_one_process_runs_while_another_reads(database: str, lineage: str) -> None:
    """While a process streams runs another reads history and state of the thread in a loop; neither ever fails.

    It takes thirty turns instead of 30 s: the reader looks between nearly all of them.
    """

    async def speak(state: Log) -> dict[str, Any]:
        return {"log": ["said"]}

    async with SqlCheckpoints(database) as store, other_process(database) as other:
        executor = Executor(log_graph(speak), store)
        await executor.run({}, lineage=lineage)
        await other.tell(f"read {lineage}")
        for _ in range(30):
            async with executor.stream({}, lineage=lineage) as events:
                async for _event in events:
                    pass
            assert events.result is not None
            assert events.result.status == "completed"
        await other.tell("stop")
        word, times = (await other.hear()).split()
        assert word == "read"
        assert int(times) > 0


async def test_c142_the_store_sets_up_sqlite_itself(tmp_path: Any, lineage: str) -> None:
    """A new file is in write-ahead mode, and a writer that meets a held file waits for it instead of failing."""
    path = f"{tmp_path}/a.db"
    async with SqlCheckpoints(f"sqlite:///{path}") as store:
        executor = Executor(flow("START -> a -> END").compile(), store)
        await executor.run({}, lineage=lineage)
        other = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        other.execute("BEGIN IMMEDIATE")

        def let_go() -> None:
            other.execute("COMMIT")
            other.close()

        timer = threading.Timer(0.03, let_go)
        timer.start()
        assert (await executor.run({}, lineage=lineage)).status == "completed"
        timer.join()


# -- C144 --------------------------------------------------------------------------------------------


def kill_connections(url: str, name: str) -> int:
    """End every connection with an application name, as a server does that is restarted; returns how many."""
    with psycopg.connect(url, autocommit=True) as server:
        found = server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", (name,)
        ).fetchall()
        server.execute(
            "SELECT pg_sleep(0.002) FROM generate_series(1, 500) "
            "WHERE EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = %s)",
            (name,),
        )
    return len(found)


@pytest.mark.postgres
@pytest.mark.parametrize("pooler", [False, True])
@pytest.mark.parametrize("wide", [False, True])
async def test_c144_a_connection_that_dies_during_a_node(
    shared_postgres_url: str, engine: Any, lineage: str, pooler: bool, wide: bool
) -> None:
    """The server ends all connections while a node runs, in every step: each save goes over a fresh one.

    Also with `pooler=True`, in which no statement is prepared.
    """
    killed = []

    async def model(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        await ctx.step("before", lambda: None)
        killed.append(await anyio.to_thread.run_sync(kill_connections, shared_postgres_url, lineage))
        await ctx.step("after", lambda: None)
        return {"log": ["model"]}

    nodes = "m, n" if wide else "m"
    graph = flow(f"START -> {nodes} -> last -> END", m=model, n=model).compile()
    url = f"{shared_postgres_url}&application_name={lineage}"
    async with SqlCheckpoints(url, pool=PoolOptions(pooler=pooler)) as store:
        executor = Executor(graph, store, engine)
        for _ in range(2):
            assert (await executor.run({}, lineage=lineage)).unwrap().log[-1] == "last"
        assert sum(killed) > 0
        if pooler:
            async with store._driver._pool.connection() as connection:  # type: ignore[union-attr]
                prepared = await (await connection.execute("SELECT count(*) FROM pg_prepared_statements")).fetchone()
            assert prepared == (0,)


@pytest.mark.postgres
async def test_c144_no_connection_is_held_across_a_node(shared_postgres_url: str, lineage: str) -> None:
    """While a node runs, the pool's connections are idle: no transaction is open, and another run can use them."""
    states = []

    async def node(state: Trail, ctx: NodeContext) -> None:
        with psycopg.connect(shared_postgres_url) as server:
            states.extend(
                server.execute("SELECT state FROM pg_stat_activity WHERE application_name = %s", (lineage,)).fetchall()
            )
        if ctx.lineage == lineage:
            inner = await Executor(graph, store).run({}, lineage=f"{lineage}-inner")
            assert inner.status == "completed"

    graph = flow("START -> a -> node -> END", node=node).compile()
    url = f"{shared_postgres_url}&application_name={lineage}"
    async with SqlCheckpoints(url, pool=PoolOptions(max_size=1)) as store:
        with anyio.fail_after(10):
            assert (await Executor(graph, store).run({}, lineage=lineage)).status == "completed"
    assert {state for (state,) in states} == {"idle"}


# -- C145 --------------------------------------------------------------------------------------------


@pytest.mark.postgres
@pytest.mark.parametrize("recycle", [True, False], ids=["max_idle", "checked before use"])
async def test_c145_the_first_requests_of_the_morning(shared_postgres_url: str, lineage: str, recycle: bool) -> None:
    """Ten runs at once succeed after the server has closed its idle connections, whether the pool noticed or not."""
    options = PoolOptions(max_size=5, max_idle=0.01) if recycle else PoolOptions(max_size=5)
    url = shared_postgres_url.replace("options=", "options=-cidle_session_timeout%3D20%20")
    async with SqlCheckpoints(url, pool=options) as store:
        executor = Executor(flow("START -> a -> b -> END").compile(), store)
        statuses = []

        async def run(name: str) -> None:
            statuses.append((await executor.run({}, lineage=name)).status)

        for day in range(2):
            async with anyio.create_task_group() as group:
                for number in range(10):
                    group.start_soon(run, f"{lineage}-{day}-{number}")
            await anyio.sleep(0.08)
    assert statuses == ["completed"] * 20


# -- C148 --------------------------------------------------------------------------------------------


class Frozen:
    """A clock that stands still, as one that a database has rounded."""

    def now(self) -> float:
        return 1_000_000.0

    monotonic = now

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()


async def test_c148_equal_time_stamps_don_t_conflict(open_store: Any, lineage: str) -> None:
    """Fifty turns with one time stamp, the store opened again between them, are all accepted in order."""
    graph = flow("START -> a -> END").compile()
    for turn in range(5):
        async with open_store() as store:
            executor = Executor(graph, store, clock=Frozen())
            for _ in range(10):
                (await executor.run({"log": [f"turn {turn}"]}, lineage=lineage)).unwrap()
    async with open_store() as store:
        headers = await store.history(lineage)
        state = await Executor(graph, store).state(lineage)
    assert {header.created_at for header in headers} == {1_000_000.0}
    assert [header.seq for header in headers] == list(range(150))[::-1]
    assert state.log[::20] == [f"turn {turn}" for turn in range(5)]
    assert len(state.log) == 100


async def test_c148_a_clock_that_runs_backwards(database: str, lineage: str) -> None:
    """Order comes from the revision, so a later row may carry an earlier time."""
    times = iter(range(1000, 0, -1))

    class Backwards(Frozen):
        def now(self) -> float:
            return float(next(times))

    async with SqlCheckpoints(database) as store:
        executor = Executor(flow("START -> a -> b -> END").compile(), store, clock=Backwards())
        for _ in range(3):
            result = await executor.run({}, lineage=lineage)
        assert result.unwrap().log == ["a", "b"] * 3
        headers = await executor.history(lineage)
    assert [h.created_at for h in headers if h.source == "input"] == sorted(
        h.created_at for h in headers if h.source == "input"
    )
    assert all_rows(database)["ga_rows"]


async def test_c142_a_heartbeat_right_after_the_last_write_is_no_loss(database: str, engine: Any, lineage: str) -> None:
    """A row that ends a run gives the lease back; a heartbeat that looks just then doesn't take that for a loss.

    The heartbeat's look is put there, as a thread switch at that moment would.
    """

    async def ask(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        return {"log": [await ctx.interrupt("q", answer_type=str)]}

    async with SqlCheckpoints(database) as store:
        write = store._driver.append

        async def write_and_look(*arguments: Any) -> None:
            await write(*arguments)
            await anyio.to_thread.run_sync(store._heartbeat._beat, False)

        store._driver.append = write_and_look  # type: ignore[method-assign]
        executor = Executor(flow("START -> a -> ask -> END", ask=ask).compile(), store, engine)
        asked = await executor.run({}, lineage=lineage)
        assert asked.status == "interrupted", asked.reason
        done = await executor.resume(lineage, {"q": "x"})
        assert done.status == "completed", done.reason
