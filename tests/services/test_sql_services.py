"""Sessions in databases: read as far as needed, left empty, written by other processes, on connections that end."""

from __future__ import annotations

import asyncio
import gc
import random
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.databases import postgres_schema
from support.service_tables import counts, query

from graphagent.errors import ServiceError
from graphagent.ids import fresh_id
from graphagent.ledger import Boundary, Event, SessionKey, Summary
from graphagent.testing.forks import ForkServer
from graphagent.testing.service_help import asks, says
from runner.sessions import InMemorySessions, SqlSessions, Ttl
from runner.sql.database import DatabaseOptions

pytestmark = pytest.mark.anyio


async def fill(sessions: SqlSessions, key: SessionKey) -> None:
    """A session with something of everything."""
    await sessions.create(*key, state={"a": 1})
    await sessions.append(key, asks("hello", state_delta={"b": "x" * 10_000}))
    await sessions.append(key, Event(kind="state", state_delta={"c": 1}))
    await sessions.append_track(key, "log", [1, 2])
    await sessions.put_summary(key, "", Summary(text="s", boundary=Boundary(), updated_at=1.0), after=None)


# -- what is read, what stays -------------------------------------------------------------------------


async def test_a_window_reads_only_what_it_hands_out(empty: str) -> None:
    """Of 3,000 events `last=5` fetches five, and the last question if none is among them."""
    async with SqlSessions(empty) as sessions:
        key = (await sessions.create("app", "u", "s")).key
        await sessions.append(key, asks("the question"))
        body = says("a" * 500)
        text = body.model_dump_json().replace("'", "''")
        many = ", ".join(f"({(1 << 32) + n}, 1, {n}, 'e{n}', 0, 1, 0, '{text}')" for n in range(2, 3002))
        columns = "place, session, said, id, at, shown, asked, body"
        query(empty, f"INSERT INTO ga_events ({columns}) VALUES {many}", "SELECT 1")
        fetched: list[int] = []
        run = sessions._database.run

        async def counted(sql: str, parameters: Any) -> Any:
            rows = await run(sql, parameters)
            fetched.append(len(rows))
            return rows

        sessions._database.run = counted  # type: ignore[method-assign]
        session = await sessions.get(key, last=5)
        assert session is not None
        assert [event.text[:1] for event in session.events] == ["t", *"aaaaa"]
        assert fetched == [1 + 5 + 1]
        whole = await sessions.get(key)
        assert whole is not None
        assert len(whole.events) == 3001


async def test_c156_a_deleted_session_leaves_no_row(empty: str) -> None:
    """Only what belongs to other sessions, the user and the app stays."""
    async with SqlSessions(empty) as sessions:
        await fill(sessions, SessionKey("app", "u", "kept"))
        kept = counts(empty)
        await fill(sessions, SessionKey("app", "u", "gone"))
        assert counts(empty) == {table: 2 * count for table, count in kept.items()}
        assert await sessions.delete(SessionKey("app", "u", "gone"))
        assert counts(empty) == kept
        assert await sessions.delete(SessionKey("app", "u", "kept"))
        assert counts(empty) == {}


async def test_what_expires_is_removed(empty: str, clock: Any) -> None:
    """A purge, which `create` makes every few minutes, leaves no row of expired sessions and shared states."""
    ttl = Ttl(session=10, user=20, app=30)
    async with SqlSessions(empty, ttl=ttl, clock=clock) as sessions:
        for number in range(3):
            await fill(sessions, SessionKey("app", "u", f"s{number}"))
        await sessions.update_shared_state("app", "u", {"k": 1})
        await sessions.update_shared_state("app", None, {"k": 1})
        clock.time += 15
        key = (await sessions.create("app", "u", "new")).key
        made = await sessions.get(key)
        assert made is not None
        assert made.state == {"user:k": 1, "app:k": 1}
        assert await sessions.purge() == 3
        assert counts(empty) == {"ga_sessions": 1, "ga_states": 2}
        clock.time += 5
        assert await sessions.shared_state("app", "u") == {}
        assert await sessions.shared_state("app") == {"k": 1}
        clock.time += 1000
        assert (await sessions.create("app", "u", "newer")).state == {}
        assert counts(empty) == {"ga_sessions": 1}


async def test_memory_and_database_agree(empty: str, clock: Any) -> None:
    """Two hundred random calls on both lead to the same sessions, listings and refusals."""
    dice = random.Random(7)
    async with SqlSessions(empty, clock=clock, ttl=Ttl(session=40)) as stored:
        pair = (InMemorySessions(clock=clock, ttl=Ttl(session=40)), stored)
        events = [asks(f"u{n}") if n % 3 == 0 else says(f"a{n}", state_delta={f"app:{n % 4}": n}) for n in range(30)]
        events += [Event(kind="state", state_delta={"user:x": n, "y": n}) for n in range(5)]
        for _ in range(200):
            clock.time += dice.choice([0, 0, 1, 5])
            key = SessionKey("app", dice.choice("uv"), dice.choice("abc"))
            event, last, since = dice.choice(events), dice.choice([None, 1, 4]), dice.choice([None, clock.time - 3])
            stamped = event.model_copy(update={"timestamp": clock.time})
            call = dice.choice(["create", "append", "append", "append", "get", "list", "delete", "track", "state"])
            found = [await outcome(service, call, key, stamped, last, since) for service in pair]
            assert found[0] == found[1], call


async def outcome(service: Any, call: str, key: SessionKey, event: Event, last: Any, since: Any) -> Any:
    """What a call returns, or the kind of its error."""
    calls = {
        "create": lambda: service.create(*key, state={"app:c": 1, "d": 2}),
        "append": lambda: service.append(key, event),
        "get": lambda: service.get(key, last=last, since=since),
        "list": lambda: service.list(key.app, key.user, limit=2),
        "delete": lambda: service.delete(key),
        "track": lambda: service.append_track(key, event.author, [event.text]),
        "state": lambda: service.update_state(key, event.state_delta),
    }
    try:
        return await calls[call]()
    except ServiceError as error:
        return type(error)


# -- other processes ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writers() -> Iterator[ForkServer]:
    """Starts processes that write."""
    with ForkServer("support.session_writer:work") as server:
        yield server


@pytest.mark.kill
async def test_c146_two_processes_append_to_one_session(empty: str, writers: ForkServer) -> None:
    """Nothing is lost, doubled or refused; each process's events stay in its order, both see the same order."""
    key = SessionKey("app", "u", "s")
    async with SqlSessions(empty) as sessions:
        await sessions.create(*key)
        await sessions.append(key, asks("start"))
        jobs = [{"what": "append", "url": empty, "key": key, "who": who, "count": 25} for who in range(2)]
        ended = writers.run(*jobs)
        session = await sessions.get(key)
        assert session is not None
        texts = [event.text for event in session.events]
        for who, end in enumerate(ended):
            mine = [f"{who} {number}" for number in range(25)]
            assert [text for text in texts if text.startswith(f"{who} ")] == mine
            assert end.result == texts[: len(end.result)]
        assert len(texts) == 51
        assert session.state == {"w0": 24, "w1": 24, "app:w0": 24, "app:w1": 24}


@pytest.mark.kill
@pytest.mark.parametrize("kind", ["files", "database"])
async def test_two_processes_save_one_file(empty: str, tmp_path: Path, writers: ForkServer, kind: str) -> None:
    """Each save gets a version of its own, with its bytes."""
    url = empty if kind == "database" else str(tmp_path / "files")
    key = SessionKey("app", "u", "s")
    jobs = [{"what": "save", "url": url, "key": key, "who": who, "count": 15} for who in range(2)]
    found = [end.result for end in writers.run(*jobs)]
    assert sorted(found[0] + found[1]) == list(range(30))
    assert all(versions == sorted(versions) for versions in found)


# -- connections --------------------------------------------------------------------------------------


@pytest.mark.postgres
async def test_c144_connections_that_the_server_ended_are_replaced() -> None:
    """After the server ended all connections an append succeeds, once."""
    with postgres_schema() as url:
        name = f"t{fresh_id()}"
        async with SqlSessions(f"{url}&application_name={name}") as sessions:
            key = (await sessions.create("app", "u", "s")).key
            for number in range(3):
                await sessions.append(key, asks(str(number)))
                ended = query(
                    url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name='{name}'"
                )
                assert ended
            session = await sessions.get(key)
            assert session is not None
            assert [event.text for event in session.events] == ["0", "1", "2"]


async def test_a_closed_service_says_so(tmp_path: Path) -> None:
    """Calls after `aclose` are refused with what to do."""
    for service in (SqlSessions(f"{tmp_path}/a.db"), SqlSessions("sqlite://")):
        await service.create("app", "u")
        await service.aclose()
        with pytest.raises(ServiceError, match="closed; open a new one"):
            await service.create("app", "u")


async def test_a_folder_that_is_not_there_is_named() -> None:
    """A SQLite file in a folder that doesn't exist is an error that says how to mend it."""
    with pytest.raises(ServiceError, match=r"no-such-folder.*create its folder"):
        await SqlSessions("sqlite:////no-such-folder/a.db").create("app", "u")


async def test_c142_a_held_file_is_waited_for_or_named(tmp_path: Path) -> None:
    """A writer that holds the SQLite file too long is an error that names the wait; afterwards all goes on."""
    path = f"{tmp_path}/a.db"
    async with SqlSessions(path, options=DatabaseOptions(busy_timeout=0.05)) as sessions:
        key = (await sessions.create("app", "u")).key
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ServiceError, match=r"locked.*0\.05 s.*busy_timeout"):
            await sessions.append(key, asks("hello"))
        other.execute("ROLLBACK")
        other.close()
        await sessions.append(key, asks("hello"))


async def test_c154_sessions_that_come_and_go_leave_nothing_behind(tmp_path: Path) -> None:
    """After a warm-up 60 more lives of a session, in memory and in SQLite, leave no memory, task or thread behind."""
    kept = InMemorySessions()

    async def blocks_after(count: int) -> int:
        for _ in range(count):
            async with SqlSessions(f"{tmp_path}/a.db") as stored:
                for sessions in (kept, stored):
                    key = (await sessions.create("app", "u", state={"a": 1, "user:b": 2})).key
                    for number in range(5):
                        await sessions.append(key, asks("x" * 100, state_delta={"n": number}))
                    await sessions.append_track(key, "log", [1])
                    await sessions.list("app", "u")
                    await sessions.delete(key)
        gc.collect()
        return sys.getallocatedblocks()

    await blocks_after(20)
    warm = await blocks_after(20)
    tasks, threads = len(asyncio.all_tasks()), threading.active_count()
    after = await blocks_after(60)
    assert after - warm < 300, f"{(after - warm) / 60} blocks a life"
    assert len(asyncio.all_tasks()) == tasks
    assert threading.active_count() <= threads  # idle threads of earlier tests may have ended meanwhile
    assert kept._sessions == {}
