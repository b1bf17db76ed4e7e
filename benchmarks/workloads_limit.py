"""The limit: the same work written by hand with asyncio and raw sqlite3, no framework.

It is what a careful programmer would write for that one job, not a proven bound. One row and one commit a step, of
what the step changed; WAL with synchronous=FULL (variant ``normal``: NORMAL).
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

from benchmarks import agents_limit as agents
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

State = dict[str, Any]
Node = Callable[[State], Awaitable[State]]

LOG_TABLE = """create table if not exists log (thread text, step integer, delta text, primary key (thread, step))
    without rowid"""
INSERT = "insert into log values (?, ?, ?)"


def connect(path: Path, variant: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)  # autocommit: each INSERT is a transaction
    connection.execute("pragma journal_mode = wal")
    connection.execute(f"pragma synchronous = {'normal' if variant == 'normal' else 'full'}")
    connection.execute(LOG_TABLE)
    return connection


def save(connection: sqlite3.Connection, thread: str, step: int, delta: State) -> None:
    connection.execute(INSERT, (thread, step, json.dumps(delta)))


def sqlite_opened(bench: Bench) -> Callable[[Any], Any]:
    @asynccontextmanager
    async def opened(_: Any) -> AsyncIterator[sqlite3.Connection]:
        with closing(connect(bench.database(), bench.variant)) as connection:
            yield connection

    return opened


def increment() -> Node:
    async def node(state: State) -> State:
        return {"x": state["x"] + 1}

    return node


def chain(bench: Bench, size: int) -> Case:
    async def run(nodes: list[Node]) -> State:
        state = {"x": 0}
        for node in nodes:
            state.update(await node(state))
        return state

    return Case(
        size,
        run,
        build=lambda: [increment() for _ in range(size)],
        check=lambda state: expect("x", state["x"], size),
    )


def cycle(bench: Bench, size: int) -> Case:
    def build() -> tuple[dict[str, Node], dict[str, Callable[[State], str | None]]]:
        nodes = {"a": increment(), "b": increment()}
        return nodes, {"a": lambda state: "b", "b": lambda state: "a" if state["x"] < size else None}

    async def run(graph: Any) -> State:
        nodes, routes = graph
        state, current = {"x": 0}, "a"
        while current:
            state.update(await nodes[current](state))
            current = routes[current](state)
        return state

    return Case(size, run, build=build, check=lambda state: expect("x", state["x"], size))


def fan(size: int, sleep: float) -> Case:
    def worker(index: int) -> Node:
        async def node(state: State) -> State:
            if sleep:
                await asyncio.sleep(sleep)
            return {"out": [index]}

        return node

    async def run(workers: list[Node]) -> State:
        state: State = {"out": []}
        for update in await asyncio.gather(*(worker(state) for worker in workers)):
            state["out"].extend(update["out"])
        state["count"] = len(state["out"])
        return state

    def check(state: State) -> None:
        expect("out", state["out"], list(range(size)))
        expect("count", state["count"], size)

    return Case(size + 2, run, build=lambda: [worker(index) for index in range(size)], check=check)


def chat_run(turns: int, save_step: Callable[[int, State], None]) -> Callable[[], Awaitable[State]]:
    user = increment()

    async def model(state: State) -> State:
        return {"messages": [{"role": "assistant", "content": MESSAGE}]}

    async def run() -> State:
        state: State = {"x": 0, "messages": []}
        step = 0
        while state["x"] < turns:
            for node in (user, model):
                update = await node(state)
                step += 1
                if "x" in update:
                    state["x"] = update["x"]
                if "messages" in update:
                    state["messages"].extend(update["messages"])
                save_step(step, update)
        return state

    return run


def chat_memory(bench: Bench, size: int) -> Case:
    async def run(_: Any) -> State:
        log: list[tuple[int, State]] = []
        return await chat_run(size, lambda step, delta: log.append((step, delta)))()

    return Case(2 * size, run, check=lambda state: expect("messages", len(state["messages"]), size))


def chat_sqlite(bench: Bench, size: int) -> Case:
    async def run(connection: sqlite3.Connection) -> State:
        return await chat_run(size, lambda step, delta: save(connection, "t", step, delta))()

    return Case(
        2 * size,
        run,
        opened=sqlite_opened(bench),
        check=lambda state: expect("messages", len(state["messages"]), size),
    )


def wide(bench: Bench, size: int) -> Case:
    async def tick(state: State) -> State:
        x = state["x"]
        return {"x": x + 1, f"k{x % WIDE_FIELDS}": f"{x:0100d}"}

    async def run(connection: sqlite3.Connection) -> State:
        state: State = {"x": 0, **{f"k{index}": WIDE_VALUE for index in range(WIDE_FIELDS)}}
        save(connection, "t", 0, state)
        while state["x"] < size:
            update = await tick(state)
            state.update(update)
            save(connection, "t", state["x"], update)
        return state

    return Case(size, run, opened=sqlite_opened(bench), check=lambda state: expect("x", state["x"], size))


PER_KEY_TABLES = (
    "create table if not exists field (thread text, key text, value text, primary key (thread, key)) without rowid",
    """create table if not exists item (thread text, key text, position integer, value text,
        primary key (thread, key, position)) without rowid""",
)


def connect_per_key(path: Path, variant: str) -> sqlite3.Connection:
    connection = connect(path, variant)
    for statement in PER_KEY_TABLES:
        connection.execute(statement)
    return connection


def save_per_key(connection: sqlite3.Connection, step: int, delta: State) -> None:
    """The log row and the newest value of each changed field, in the transaction the caller has opened."""
    save(connection, "t", step, delta)
    for key, value in delta.items():
        if isinstance(value, list):
            rows = [("t", key, position, json.dumps(item)) for position, item in enumerate(value)]
            connection.executemany("insert into item values (?, ?, ?, ?)", rows)
        else:
            connection.execute("insert or replace into field values (?, ?, ?)", ("t", key, json.dumps(value)))


def load_per_key(connection: sqlite3.Connection) -> tuple[int, State]:
    (step,) = connection.execute("select max(step) from log where thread = 't'").fetchone()
    state = {
        key: json.loads(value) for key, value in connection.execute("select key, value from field where thread = 't'")
    }
    for key, value in connection.execute("select key, value from item where thread = 't' order by key, position"):
        state.setdefault(key, []).append(json.loads(value))
    return step, state


def load(bench: Bench, size: int) -> Case:
    """The newest state of a long thread; fields are also kept one by one, so loading does not fold the log."""
    tick = increment()

    async def fill(path: Path) -> None:
        messages = [{"role": "assistant", "content": MESSAGE}] * STORED_MESSAGES
        with closing(connect_per_key(path, bench.variant)) as connection:
            connection.execute("begin")
            save_per_key(connection, 0, {"x": 0, "messages": messages})
            for step in range(1, size):
                save_per_key(connection, step, {"x": step})
            connection.execute("commit")

    @asynccontextmanager
    async def opened(_: Any) -> AsyncIterator[Any]:
        path = await bench.database_from_seed(fill)
        async with AsyncExitStack() as stack:
            yield path, stack

    async def run(opened: tuple[Path, AsyncExitStack]) -> State:
        path, stack = opened
        connection = connect_per_key(path, bench.variant)
        stack.callback(connection.close)
        step, state = load_per_key(connection)
        update = await tick(state)
        state.update(update)
        connection.execute("begin")
        save_per_key(connection, step + 1, update)
        connection.execute("commit")
        return state

    def check(state: State) -> None:
        expect("x", state["x"], size)
        expect("messages", len(state["messages"]), STORED_MESSAGES)

    return Case(1, run, opened=opened, check=check)


def pause_resume(bench: Bench, size: int) -> Case:
    node = increment()

    async def pause(connection: sqlite3.Connection, thread: str) -> None:
        state: State = {"x": 0}
        save(connection, thread, 0, state)
        update = await node(state)
        save(connection, thread, 1, {**update, "interrupt": {"ask": "ok?"}})

    async def resume(connection: sqlite3.Connection, thread: str, answer: str) -> State:
        state: State = {}
        for (delta,) in connection.execute("select delta from log where thread = ? order by step", (thread,)):
            state.update(json.loads(delta))
        state["answer"] = answer
        save(connection, thread, 2, {"answer": answer})
        update = await node(state)
        state.update(update)
        save(connection, thread, 3, update)
        return state

    async def run(connection: sqlite3.Connection) -> list[State]:
        states = []
        for index in range(size):
            await pause(connection, f"t{index}")
            states.append(await resume(connection, f"t{index}", "yes"))
        return states

    def check(states: list[State]) -> None:
        expect("answers", [(state["x"], state["answer"]) for state in states], [(2, "yes")] * size)

    return Case(size, run, opened=sqlite_opened(bench), check=check)


def diamonds(bench: Bench, size: int) -> Case:
    async def one(state: State) -> State:
        return {"x": 1}

    async def play() -> int:
        state = {"x": 0}
        state["x"] += (await one(state))["x"]
        for update in await asyncio.gather(one(state), one(state)):
            state["x"] += update["x"]
        for _ in range(2):
            state["x"] += (await one(state))["x"]
        return state["x"]

    async def run(_: Any) -> list[int]:
        return await asyncio.gather(*(play() for _ in range(size)))

    return Case(5 * size, run, check=lambda results: expect("x of each run", results, [5] * size))


WORKLOADS: dict[str, Callable[[Bench, int], Case]] = {
    "W1": chain,
    "W2": cycle,
    "W3": lambda bench, size: fan(size, 0),
    "W3d": lambda bench, size: fan(size, 0),
    "W4": lambda bench, size: fan(size, SLEEP_SECONDS),
    "W5m": chat_memory,
    "W5s": chat_sqlite,
    "W6": wide,
    "W7": load,
    "W8": pause_resume,
    "W9": agents.unsaved,
    "W9m": agents.unsaved,
    "W9s": lambda bench, size: agents.saved(size, sqlite_opened(bench), save),
    "W10": diamonds,
}
