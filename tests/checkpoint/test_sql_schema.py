"""Tables: made in a fresh database, checked at every opening, migrated in place."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from sql_help import environment, write

from graphagent.checkpoint.sql import schema
from graphagent.checkpoint.sql.render import DIALECTS, creation_sql
from graphagent.checkpoint.sql.schema import TABLES, SchemaVersionError
from graphagent.checkpoint.sql.tables import METADATA
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.errors import CheckpointError
from graphagent.testing.store_model import plain_rows

pytestmark = pytest.mark.anyio


async def _write_order(url: str) -> None:
    async with SqlCheckpoints(url) as store:
        lease = await store.acquire("order-1", "run-1")
        await write(store, lease, plain_rows(3))
        await store.release(lease)


def _set_version(url: str, version: str) -> None:
    statement = f"UPDATE ga_version SET version_num = '{version}'"
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute(statement)
        connection.close()
    else:
        with psycopg.connect(url) as server:
            server.execute(statement.encode())


@pytest.mark.parametrize("name", DIALECTS)
def test_creation_files_say_what_the_tables_say(name: str) -> None:
    """A fresh database is made from a file that must be written anew when `tables.py` changes."""
    made = (schema.MIGRATIONS / f"create.{name}.sql").read_text()
    assert made == creation_sql(DIALECTS[name]), "run python -m graphagent.checkpoint.sql.render"
    assert len(TABLES.creation(name)) == len(METADATA.tables) + 3


def test_opening_needs_no_sqlalchemy(tmp_path: Path) -> None:
    """Creating and opening a SQLite store imports neither SQLAlchemy nor psycopg nor alembic."""
    code = (
        "import asyncio, sys\nfrom graphagent.checkpoint import SqlCheckpoints\n"
        "async def main():\n    async with SqlCheckpoints('x.db') as store: print(await store.lineages())\n"
        "asyncio.run(main())\n"
        "print(sorted({'sqlalchemy', 'sqlmodel', 'alembic', 'psycopg'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["[]", "[]"]


def test_many_processes_open_a_fresh_database_at_once(url: str) -> None:
    """Whoever comes first makes the tables, the others wait for them; nobody sees an error."""
    code = (
        "import asyncio, sys\nfrom graphagent.checkpoint import SqlCheckpoints\n"
        "async def main():\n"
        "    async with SqlCheckpoints(sys.argv[1]) as store:\n"
        "        await store.acquire(sys.argv[2], 'run')\n"
        "asyncio.run(main())\n"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", code, url, f"line-{place}"], env=environment(), stderr=subprocess.PIPE)
        for place in range(4)
    ]
    for racer in racers:
        _, problem = racer.communicate(timeout=60)
        assert racer.returncode == 0, problem


async def test_two_handles_open_a_fresh_database_at_once(url: str) -> None:
    """Also within one process."""
    stores = [SqlCheckpoints(url) for _ in range(5)]
    await asyncio.gather(*(store.lineages() for store in stores))
    await asyncio.gather(*(store.aclose() for store in stores))


async def test_a_newer_schema_is_refused(url: str) -> None:
    """Tables of a newer release are left alone, with an error that says what to install."""
    await _write_order(url)
    _set_version(url, "0999")
    with pytest.raises(
        SchemaVersionError, match=rf"version 999.*up to version {schema.VERSION}: install .*pip install -U graphagent"
    ):
        await SqlCheckpoints(url).load("order-1")
    with pytest.raises(SchemaVersionError, match="version 999"):
        await SqlCheckpoints(url).migrate()


@pytest.mark.parametrize("path", ["no/such/folder/x.db", "/proc/x.db"])
async def test_a_place_that_cannot_be_opened_is_named(path: str) -> None:
    """The error names the file and the mend."""
    with pytest.raises(CheckpointError, match=rf"{path}'.*(create its folder|writable)"):
        await SqlCheckpoints(path).load("x")
