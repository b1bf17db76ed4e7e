"""The command on the tables of a store, on what release 0.1.0 left."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import anyio
import pytest
from cli_help import Call
from support.golden import GOLDEN, SQLITE
from support.service_tables import newer_services

from graphagent.checkpoint.sql.schema import VERSION
from runner.sessions import SqlSessions
from runner.sql import schema

ALL = {"current": 1, "target": VERSION, "lineages": 40, "rows": 350}


@pytest.fixture
def old(tmp_path: Path) -> str:
    """The path of a store of release 0.1.0."""
    return str(shutil.copy(GOLDEN / "v0_1_0" / SQLITE, tmp_path / "old.db"))


def test_status_tells_the_versions_and_changes_nothing(call: Call, old: str) -> None:
    """Exit status 1 and the steps while a migration is due, 0 afterwards."""
    content = Path(old).read_bytes()
    done = call("store", "status", "--db", old, "--json")
    assert done.code == 1
    assert {name: done.data[name] for name in ALL} == ALL
    assert [step[:4] for step in done.data["steps"]] == [f"{number:04}" for number in range(2, VERSION + 1)]
    assert Path(old).read_bytes() == content
    assert "to be migrated\n  0002 The documents" in call("store", "status", "--db", old).out
    assert call("store", "migrate", "--db", old).code == 0
    done = call("store", "status", "--db", old)
    assert (done.code, f"version {VERSION}: up to date" in done.out) == (0, True)


def test_a_dry_run_shows_sql_and_rows_and_undoes_it(call: Call, old: str) -> None:
    """The statements of the dry run are those of the real one; only the real one is there to stay."""
    dry = call("store", "migrate", "--dry-run", "--db", old, "--json")
    assert dry.code == 0
    assert {name: dry.data[name] for name in ALL} == ALL
    assert (dry.data["applied"], dry.data["dry_run"]) == (False, True)
    assert any("CREATE TABLE ga_graphs" in one["sql"] for one in dry.data["statements"])
    assert call("store", "status", "--db", old).code == 1
    real = call("store", "migrate", "--db", old, "--json")
    assert real.data == {**dry.data, "applied": True, "dry_run": False}
    again = call("store", "migrate", "--db", old, "--json")
    assert [again.data[name] for name in ("current", "steps", "statements", "applied")] == [VERSION, [], [], False]


def test_a_newer_store_is_told_apart(call: Call, old: str) -> None:
    """`status` says that the store is newer, with exit status 1; `migrate` refuses it and says what to install."""
    connection = sqlite3.connect(old, isolation_level=None)
    connection.execute("UPDATE ga_version SET version_num = '0999'")
    connection.close()
    done = call("store", "status", "--db", old)
    assert (done.code, "version 999 is newer than this release" in done.out) == (1, True)
    done = call("store", "migrate", "--db", old)
    assert (done.code, "pip install -U graphagent" in done.err) == (2, True)


def test_service_tables_are_migrated_by_the_same_command(
    call: Call, old: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status and migration cover checkpoints and services of one database, and say of each what there was to do; tables
    of services that this release can't have keep those of checkpoints as they are."""
    anyio.run(SqlSessions(old).create, "app", "ann")
    newer_services(tmp_path / "migrations", monkeypatch)
    assert call("store", "status", "--db", old).code == 1
    dry = call("store", "migrate", "--dry-run", "--db", old, "--json")
    target = schema.TABLES.version
    steps = [f"{target:04} Sessions get a label"]
    due = {"current": target - 1, "target": target, "steps": steps, "applied": False}
    assert dry.data["services"] == due
    done = call("store", "migrate", "--db", old)
    assert f"sessions, memory, artifacts:\nversion {target - 1} -> {target}: done\n  {steps[0]}" in done.out
    assert f"version 1 -> {VERSION}: done" in done.out
    done = call("store", "status", "--db", old, "--json")
    assert (done.code, done.data["current"], done.data["services"]["current"]) == (0, VERSION, target)


def test_a_release_that_cannot_have_the_services_leaves_the_checkpoints(call: Call, old: str) -> None:
    """What is of a newer release is refused before anything is changed."""
    anyio.run(SqlSessions(old).create, "app", "ann")
    connection = sqlite3.connect(old, isolation_level=None)
    connection.execute(f"UPDATE {schema.VERSION_TABLE} SET version_num = '0999'")
    done = call("store", "migrate", "--db", old)
    assert (done.code, "service tables" in done.err, "version 999" in done.err) == (2, True, True)
    assert connection.execute("SELECT version_num FROM ga_version").fetchone() == ("0001",)
    connection.close()


def test_services_alone_are_a_store_too(call: Call, tmp_path: Path) -> None:
    """A database without checkpoints has a status, and a migration that finds nothing to do."""
    path = str(tmp_path / "services.db")
    anyio.run(SqlSessions(path).create, "app", "ann")
    for action in ("status", "migrate"):
        done = call("store", action, "--db", path)
        assert (done.code, "checkpoints: no tables" in done.out) == (0, True)
        assert f"version {schema.VERSION}: up to date" in done.out


def test_misuse_is_told(call: Call, tmp_path: Path) -> None:
    """A database that isn't there or is no store, and a dry run of what changes nothing, are misuse."""
    done = call("store", "migrate", "--db", str(tmp_path / "none.db"))
    assert (done.code, "no database" in done.err) == (2, True)
    other = str(tmp_path / "other.db")
    Path(other).touch()
    for action in ("status", "migrate"):
        done = call("store", action, "--db", other)
        assert (done.code, "has no tables of graphagent" in done.err) == (2, True)
    done = call("store", "status", "--dry-run", "--db", other)
    assert (done.code, "leave out --dry-run" in done.err) == (2, True)
