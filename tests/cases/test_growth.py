"""Public fault reports about what stored runs cost (kind `growth`): linear history, flat reads, retention."""

from __future__ import annotations

import sqlite3
from itertools import pairwise
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.graphs import Trail, flow
from support.tables import all_rows, row_counts

from graphagent import Executor, Limits, NodeContext, SqlCheckpoints, StateGraph, append
from graphagent.checkpoint.record import Retention
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio
ENDLESS = Limits(max_steps=10**6)


class Chat(BaseModel):
    turns: Annotated[list[str], append] = []
    n: int = 0
    title: str = "a title that never changes"


def chat(size: int = 1024) -> CompiledGraph:
    """A loop that appends one message of `size` bytes a step until `n` reaches what the input says."""

    async def speak(state: Chat) -> dict[str, Any]:
        return {"turns": [f"{state.n:08}" * (size // 8)], "n": state.n - 1}

    graph = StateGraph(Chat).add_node("speak", speak).set_entry_point("speak")
    return graph.add_conditional_edges("speak", lambda s: "speak" if s.n > 0 else "__end__", ["speak"]).compile()


# -- C119 --------------------------------------------------------------------------------------------


async def test_c119_retention_removes_rows(database: str, lineage: str) -> None:
    """Keeping the last ten of some hundred rows really removes the others, newest point and state unharmed."""
    async with SqlCheckpoints(database) as store:
        executor = Executor(chat(8), store, limits=ENDLESS)
        for _ in range(10):
            await executor.run({"n": 20}, lineage=lineage)
        before, rows = (await executor.state(lineage)).turns, row_counts(database)["ga_rows"]
        tried = await executor.prune(Retention(keep_last=10), lineage=lineage, dry_run=True)
        report = await executor.prune(Retention(keep_last=10), lineage=lineage)
        assert (tried.rows, report.rows) == (210, 210)
        assert report.bytes > 0
        assert rows - row_counts(database)["ga_rows"] == report.rows
        assert len(await executor.history(lineage)) == 10
        assert (await executor.state(lineage)).turns == before
        assert len((await executor.run({"n": 1}, lineage=lineage)).unwrap().turns) == 201


@pytest.mark.parametrize("policy", [Retention(keep_last=1), Retention(max_age=0.0)], ids=["last", "age"])
async def test_c119_pending_pauses_and_pins_survive(store: Any, engine: Any, lineage: str, policy: Retention) -> None:
    """The strictest policies keep a pending question answerable and a pinned checkpoint loadable."""

    async def ask(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        return {"log": [await ctx.interrupt("q", answer_type=str)]}

    executor = Executor(flow("START -> a -> b -> ask -> c -> END", ask=ask).compile(), store, engine)
    await executor.run({}, lineage=lineage)
    pinned = next(h for h in await executor.history(lineage) if h.nodes == ("a",))
    await executor.pin(lineage, pinned.id)
    assert (await executor.prune(policy, lineage=lineage)).rows > 0
    assert (await executor.state(lineage, pinned.id)).log == ["a"]
    assert [i.key for i in await executor.interrupts(lineage)] == ["q"]
    assert (await executor.resume(lineage, {"q": "x"})).unwrap().log == ["a", "b", "x", "c"]


# -- C120 --------------------------------------------------------------------------------------------


async def test_c120_bytes_grow_linearly(database: str, lineage: str) -> None:
    """One message of 1 KB a step: 100, 200 and 400 steps take bytes in the ratio of the steps; any step still loads."""

    def stored() -> int:
        return sum(len(cell) for row in all_rows(database)["ga_rows"] for cell in row if isinstance(cell, bytes))

    sizes = []
    async with SqlCheckpoints(database) as store:
        executor = Executor(chat(), store, limits=ENDLESS)
        begun = stored()
        for steps in (100, 100, 200):
            await executor.run({"n": steps}, lineage=lineage)
            sizes.append(stored() - begun)
        ratios = [after / before for before, after in pairwise(sizes)]
        assert all(1.9 < ratio < 2.1 for ratio in ratios), ratios
        headers = await executor.history(lineage)
        for header in headers[:: len(headers) // 7]:
            state = await executor.state(lineage, header.id)
            assert len(state.turns) == header.step


# -- C122 --------------------------------------------------------------------------------------------


async def test_c122_reading_the_newest_state_is_flat(tmp_path: Any) -> None:
    """Reading the current state after 10, 1,000 and 5,000 checkpoints takes as many instructions of SQLite's machine.

    Instructions repeat where times don't. 5,000 stands for 10,000: rows between are not touched at all.
    """

    async def step(state: Trail) -> dict[str, Any]:
        return {"n": state.n - 1}

    graph = flow("START -> step", step=step)
    graph.add_conditional_edges("step", lambda s: "step" if s.n > 0 else "__end__", ["step"])
    costs = {}
    async with SqlCheckpoints(f"sqlite:///{tmp_path}/a.db") as store:
        executor = Executor(graph.compile(), store, limits=ENDLESS)
        for size in (10, 1000, 5000):
            await executor.run({"n": size}, lineage=f"l{size}")
            connection: sqlite3.Connection = store._driver._opened()  # type: ignore[union-attr]
            ticks: list[int] = []
            connection.set_progress_handler(lambda ticks=ticks: ticks.append(1), 10)
            await executor.state(f"l{size}")
            connection.set_progress_handler(None, 0)
            costs[size] = len(ticks)
    assert costs[5000] < costs[10] + 300, costs  # at most the 128 rows since the last snapshot


# -- C125 --------------------------------------------------------------------------------------------


class Wide(BaseModel):
    turns: Annotated[list[str], append] = []
    n: int = 0
    facts: dict[str, int] = {}
    item: str = ""


def long_run(kind: str) -> StateGraph:
    """A loop of 120 laps over values, a mapping and a list; then, by kind, a question, here or in a child graph."""

    async def lap(state: Wide) -> dict[str, Any]:
        n = state.n + 1
        return {"turns": [f"turn {n}"], "n": n, "facts": {**state.facts, f"k{n % 7}": n}}

    async def ask(state: Wide, ctx: NodeContext) -> dict[str, Any]:
        return {"item": await ctx.interrupt("q", answer_type=str)}

    graph = StateGraph(Wide).add_node("lap", lap).set_entry_point("lap")
    if kind == "child":
        child = StateGraph(Wide).add_node("note", lap).add_node("ask", ask).set_entry_point("note")
        graph.add_subgraph_node("ask", child.add_edge("note", "ask").set_finish_point("ask").compile())
    else:
        graph.add_node("ask", ask)
    graph.add_conditional_edges("lap", lambda s: "lap" if s.n < 120 else "ask", ["lap", "ask"])
    return graph.set_finish_point("ask")


@pytest.mark.parametrize("kind", ["pause", "child"])
async def test_c125_pruning_keeps_what_deltas_need(store: Any, engine: Any, lineage: str, kind: str) -> None:
    """Only the newest checkpoint is kept of 120 delta rows: the state is as before and the question can be answered."""
    executor = Executor(long_run(kind).compile(), store, engine)
    asked = await executor.run({}, lineage=lineage)
    before = await executor.state(lineage)
    assert (await executor.prune(Retention(keep_last=1), lineage=lineage)).rows >= 118
    after = await executor.state(lineage)
    assert (after.turns, after.n, after.facts) == (before.turns, before.n, before.facts)
    assert asked.status == "interrupted"
    done = (await executor.resume(lineage, {"q": "x"})).unwrap()
    assert (done.item, done.turns[:120]) == ("x", before.turns)


async def test_c125_pruning_keeps_a_fork_whole(store: Any, engine: Any, lineage: str) -> None:
    """A fork in the lineage that begins at a row in the middle loads as before, though the rows before it go."""
    executor = Executor(long_run("pause").compile(), store, engine)
    await executor.run({}, lineage=lineage)
    middle = (await executor.history(lineage))[60]
    await executor.edit(lineage, middle.id, {"item": "branched"})
    await executor.resume(lineage)
    before = await executor.state(lineage)
    await executor.prune(Retention(keep_last=1), lineage=lineage)
    after = await executor.state(lineage)
    assert (after.turns, after.n, after.facts, after.item) == (before.turns, before.n, before.facts, "branched")
    assert len(after.turns) == 120


@pytest.mark.parametrize("keep", [1, 50, 129])
async def test_c125_every_row_that_stays_loads_as_before(store: Any, lineage: str, keep: int) -> None:
    """Whatever is kept, each row that stays has the state it had, across snapshots and forks."""
    executor = Executor(long_run("pause").compile(), store)
    await executor.run({}, lineage=lineage)
    await executor.fork(lineage, (await executor.history(lineage))[40].id)
    await executor.resume(lineage)
    before = {h.id: await executor.state(lineage, h.id) for h in await executor.history(lineage)}
    await executor.prune(Retention(keep_last=keep), lineage=lineage)
    kept = await executor.history(lineage)
    assert len(kept) >= min(keep, len(before))
    for header in kept:
        state = await executor.state(lineage, header.id)
        assert (state.turns, state.n, state.facts) == (
            before[header.id].turns, before[header.id].n, before[header.id].facts
        )  # fmt: skip
