"""Tables of an older release are migrated: in place, in one transaction, by whoever comes first, or not at all."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sql_help import CODEC, ROOT, environment, write
from support.databases import postgres_schema
from support.golden import GOLDEN, SQLITE, load_dump

from graphagent.checkpoint.sql.migrate import migrate, status
from graphagent.checkpoint.sql.schema import VERSION, SchemaVersionError
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.errors import CheckpointError
from graphagent.testing.store_model import plain_rows

pytestmark = pytest.mark.anyio
NOW, NEXT = f"{VERSION:04}", f"{VERSION + 1:04}"
MANY = 10_000
COMMAND = str(Path(sys.executable).with_name("graphagent"))

STEP = f'''"""Lineages get a label."""

import os
import time

import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{NOW}"


def upgrade() -> None:
    op.add_column("ga_lineages", sa.Column("label", sa.String(), nullable=False, server_default="none"))
    op.execute("UPDATE ga_lineages SET label = 'old ' || name")
    if "HALTS" in os.environ:
        print("halfway", flush=True)
        time.sleep(60)
    if "BROKEN" in os.environ:
        raise RuntimeError("power failed")
    op.create_index("ga_labels", "ga_lineages", ["label"])
'''
"""A migration of the release after this one."""


@pytest.fixture(scope="module")
def next_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the release after this one: one migration more."""
    folder = tmp_path_factory.mktemp("next")
    package = folder / "graphagent"
    shutil.copytree(ROOT / "graphagent", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / f"checkpoint/migrations/versions/{NEXT}_label.py").write_text(STEP)
    source = package / "checkpoint/sql/schema.py"
    source.write_text(source.read_text().replace(f"VERSION = {VERSION}\n", f"VERSION = {VERSION + 1}\n"))
    return folder


ACT = """
import asyncio, json, sys
from graphagent.checkpoint.sql_store import SqlCheckpoints

async def load(url, migrates):
    async with SqlCheckpoints(url, auto_migrate=migrates) as store:
        loaded = await store.load("order-1")
        return [loaded.values, len(await store.history("order-1")), len(await store.lineages())]

async def migrate(url, dry_run):
    report = await SqlCheckpoints(url).migrate(dry_run=dry_run)
    return [report.current, report.target, report.steps, report.applied, [one.rows for one in report.statements]]

url, *actions = sys.argv[1:]
for action in actions:
    try:
        work = load(url, action == "load") if "load" in action else migrate(url, dry_run=action == "dry")
        print(json.dumps(asyncio.run(work)), flush=True)
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {error}"), flush=True)
"""
"""Opens and migrates a database, one action after the other; prints what came of each."""


def begin(release: Path, url: str, *actions: str, **more: str) -> subprocess.Popen[str]:
    """A process that has that release installed, carrying out actions."""
    return subprocess.Popen(
        [sys.executable, "-c", ACT, url, *actions],
        cwd=release,
        env=environment(release, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> list[Any]:
    """What came of each action."""
    out, problem = process.communicate(timeout=120)
    assert process.returncode == 0, problem
    return [json.loads(line) for line in out.splitlines()]


def act(release: Path, url: str, *actions: str, **more: str) -> list[Any]:
    """Carry actions out, and wait."""
    return told(begin(release, url, *actions, **more))


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Call the command line of the release in a folder."""
    return subprocess.run(
        [COMMAND, *words], cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=120
    )


STATE = [{"count": 2, "log": [0, 1, 2]}, 3]


async def write_order(url: str) -> None:
    """A lineage `order-1` of three rows."""
    async with SqlCheckpoints(url) as store:
        lease = await store.acquire("order-1", "run-1")
        await write(store, lease, plain_rows(3))
        await store.release(lease)


def execute(url: str, *statements: str) -> list[Any]:
    """Run statements in one transaction; returns the rows of the last one, if it has any."""
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        found = [connection.exec_driver_sql(statement) for statement in statements][-1]
        rows = [tuple(row) for row in found] if found.returns_rows else []
    engine.dispose()
    return rows


def version_of(url: str) -> str:
    """The version that the tables say they are of."""
    return str(execute(url, "SELECT version_num FROM ga_version")[0][0])


def multiply(url: str, count: int) -> None:
    """Copy the only lineage until there are `count`."""
    sqlite = url.startswith("sqlite")
    numbers = f"(WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n)"
    columns = "run, source, step, base, snap, root, pointer, parent, created_at, nodes, marking, delta, lists, extra"
    execute(
        url,
        "INSERT INTO ga_lineages (id, name, token, run_id, owner, since, expires, cancel) "
        f"SELECT i, 'order-' || i, token, run_id, owner, since, expires, cancel FROM ga_lineages, {numbers} x",
        f"INSERT INTO ga_frames (id, lineage, namespace) SELECT i, i, namespace FROM ga_frames, {numbers} x",
        f"INSERT INTO ga_rows (id, {columns}) "
        f"SELECT id + (CAST(i AS BIGINT) - 1) * 4294967296, {columns} FROM ga_rows, {numbers} x",
        "SELECT 1" if sqlite else "SELECT setval('ga_lineages_id_seq', 20000), setval('ga_frames_id_seq', 20000)",
    )


def golden_copy(url: str, folder: Path) -> None:
    """Put what a release left into a fresh database."""
    if url.startswith("sqlite"):
        shutil.copy(folder / SQLITE, url.removeprefix("sqlite:///"))
    else:
        load_dump(url, folder)


def structure(url: str) -> Any:
    """Tables, columns, keys and indexes as the database has them."""
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    seen = sqlalchemy.inspect(engine)
    found = {
        table: (
            {column["name"]: (str(column["type"]), column["nullable"]) for column in seen.get_columns(table)},
            seen.get_pk_constraint(table)["constrained_columns"],
            sorted((str(index["name"]), index["column_names"]) for index in seen.get_indexes(table)),
            sorted(unique["column_names"] for unique in seen.get_unique_constraints(table)),
        )
        for table in sorted(seen.get_table_names())
    }
    engine.dispose()
    return found


OLD_RELEASES = sorted(path.parent for path in GOLDEN.glob(f"*/{SQLITE}"))


@pytest.mark.parametrize("folder", OLD_RELEASES, ids=lambda folder: str(folder.name))
def test_c113_migrated_tables_are_those_of_a_fresh_database(url: str, folder: Path, tmp_path: Path) -> None:
    """Migrating what a release left comes to the same tables, columns, keys and indexes as creating them today."""
    golden_copy(url, folder)
    report = migrate(url)
    assert report.applied
    assert report.lineages == status(url).lineages > 0
    if url.startswith("sqlite"):
        fresh = f"sqlite:///{tmp_path}/fresh.db"
        asyncio.run(write_order(fresh))
        assert structure(url) == structure(fresh)
    else:
        with postgres_schema() as fresh:
            asyncio.run(write_order(fresh))
            assert structure(url) == structure(fresh)


@pytest.mark.parametrize("folder", OLD_RELEASES, ids=lambda folder: str(folder.name))
def test_c113_many_processes_open_an_old_database_at_once(url: str, folder: Path) -> None:
    """One of them migrates, the others wait for it; each loads a run, and nobody sees an error."""
    golden_copy(url, folder)
    code = (
        "import asyncio, sys\nfrom graphagent.checkpoint import SqlCheckpoints\n"
        "async def main():\n"
        "    async with SqlCheckpoints(sys.argv[1]) as store:\n"
        "        print(len(await store.history('finished')), await store.graph('unknown'))\n"
        "asyncio.run(main())\n"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", code, url], env=environment(), stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [(racer.communicate(timeout=60)[0], racer.returncode) for racer in racers] == [("10 None\n", 0)] * 4
    assert version_of(url) == NOW


async def test_c113_an_older_database_is_migrated_when_it_is_opened(url: str, next_release: Path) -> None:
    """Sessions of release N are readable by release N+1 at once; a second opening has nothing to do."""
    await write_order(url)
    refused, first, second = act(next_release, url, "load unmigrated", "load", "load")
    assert refused.startswith("SchemaVersionError: ")
    assert first == second == [*STATE, 1]
    assert version_of(url) == NEXT
    with pytest.raises(SchemaVersionError, match=f"version {VERSION + 1}"):
        await SqlCheckpoints(url).load("order-1")


def test_c113_without_automatic_migration_the_error_has_the_command(url: str, next_release: Path) -> None:
    """With `auto_migrate=False` the start fails, typed, and the command that it names does the job."""
    asyncio.run(write_order(url))
    (refused,) = act(next_release, url, "load unmigrated")
    found = re.search(r"run `graphagent (store migrate --db) (.*)` \(with --dry-run first", refused)
    assert found is not None
    words = [*found[1].split(), found[2].strip("'")]
    for options, said, version in ((["--dry-run"], "would be done", NOW), ([], "done", NEXT), ([], "up to date", NEXT)):
        done = command(next_release, *words, *options)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
        assert (f"{NEXT} Lineages get a label" in done.stdout) == (said != "up to date")
        assert ("UPDATE ga_lineages SET label = 'old ' || name;  -- 1 row(s)" in done.stdout) == (said != "up to date")
        assert version_of(url) == version


async def test_c114_ten_thousand_lineages_are_migrated_in_place(url: str, next_release: Path) -> None:
    """The dry run tells the steps and rows and changes nothing; the real run is one transaction; a run that is going on
    meanwhile goes on, and all lineages are there."""
    await write_order(url)
    multiply(url, MANY)
    async with SqlCheckpoints(url) as live:
        lease = await live.acquire("live", "run-1")
        await write(live, lease, plain_rows(1))
        before = structure(url)
        steps, rows = [f"{NEXT} Lineages get a label"], [0, MANY + 1, 0, 1]
        dry, refused = act(next_release, url, "dry", "load unmigrated")
        assert dry == [VERSION, VERSION + 1, steps, False, rows]
        assert f"are of version {VERSION}, this release of graphagent needs version {VERSION + 1}" in refused
        assert structure(url) == before
        done, again, loaded = act(next_release, url, "migrate", "migrate", "load")
        assert done == [VERSION, VERSION + 1, steps, True, rows]
        assert again == [VERSION + 1, VERSION + 1, [], False, []]
        assert loaded == [*STATE, MANY + 1]
        await write(live, lease, plain_rows(1, start=1))
        await live.release(lease)
    assert execute(url, "SELECT count(*) FROM ga_lineages WHERE label = 'old ' || name") == [(MANY + 1,)]


async def test_c114_racing_migrations_are_done_once(url: str, next_release: Path) -> None:
    """Of processes that migrate and open 10,000 lineages at once one does it, the others find it done."""
    await write_order(url)
    multiply(url, MANY)
    racers = [begin(next_release, url, action) for action in ("migrate", "load", "migrate", "load")]
    found = [told(racer)[0] for racer in racers]
    assert found[1] == found[3] == [*STATE, MANY]
    assert [(one[1], one[4]) for one in (found[0], found[2]) if one[3]] in ([], [(VERSION + 1, [0, MANY, 0, 1])])
    assert version_of(url) == NEXT
    assert execute(url, "SELECT count(*) FROM ga_lineages WHERE label = 'old ' || name") == [(MANY,)]


@pytest.mark.kill
async def test_c114_killed_halfway_it_is_as_it_was_and_can_be_repeated(url: str, next_release: Path) -> None:
    """`kill -9` after the rows were changed and before the end: the tables are of the old version, with all rows; this
    release goes on with them, and the migration is simply done again."""
    await write_order(url)
    multiply(url, MANY)
    before = structure(url)
    process = begin(next_release, url, "migrate", HALTS="yes")
    assert process.stdout is not None
    assert process.stdout.readline() == "halfway\n"
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert version_of(url) == NOW
    assert structure(url) == before
    async with SqlCheckpoints(url) as store:
        loaded = await store.load("order-1", codec=CODEC)
        assert loaded is not None
        assert loaded.values == STATE[0]
        assert len(await store.lineages()) == MANY
    migrated, opened = act(next_release, url, "migrate", "load")
    assert migrated[3:] == [True, [0, MANY, 0, 1]]
    assert opened == [*STATE, MANY]


async def test_c114_a_migration_that_fails_leaves_everything_as_it_was(url: str, next_release: Path) -> None:
    """Cut off in the middle, the database is still of the old version, and can be migrated again."""
    await write_order(url)
    (broken,) = act(next_release, url, "migrate", BROKEN="yes")
    assert broken == "RuntimeError: power failed"
    assert version_of(url) == NOW
    async with SqlCheckpoints(url) as store:
        loaded = await store.load("order-1", codec=CODEC)
    assert loaded is not None
    assert [loaded.values, 3] == STATE
    assert act(next_release, url, "load") == [[*STATE, 1]]


async def test_what_the_database_refuses_is_a_typed_error(url: str) -> None:
    """A table that stands in the way is named; no error of SQLAlchemy gets out, and nothing is changed."""
    golden_copy(url, GOLDEN / "v0_1_0")
    execute(url, "CREATE TABLE ga_graphs (mine INTEGER)")
    with pytest.raises(CheckpointError, match=r"could not be .*ga_graphs.*already exists; nothing was changed"):
        await SqlCheckpoints(url).lineages()
    assert status(url).current == 1
    execute(url, "DROP TABLE ga_graphs")
    async with SqlCheckpoints(url) as store:
        assert len(await store.lineages()) == status(url).lineages


def test_a_database_without_tables_is_left_alone(tmp_path: Path) -> None:
    """Migrating what was never a store makes nothing; other tables in the file don't matter to a store."""
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE mine (x)")
    connection.execute("PRAGMA user_version = 7")
    for report in (migrate(f"sqlite:///{path}"), status(f"sqlite:///{path}")):
        assert (report.current, report.steps, report.applied) == (None, (), False)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    asyncio.run(write_order(f"sqlite:///{path}"))
    assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)
    connection.close()
