"""The command on the tables of a store, on what release 0.1.0 left."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from cli_help import Call
from support.golden import GOLDEN, SQLITE

from graphagent.checkpoint.sql.schema import VERSION

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


def test_misuse_is_told(call: Call, tmp_path: Path) -> None:
    """A database that isn't there or is no store, and a dry run of what changes nothing, are misuse."""
    done = call("store", "migrate", "--db", str(tmp_path / "none.db"))
    assert (done.code, "no database" in done.err) == (2, True)
    other = str(tmp_path / "other.db")
    Path(other).touch()
    for action in ("status", "migrate"):
        done = call("store", action, "--db", other)
        assert (done.code, "has no checkpoint tables" in done.err) == (2, True)
    done = call("store", "status", "--dry-run", "--db", other)
    assert (done.code, "leave out --dry-run" in done.err) == (2, True)
