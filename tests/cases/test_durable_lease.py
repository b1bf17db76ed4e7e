"""More of kind `durable`: one lineage, two workers, and a node that takes longer than the lease."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Annotated, Any

import anyio
import psycopg
import pytest
from pydantic import BaseModel

from graphagent import Executor, NodeContext, RunResult, SqlCheckpoints, StateGraph, append
from graphagent.errors import LeaseLost, LineageBusy

pytestmark = pytest.mark.anyio
TTL = 0.4  # seconds


class Log(BaseModel):
    log: Annotated[list[str], append] = []


def lone(fn: Callable[..., Any], *, inline: bool = False) -> Any:
    """A graph of one node."""
    return StateGraph(Log).add_node("n", fn, inline=inline).set_entry_point("n").set_finish_point("n").compile()


def expire(url: str, lineage: str) -> None:
    """Let the lease of a lineage run out now, as if its owner had been asleep for long."""
    if url.startswith("sqlite:///"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute("UPDATE ga_lineages SET expires = 0 WHERE name = ?", (lineage,))
        connection.close()
    else:
        with psycopg.connect(url) as server:
            server.execute("UPDATE ga_lineages SET expires = 0 WHERE name = %s", (lineage,))


async def test_c069_a_lease_is_renewed_while_a_long_node_runs(database: str, lineage: str) -> None:
    """A node takes longer than the lease: a second worker is refused all the time, and one line is written."""
    external: list[str] = []
    began = anyio.Event()
    go = anyio.Event()

    async def node(_: Any) -> dict[str, list[str]]:
        began.set()
        await go.wait()
        external.append("line")
        return {"log": ["done"]}

    graph = lone(node)
    async with SqlCheckpoints(database, lease_ttl=TTL) as one, SqlCheckpoints(database, lease_ttl=TTL) as two:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: Executor(graph, one).run(lineage=lineage))
            await began.wait()
            until = time.monotonic() + 1.5 * TTL
            refused = 0
            while time.monotonic() < until:
                with pytest.raises(LineageBusy, match=lineage):
                    await Executor(graph, two).resume(lineage)
                refused += 1
                await anyio.sleep(0.03)
            go.set()
        assert (await Executor(graph, two).state(lineage)).log == ["done"]
    assert external == ["line"]
    assert refused > 3


async def test_c069_a_lease_is_renewed_while_a_node_blocks_the_loop(database: str, lineage: str) -> None:
    """A node that blocks the event loop for longer than the lease still owns its lineage and commits."""

    def node(_: Any) -> dict[str, list[str]]:
        time.sleep(1.3 * TTL)
        return {"log": ["done"]}

    async with SqlCheckpoints(database, lease_ttl=TTL) as store:
        result = await Executor(lone(node, inline=True), store).run(lineage=lineage)
    assert result.unwrap().log == ["done"]


@pytest.mark.parametrize("engine", ["superstep", "eager"])
@pytest.mark.parametrize("how", ["told", "at its effect", "at its step"])
async def test_c069_a_worker_that_lost_its_lease_writes_nothing(
    database: str, lineage: str, engine: Any, how: str
) -> None:
    """The lease ran out and a second worker took the lineage: the first one is told by its heartbeat, or finds out at
    its next effect or step; it ends with LeaseLost, and only the second worker's work and line are there."""
    external: list[str] = []
    began = anyio.Event()
    go = anyio.Event()
    results: list[RunResult] = []

    def graph(who: str) -> Any:
        async def node(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
            if who == "first":
                began.set()
                await go.wait()
            if how != "at its step" or who == "second":
                await ctx.step("line", external.append, who)
            return {"log": [who]}

        return lone(node)

    slow = 0.15 if how == "told" else 30.0  # seconds; a beat comes each third of it, and each second
    async with SqlCheckpoints(database, lease_ttl=slow) as one, SqlCheckpoints(database) as two:

        async def first() -> None:
            results.append(await Executor(graph("first"), one, engine).run(lineage=lineage))

        second = Executor(graph("second"), two, engine)
        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await began.wait()
            while True:
                expire(database, lineage)  # a beat of the first may come in between
                try:
                    taken = await second.resume(lineage)
                    break
                except LineageBusy:
                    continue
            if how != "told":
                go.set()
        assert taken.unwrap().log == ["second"]
        assert results[0].status == "failed"
        assert isinstance(results[0].error, LeaseLost)
        assert (await second.state(lineage)).log == ["second"]
        sources = [header.source for header in await second.history(lineage)]
        assert sources == ["end", "step", "input"]
    assert external == ["second"]
