"""The conformance suite, run by every store that ships."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sql_help import postgres_schema

from graphagent.checkpoint.memory import MemoryCheckpoints
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.testing.store_suite import checkpoint_store_suite

PLACE: dict[str, str] = {}
"""The databases of the suite that is running."""


@pytest.fixture(scope="class")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A fresh file for a suite."""
    PLACE["sqlite"] = f"sqlite:///{tmp_path_factory.mktemp('suite')}/checkpoints.db"


@pytest.fixture(scope="class")
def postgres_tables() -> Iterator[None]:
    """A fresh schema for a suite."""
    with postgres_schema() as PLACE["postgres"]:
        yield


def sqlite(sync: str, backend: str = "asyncio") -> type:
    """The suite for SQLite."""
    suite = checkpoint_store_suite(lambda: SqlCheckpoints(PLACE["sqlite"], sync=sync), backend=backend)
    return pytest.mark.usefixtures("sqlite_file")(suite)


def postgres() -> type:
    """The suite for PostgreSQL."""
    suite = checkpoint_store_suite(lambda: SqlCheckpoints(PLACE["postgres"]))
    return pytest.mark.postgres(pytest.mark.usefixtures("postgres_tables")(suite))


TestMemory = checkpoint_store_suite(MemoryCheckpoints)
TestMemoryOnTrio = checkpoint_store_suite(MemoryCheckpoints, backend="trio")
TestSqliteNormal = sqlite("normal")
TestSqliteFull = sqlite("full")
TestSqliteGroup = sqlite("group")
TestSqliteGroupOnTrio = sqlite("group", backend="trio")
TestPostgres = postgres()
