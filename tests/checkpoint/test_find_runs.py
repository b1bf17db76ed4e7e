"""Search over stored runs: what real runs are told as, in every store alike, and who wrote a database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import anyio
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphagent import END, START, Executor, Limits, MemoryCheckpoints, MessagesState, SqlCheckpoints, StateGraph
from graphagent.checkpoint.finding import STATUSES, RunQuery, SearchableRuns
from graphagent.checkpoint.sql import owner as owners
from graphagent.checkpoint.sql.heartbeat import renew
from graphagent.checkpoint.sql.owner import foreign_host, owner_text
from graphagent.checkpoint.sql.runs import find_runs
from graphagent.checkpoint.sql.sqlite import DIALECT, drive
from graphagent.checkpoint.store import CheckpointStore
from graphagent.graph.compiled import CompiledGraph
from graphagent.testing.store_cases_find import LAST_ROWS, begun, rows_with
from graphagent.testing.store_model import AnyCodec, plain_rows
from graphagent.testing.store_proxy import StoreProxy

pytestmark = pytest.mark.anyio


def fine(state: MessagesState) -> None:
    """A node that does nothing."""


def broken(state: MessagesState) -> None:
    """A node that fails."""
    raise ValueError("no such order")


def graph(name: str, second: Any = fine) -> StateGraph:
    """START -> first -> second -> END."""
    made = StateGraph(MessagesState, name=name).add_node("first", fine, inline=True)
    made.add_node("second", second, inline=True)
    return made.add_edge(START, "first").add_edge("first", "second").add_edge("second", END)


def starved() -> CompiledGraph:
    """A join of two branches of which a router takes one."""

    def left_only(state: MessagesState) -> Literal["left", "right"]:
        return "left"

    made = StateGraph(MessagesState, name="starved")
    for name in ("split", "left", "right", "both"):
        made.add_node(name, fine, inline=True)
    made.add_edge(START, "split").add_conditional_edges("split", left_only)
    return made.add_join_edge(["left", "right"], "both").add_edge("both", END).compile()


def endless() -> CompiledGraph:
    """A loop without a way out, and a node to land at."""
    made = graph("endless").add_node("landing", fine, inline=True)
    made.add_conditional_edges("second", lambda state: "first", {"first": "first", "land": "landing"})
    made.add_edge("landing", END)
    return made.compile()


def lost() -> CompiledGraph:
    """A way that ends short of END."""
    made = StateGraph(MessagesState, name="lost")
    made.add_node("first", fine, inline=True).add_node("dead", fine, inline=True)
    made.add_conditional_edges("first", lambda state: "dead", {"dead": "dead", "end": END})
    return made.add_edge(START, "first").compile()


def asking() -> CompiledGraph:
    """A graph that asks for an approval."""
    made = StateGraph(MessagesState, name="asking")
    made.add_interrupt_node("ask", prompt="may it?", answer_type=str, writes="user_input", key="approve")
    return made.add_edge(START, "ask").add_edge("ask", END).compile()


RUNS: dict[str, tuple[CompiledGraph, dict[str, Any]]] = {
    "completed": (graph("shop").compile(), {}),
    "failed": (graph("shop", broken).compile(), {}),
    "interrupted": (asking(), {}),
    "starved": (starved(), {}),
    "lost": (lost(), {}),
    "cut off, saved at the end": (endless(), {"limits": Limits(max_steps=4), "durability": "exit"}),
    "landed": (endless(), {"limits": Limits(max_steps=4, landing="landing")}),
}
"""Graphs and options of executors, by what becomes of a run."""


@pytest.mark.parametrize("case", RUNS)
async def test_a_run_is_told_as_it_ended(store: SearchableRuns, lineage: str, engine: str, case: str) -> None:
    """The stored rows alone say how a run ended, with the reason that its result has, in every store."""
    made, options = RUNS[case]
    scheduler: Any = engine
    executor = Executor(made, store, engine=scheduler, **options)  # type: ignore[arg-type]
    result = await executor.run({}, lineage=lineage)
    [run] = await store.find_runs(RunQuery(prefix=lineage))
    assert (run.status, run.graph, run.fingerprint) == (result.status, made.name, made.fingerprint)
    assert (run.run_id, run.holder) == (result.run_id, None)
    assert run.waits == tuple(asked.key for asked in result.interrupts)
    assert run.rows == len(await executor.history(lineage))
    if case != "landed":
        assert run.error == (None if case in ("completed", "interrupted") else result.reason)


async def test_a_run_is_told_as_it_goes_on(store: SearchableRuns, lineage: str) -> None:
    """Running while it runs, with its owner; a fork of a waiting run waits, an edit of a finished one is finished."""
    seen = []

    async def look(state: MessagesState) -> None:
        seen.extend(await store.find_runs(RunQuery(prefix=lineage)))

    executor = Executor(graph("shop", look).compile(), store)  # type: ignore[arg-type]
    await executor.run({}, lineage=lineage)
    assert [(run.status, run.holder is None) for run in seen] == [("running", False)]
    await executor.edit(lineage, None, {"user_input": "more"})
    waiting = Executor(asking(), store)  # type: ignore[arg-type]
    await waiting.run({}, lineage=lineage + "-ask")
    await waiting.fork(lineage + "-ask", None, new_lineage=lineage + "-fork")
    found = {run.lineage: (run.status, run.source) for run in await store.find_runs(RunQuery(prefix=lineage))}
    assert found == {
        lineage: ("completed", "edit"),
        lineage + "-ask": ("interrupted", "interrupt"),
        lineage + "-fork": ("interrupted", "fork"),
    }


def test_the_port_is_optional() -> None:
    """What stands around a store has the port if the store has it; a store without it is seen to have none."""
    assert isinstance(StoreProxy(MemoryCheckpoints()), SearchableRuns)
    plain = StoreProxy(MemoryCheckpoints())
    plain.inner = object()  # type: ignore[assignment]
    assert not isinstance(plain, SearchableRuns)


TIMES = st.sampled_from([900.0, 1000.0, 1001.0, 1002.0])
QUERIES = st.builds(
    RunQuery,
    text=st.sampled_from(["", "a", "end", "error", "graph"]),
    status=st.frozensets(st.sampled_from(STATUSES), max_size=3),
    node=st.none() | st.sampled_from(["work", "other", "nowhere"]),
    error=st.none() | st.sampled_from(["", "ORDER", "nodeerror", "end_not", "zzz"]),
    since=st.none() | TIMES,
    until=st.none() | TIMES,
    limit=st.integers(1, 30),
    after=st.none() | st.tuples(TIMES, st.sampled_from(["", "error", "step", "zz"]), st.just("")),
)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[sqlite3.Connection, MemoryCheckpoints]]:
    """The same runs of every kind in a SQLite file and in memory."""
    path, memory = tmp_path_factory.mktemp("twins") / "runs.db", MemoryCheckpoints()

    async def fill() -> None:
        async with SqlCheckpoints(str(path)) as stored:
            for store in (stored, memory):
                await _every_kind_of_run(store)

    anyio.run(fill)
    connection = sqlite3.connect(path)
    yield connection, memory
    connection.close()


async def _every_kind_of_run(store: CheckpointStore) -> None:
    for number, (name, (last, *_)) in enumerate(LAST_ROWS.items()):
        lease = await begun(store, name, rows_with(last, 1000.0 + number % 3))
        if number % 4 == 0:
            other = [*plain_rows(1), *rows_with({"nodes": ("other",)}, length=2)[1:]]
            await store.append(lease, "work@1.0" if number % 8 else "clerk", other, AnyCodec())
        await store.release(lease)


@settings(max_examples=150, deadline=None)
@given(query=QUERIES)
def test_stores_find_the_same(twins: tuple[sqlite3.Connection, MemoryCheckpoints], query: RunQuery) -> None:
    """Whatever is asked, the statements find what a plain look at every run finds, in the same order."""
    connection, memory = twins
    assert drive(connection, find_runs(query, DIALECT)) == anyio.run(memory.find_runs, query)


async def test_a_page_takes_few_statements(tmp_path: Path) -> None:
    """However many runs there are: the candidates, a chunk of newest rows, documents, how far the frames go."""
    path = tmp_path / "runs.db"
    async with SqlCheckpoints(str(path)) as store:
        for number in range(300):
            await store.release(await begun(store, f"run-{number}", rows_with({}, length=1)))
    connection = sqlite3.connect(path)
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    for query, most in (
        (RunQuery(), 4),
        (RunQuery(node="work"), 4),
        (RunQuery(status=frozenset({"completed"})), 1),
        (RunQuery(node="nowhere"), 1),
        (RunQuery(status=frozenset({"failed", "stalled"})), 4),
    ):
        asked.clear()
        drive(connection, find_runs(query, DIALECT))
        assert (query, len(asked) <= most) == (query, True)
    connection.close()


def execute(url: str, sql: str, *parameters: Any) -> None:
    """Run a statement on a database behind the store's back."""
    if url.startswith("sqlite:///"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute(sql, parameters)
        connection.close()
    else:
        with psycopg.connect(url) as server:
            server.execute(sql.replace("?", "%s"), parameters)


def elsewhere(host: str, boot: str = "boot-2") -> str:
    """An owner as another machine writes it."""
    return json.dumps([host, boot, "pid:[1]", 7, "99"])


async def test_a_copied_database_names_the_machine_it_is_from(fresh_database: str) -> None:
    """Of several other machines the last one that held a lineage; rows without an owner, as older releases left them,
    tell nothing."""
    async with SqlCheckpoints(fresh_database) as store:
        for name in ("a", "b", "c"):
            await store.release(await begun(store, name, rows_with({})))
        assert await store.written_elsewhere() is None
        for name, owner, since in (("a", elsewhere("web-1"), 5), ("b", elsewhere("web-2"), 9), ("c", None, 20)):
            execute(fresh_database, "UPDATE ga_lineages SET owner = ?, since = ? WHERE name = ?", owner, since, name)
        assert await store.written_elsewhere() == "web-2"
        [run, *_] = await store.find_runs(RunQuery(prefix="b"))
        assert (run.status, run.holder) == ("unfinished", None)  # it was given back there
        execute(fresh_database, "UPDATE ga_lineages SET owner = NULL")
        assert await store.written_elsewhere() is None


async def test_a_lease_of_another_machine_counts_until_it_runs_out(fresh_database: str) -> None:
    """Nobody here can tell whether its process lives, so its run is running, and its owner is named."""
    async with SqlCheckpoints(fresh_database) as store:
        lease = await begun(store, "a", rows_with({}))
        execute(fresh_database, "UPDATE ga_lineages SET owner = ?", elsewhere("web-1"))
        [run] = await store.find_runs(RunQuery(status=frozenset({"running"})))
        assert (run.status, run.holder) == ("running", "process 7 on host 'web-1'")
        execute(fresh_database, "UPDATE ga_lineages SET expires = 1")
        [run] = await store.find_runs(RunQuery())
        assert (run.status, run.holder) == ("unfinished", None)
        await store.release(lease)


async def test_a_dead_owner_runs_nothing(fresh_database: str) -> None:
    """The run of a process of this machine that is known to be dead is unfinished at once."""
    async with SqlCheckpoints(fresh_database) as store:
        await begun(store, "a", rows_with({}))
        gone = json.loads(owner_text())
        gone[4] = "1"
        execute(fresh_database, "UPDATE ga_lineages SET owner = ?", json.dumps(gone))
        [run] = await store.find_runs(RunQuery(status=frozenset({"unfinished"})))
        assert (run.status, run.holder) == ("unfinished", None)


async def test_a_heartbeat_does_not_bring_a_released_lease_back(tmp_path: Path) -> None:
    """Who held a lineage last stays on record; a beat that comes too late must not make a holder of it."""
    path = tmp_path / "runs.db"
    async with SqlCheckpoints(str(path)) as store:
        lease = await begun(store, "a", rows_with({}))
        held = (lease.extra["grip"].keys.lineage, lease.token)
        await store.release(lease)
        connection = sqlite3.connect(path)
        assert drive(connection, renew([held], 30.0, DIALECT)) == {}
        connection.close()
        [run] = await store.find_runs(RunQuery())
        assert run.holder is None
        assert not await store.request_cancel("a")
        await store.release(await store.acquire("a", "run-2"))


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (["here", "boot-1", "ns-1"], None),
        (["here", "boot-0", "ns-1"], None),  # before a reboot
        (["container", "boot-1", "ns-2"], None),  # of the same kernel
        (["there", "boot-2", "ns-1"], "there"),
        (["there", "", ""], "there"),  # where the system tells less
    ],
)
def test_machines_are_told_apart(monkeypatch: pytest.MonkeyPatch, machine: list[str], expected: str | None) -> None:
    """Neither another boot nor another container is another machine; what can't be read tells nothing."""
    monkeypatch.setattr(owners, "_machine", lambda: ["here", "boot-1", "ns-1"])
    assert foreign_host(json.dumps([*machine, 7, "99"])) == expected
    assert foreign_host("nonsense") is None
