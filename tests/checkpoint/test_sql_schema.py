"""Tables: made in a fresh database, checked at every opening, migrated in place."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sql_help import CODEC, ROOT, environment, write

from graphagent.checkpoint.sql import schema
from graphagent.checkpoint.sql.migrate import migrate
from graphagent.checkpoint.sql.render import DIALECTS, creation_sql
from graphagent.checkpoint.sql.schema import SchemaVersionError, creation
from graphagent.checkpoint.sql.tables import METADATA
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.errors import CheckpointError
from graphagent.testing.store_model import plain_rows

pytestmark = pytest.mark.anyio

STEP = '''"""Lineages get a label."""

import os

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("ga_lineages", sa.Column("label", sa.String(), nullable=False, server_default="none"))
    op.execute("UPDATE ga_lineages SET label = 'old ' || name")
    if "BROKEN" in os.environ:
        raise RuntimeError("power failed")
'''
"""A migration of the release after this one."""


@pytest.fixture(scope="module")
def next_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the release after this one: one migration more."""
    folder = tmp_path_factory.mktemp("next")
    package = folder / "graphagent"
    shutil.copytree(ROOT / "graphagent", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "checkpoint/migrations/versions/0002_label.py").write_text(STEP)
    source = package / "checkpoint/sql/schema.py"
    source.write_text(source.read_text().replace(f"VERSION = {schema.VERSION}\n", "VERSION = 2\n"))
    return folder


ACT = """
import asyncio, json, os, sys
from graphagent.checkpoint.sql_store import SqlCheckpoints

async def act(url, action):
    async with SqlCheckpoints(url, auto_migrate=action == "load") as store:
        loaded = await store.load("order-1")
        return [loaded.values, len(await store.history("order-1")), len(await store.lineages())]

async def migrate(url, dry_run):
    report = await SqlCheckpoints(url).migrate(dry_run=dry_run)
    return [report.current, report.target, report.steps, report.applied]

url, *actions = sys.argv[1:]
for action in actions:
    if action == "broken":
        os.environ["BROKEN"] = "yes"
    try:
        work = act(url, action) if "load" in action else migrate(url, dry_run=action == "dry")
        print(json.dumps(asyncio.run(work)))
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
    os.environ.pop("BROKEN", None)
"""
"""Opens and migrates a database, one action after the other; prints what came of each."""


def act(release: Path, url: str, *actions: str) -> list[Any]:
    """Carry actions out in a process that has that release installed."""
    done = subprocess.run(
        [sys.executable, "-c", ACT, url, *actions],
        cwd=release,
        env=environment(release),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


STATE = [{"count": 2, "log": [0, 1, 2]}, 3]


async def _write_order(url: str) -> None:
    async with SqlCheckpoints(url) as store:
        lease = await store.acquire("order-1", "run-1")
        await write(store, lease, plain_rows(3))
        await store.release(lease)


def _version(url: str) -> str:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        try:
            return str(connection.execute("SELECT version_num FROM ga_version").fetchone()[0])
        finally:
            connection.close()
    with psycopg.connect(url) as server:
        row = server.execute("SELECT version_num FROM ga_version").fetchone()
    assert row is not None
    return str(row[0])


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
    assert len(creation(name)) == len(METADATA.tables) + 3


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
    with pytest.raises(SchemaVersionError, match=r"version 999.*up to version 1: install .*pip install -U graphagent"):
        await SqlCheckpoints(url).load("order-1")
    with pytest.raises(SchemaVersionError, match="version 999"):
        await SqlCheckpoints(url).migrate()


async def test_c113_an_older_database_is_migrated_when_it_is_opened(url: str, next_release: Path) -> None:
    """Sessions of release N are readable by release N+1 at once; a second opening has nothing to do."""
    await _write_order(url)
    refused, first, second = act(next_release, url, "load unmigrated", "load", "load")
    assert refused.startswith("SchemaVersionError: ")
    assert first == second == [*STATE, 1]
    assert _version(url) == "0002"
    with pytest.raises(SchemaVersionError, match="version 2"):
        await SqlCheckpoints(url).load("order-1")


def test_c113_without_automatic_migration_the_error_has_the_command(tmp_path: Path, next_release: Path) -> None:
    """With `auto_migrate=False` the start fails, typed, and the command that it names does the job."""
    url = f"sqlite:///{tmp_path}/checkpoints.db"
    asyncio.run(_write_order(url))
    (refused,) = act(next_release, url, "load unmigrated")
    assert "run `python -m graphagent.checkpoint.sql.migrate URL` (with --dry-run first" in refused
    assert _version(url) == "0001"
    command = [sys.executable, "-m", "graphagent.checkpoint.sql.migrate", url]
    expected = ((["--dry-run"], "would be done", "0001"), ([], "done", "0002"), ([], "nothing", "0002"))
    for options, words, version in expected:
        told = subprocess.run(
            [*command, *options],
            cwd=next_release,
            env=environment(next_release),
            capture_output=True,
            text=True,
            check=True,
        )
        assert words in told.stdout
        assert ("0002 Lineages get a label" in told.stdout) == (words != "nothing")
        assert _version(url) == version


async def test_c114_ten_thousand_lineages_are_migrated_in_place(url: str, next_release: Path) -> None:
    """The dry run tells the steps and changes nothing; the real run is one transaction; all lineages are there."""
    await _write_order(url)
    _multiply(url, 10_000)
    async with SqlCheckpoints(url) as live:
        lease = await live.acquire("live", "run-1")
        await write(live, lease, plain_rows(1))
        steps = ["0002 Lineages get a label"]
        dry, refused, done, loaded = act(next_release, url, "dry", "load unmigrated", "migrate", "load")
        assert dry == [1, 2, steps, False]
        assert "are of version 1, this release of graphagent needs version 2" in refused
        assert done == [1, 2, steps, True]
        assert loaded == [*STATE, 10_001]
        await write(live, lease, plain_rows(1, start=1))
        await live.release(lease)


async def test_c114_a_migration_that_fails_leaves_everything_as_it_was(url: str, next_release: Path) -> None:
    """Cut off in the middle, the database is still of the old version, and can be migrated again."""
    await _write_order(url)
    (broken,) = act(next_release, url, "broken")
    assert broken == "RuntimeError: power failed"
    assert _version(url) == "0001"
    async with SqlCheckpoints(url) as store:
        loaded = await store.load("order-1", codec=CODEC)
    assert loaded is not None
    assert [loaded.values, 3] == STATE
    assert act(next_release, url, "load") == [[*STATE, 1]]


def _multiply(url: str, count: int) -> None:
    """Copy the only lineage until there are `count`."""
    if url.startswith("sqlite"):
        numbers = f"(WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n)"
    else:
        numbers = f"(SELECT i FROM generate_series(2, {count}) n(i))"
    columns = "run, source, step, base, snap, root, pointer, parent, created_at, nodes, marking, delta, lists, extra"
    copies = (
        "INSERT INTO ga_lineages (id, name, token, run_id, owner, since, expires, cancel) "
        f"SELECT i, 'order-' || i, token, run_id, owner, since, expires, cancel FROM ga_lineages, {numbers} x",
        f"INSERT INTO ga_frames (id, lineage, namespace) SELECT i, i, namespace FROM ga_frames, {numbers} x",
        f"INSERT INTO ga_rows (id, {columns}) SELECT id + (i - 1) * 4294967296, {columns} FROM ga_rows, {numbers} x",
    )
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        for statement in copies:
            connection.execute(statement)
        connection.commit()
        connection.close()
        return
    with psycopg.connect(url) as server:
        for statement in copies:
            server.execute(statement.encode())
        server.execute("SELECT setval('ga_lineages_id_seq', 20000), setval('ga_frames_id_seq', 20000)")


def test_a_database_without_tables_is_left_alone(tmp_path: Path) -> None:
    """Migrating what was never a store makes nothing; other tables in the file don't matter to a store."""
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE mine (x)")
    connection.execute("PRAGMA user_version = 7")
    assert migrate(f"sqlite:///{path}").steps == ()
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    asyncio.run(_write_order(f"sqlite:///{path}"))
    assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)
    connection.close()


@pytest.mark.parametrize("path", ["no/such/folder/x.db", "/proc/x.db"])
async def test_a_place_that_cannot_be_opened_is_named(path: str) -> None:
    """The error names the file and the mend."""
    with pytest.raises(CheckpointError, match=rf"{path}'.*(create its folder|writable)"):
        await SqlCheckpoints(path).load("x")
