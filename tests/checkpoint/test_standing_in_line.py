"""Waiting for a connection is no sign of a store that hangs: it has a limit and an error of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import psycopg
import pytest
from anyio.abc import TaskStatus
from pydantic import BaseModel

from graphagent import Executor, Limits, SqlCheckpoints, StateGraph
from graphagent.checkpoint.sql.options import PoolOptions
from graphagent.checkpoint.sql.pool import Pool
from graphagent.engine.result import RunResult
from graphagent.errors import SaveError, ServiceBusy, StoreBusy
from graphagent.ledger import SessionKey
from graphagent.patience import at_most, in_line
from runner.sessions import SqlSessions
from runner.sql.database import DatabaseOptions

pytestmark = pytest.mark.anyio


async def test_time_in_line_does_not_count() -> None:
    """A limit goes on where it stood when the line is over, and limits around it stood still as well."""
    with at_most(0.5) as outer, at_most(0.4) as inner:
        with in_line():
            await anyio.sleep(0.7)
        assert 0 < inner.deadline - anyio.current_time() <= 0.4
        assert 0 < outer.deadline - anyio.current_time() <= 0.5
        await anyio.sleep_forever()
    assert (inner.cancelled_caught, outer.cancelled_caught) == (True, False)


async def test_two_in_line_stop_a_limit_until_both_are_through() -> None:
    """Work that is done side by side stands still while any of it waits."""

    async def wait(seconds: float) -> None:
        with in_line():
            await anyio.sleep(seconds)

    with at_most(0.3) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(wait, 0.1)
            group.start_soon(wait, 0.6)
    assert not scope.cancelled_caught


async def test_in_line_without_a_limit_changes_nothing() -> None:
    """Outside of limits, and under one that never ends, a line is nothing special."""
    with in_line():
        await anyio.lowlevel.checkpoint()
    with at_most(None) as scope, in_line():
        await anyio.lowlevel.checkpoint()
    assert scope.deadline == float("inf")


# -- with a pool ------------------------------------------------------------------------------------


class Place(BaseModel):
    """A state that changes once."""

    done: bool = False


Hinders = Callable[..., Any]
"""A task that is begun with `TaskGroup.start`, and hinders a pool until it is cancelled."""


async def hold(pool: Pool, seconds: float = 60, *, task_status: TaskStatus[None]) -> None:
    """Take the only connection, for so long."""
    async with pool.connection():
        task_status.started()
        await anyio.sleep(seconds)


async def result_of(url: str, hinder: Hinders, limits: Limits, pool: PoolOptions) -> RunResult[Any]:
    """The result of a run whose only node has its own save hindered."""
    async with SqlCheckpoints(url, pool=pool) as store, anyio.create_task_group() as group:

        async def work(state: Place) -> dict[str, bool]:
            await group.start(hinder, store._driver._pool)  # type: ignore[attr-defined]
            return {"done": True}

        graph = StateGraph(Place).add_node("work", work).set_entry_point("work").compile()
        result = await Executor(graph, store, limits=limits).run(lineage="order-1")
        group.cancel_scope.cancel()
    return result


@pytest.mark.postgres
async def test_a_save_may_stand_in_line_longer_than_it_may_take(postgres_url: str) -> None:
    """A run whose save waits for a connection past `save_timeout` completes."""
    limits, pool = Limits(save_timeout=1.0), PoolOptions(max_size=1)
    result = await result_of(postgres_url, partial(hold, seconds=1.5), limits, pool)
    assert result.unwrap().done


@pytest.mark.postgres
async def test_a_line_that_is_too_long_is_an_error_of_its_own(postgres_url: str) -> None:
    """Which limit ran out is told by the type of the error: not the save's, the pool's."""
    limits, pool = Limits(save_timeout=0.1), PoolOptions(max_size=1, timeout=0.3)
    result = await result_of(postgres_url, hold, limits, pool)
    assert isinstance(result.error, StoreBusy)
    assert "PoolOptions.timeout" in result.reason


@pytest.mark.postgres
async def test_a_statement_that_hangs_is_a_save_that_failed(postgres_url: str) -> None:
    """Where the database itself doesn't answer, `save_timeout` ends the save."""

    async def lock(_: Pool, *, task_status: TaskStatus[None]) -> None:
        async with await psycopg.AsyncConnection.connect(postgres_url) as other:
            await other.execute("LOCK TABLE ga_rows IN ACCESS EXCLUSIVE MODE")
            task_status.started()
            await anyio.sleep_forever()

    result = await result_of(postgres_url, lock, Limits(save_timeout=0.5), PoolOptions())
    assert isinstance(result.error, SaveError)
    assert "within 0.5 s (limits.save_timeout)" in result.reason


@pytest.mark.postgres
async def test_services_say_that_they_are_busy(postgres_url: str) -> None:
    """A session service whose connections stay in use says so with an error of services, and works again after."""
    options = DatabaseOptions(pool=PoolOptions(max_size=1, timeout=0.1))
    async with SqlSessions(postgres_url, options=options) as sessions:
        async with anyio.create_task_group() as group:
            await group.start(hold, sessions._database._pool)  # type: ignore[attr-defined]
            with pytest.raises(ServiceBusy, match=r"no connection to PostgreSQL got free in 0\.1 s"):
                await sessions.get(SessionKey("app", "ann", "s"))
            group.cancel_scope.cancel()
        assert await sessions.get(SessionKey("app", "ann", "s")) is None


@pytest.mark.postgres
async def test_the_line_is_kept(postgres_url: str) -> None:
    """Whoever asked first gets the next connection."""
    pool = Pool(postgres_url, PoolOptions(max_size=1))
    order: list[int] = []

    async def use(number: int) -> None:
        async with pool.connection() as connection:
            order.append(number)
            await connection.execute("SELECT 1")

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(use, number)
    await pool.clear()
    assert order == sorted(order)
