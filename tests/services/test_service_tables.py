"""The tables of the services: made, migrated, shared, and what is written in them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.service_tables import STEP, counts, newer_migrations, query

from graphagent import SqlCheckpoints
from graphagent.errors import ServiceError
from graphagent.ledger import Event, SessionKey, TokenUsage
from graphagent.messages import Message, ToolCall
from graphagent.testing.service_help import asks
from runner.artifacts import SqlArtifacts
from runner.memory import SqlMemory
from runner.sessions import SqlSessions
from runner.sql import schema
from runner.sql.database import DatabaseOptions
from runner.sql.migrate import migrate
from runner.sql.render import service_sql
from runner.sql.schema import MIGRATIONS, ServiceSchemaError

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", ["sqlite", "postgresql"])
def test_creation_is_what_the_tables_say(name: str) -> None:
    """`create.*.sql`, from which a database is made, is rendered from `tables.py`."""
    made = (MIGRATIONS / f"create.{name}.sql").read_text()
    assert made == service_sql(name), "run python -m runner.sql.render"


def test_importing_and_opening_loads_nothing_slow(tmp_path: Path) -> None:
    """Neither the import of the services nor a SQLite database that is up to date needs SQLAlchemy, alembic, fsspec
    or psycopg."""
    code = (
        "import asyncio, sys; from runner.sessions import SqlSessions; from runner.memory import SqlMemory; "
        "import runner.artifacts\n"
        f"asyncio.run(SqlSessions({str(tmp_path / 'a.db')!r}).create('app', 'user'))\n"
        "print([name for name in ('sqlalchemy', 'alembic', 'fsspec', 'psycopg', 'litellm') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


async def test_all_services_and_checkpoints_share_a_database(empty: str) -> None:
    """Each makes its tables where the others have theirs, in any order."""
    async with SqlMemory(empty) as memory, SqlCheckpoints(empty) as store, SqlSessions(empty) as sessions:
        lease = await store.acquire("l", "r")
        await store.release(lease)
        await memory.add("app", "u", "likes tea")
        async with SqlArtifacts(empty) as artifacts:
            await artifacts.save((await sessions.create("app", "u")).key, "a", b"1")
    assert counts(empty) == {"ga_sessions": 1, "ga_memories": 1, "ga_artifacts": 1}


async def test_c113_tables_of_a_newer_release_are_refused(empty: str) -> None:
    """The error names both versions and what to install; nothing is touched."""
    async with SqlSessions(empty) as sessions:
        await sessions.create("app", "u", "s")
    query(empty, f"UPDATE {schema.VERSION_TABLE} SET version_num = '0099'", "SELECT 1")
    for service in (SqlSessions(empty), SqlMemory(empty), SqlArtifacts(empty)):
        with pytest.raises(ServiceSchemaError, match=r"version 99.*version 1.*pip install"):
            async with service:
                pass
        await service.aclose()


OLD, NEW = schema.VERSION, schema.VERSION + 1


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The migrations of the release after this one: one more."""
    return newer_migrations(tmp_path / "migrations", monkeypatch)


async def test_c113_c114_older_tables_are_migrated_in_place(
    empty: str, next_release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run changes nothing, a service that must not migrate names the command, opening one migrates, once; a
    step that fails leaves all as it was."""
    key = SessionKey("app", "u", "s")
    async with SqlSessions(empty) as sessions:
        await sessions.create(*key)
        await sessions.append(key, asks("hello", state_delta={"a": 1}))
        before = await sessions.get(key)
    monkeypatch.setattr(schema, "TABLES", replace(schema.TABLES, version=NEW))
    service = SqlSessions(empty)
    report = await service.migrate(dry_run=True)
    await service.aclose()
    assert report == (OLD, NEW, (f"{NEW:04} Sessions get a label",), False)
    assert query(empty, f"SELECT version_num FROM {schema.VERSION_TABLE}") == [(f"{OLD:04}",)]
    with pytest.raises(ServiceSchemaError, match=r"graphagent store migrate --db .*--dry-run"):
        await SqlSessions(empty, options=DatabaseOptions(auto_migrate=False)).get(key)

    good = next_release / "versions" / "next.py"
    good.write_text(STEP + '    op.execute("SELECT nonsense FROM nowhere")\n')
    with pytest.raises(ServiceError, match="nothing was changed"):
        migrate(empty)
    assert query(empty, f"SELECT version_num FROM {schema.VERSION_TABLE}") == [(f"{OLD:04}",)]
    good.write_text(STEP)

    async with SqlSessions(empty) as sessions:
        assert await sessions.get(key) == before
    assert query(empty, "SELECT label FROM ga_sessions") == [("old s",)]
    assert migrate(empty) == (NEW, NEW, (), False)


# -- what is stored -----------------------------------------------------------------------------------


async def test_stored_events_look_like_this(empty: str) -> None:
    """The stored text of an event is part of the format: a later release must read it, so it must not change."""
    call = ToolCall(id="c1", name="look", arguments={"host": "früh"})
    event = Event(
        id="e1",
        author="agent",
        messages=(Message.assistant("", tool_calls=(call,)),),
        branch="a",
        filter_key="app",
        timestamp=1700000000.25,
        state_delta={"n": 1, "temp:x": 2},
        usage=TokenUsage(input_tokens=7),
        long_running_tool_ids=frozenset({"c2", "c1", "c3"}),
    )
    async with SqlSessions(empty) as sessions:
        key = (await sessions.create("app", "u")).key
        stored = await sessions.append(key, event)
        assert query(empty, "SELECT body FROM ga_events") == [
            (
                '{"id":"e1","author":"agent","messages":[{"role":"assistant","tool_calls":[{"id":"c1","name":"look",'
                '"arguments":{"host":"früh"}}]}],"branch":"a","filter_key":"app","timestamp":1700000000.25,'
                '"state_delta":{"n":1},"usage":{"input_tokens":7},"long_running_tool_ids":["c1","c2","c3"]}',
            )
        ]
        body = '{"id":"e2","messages":[{"role":"user","content":"from a later release","mood":"glad"}],"timestamp":1}'
        query(empty, f"UPDATE ga_events SET body = '{body}', asked = 1", "SELECT 1")
        session = await sessions.get(key)
        assert session is not None
        assert [found.text for found in session.events] == ["from a later release"]
        assert stored.state_delta == {"n": 1}
