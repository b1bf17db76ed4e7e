"""The conformance suites of services, run by every service that ships."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.databases import postgres_schema

from graphagent.ids import fresh_id
from graphagent.testing import (
    artifact_service_suite,
    memory_service_suite,
    searchable_sessions_suite,
    session_service_suite,
    summary_leases_suite,
    windowed_sessions_suite,
)
from runner.artifacts import FileArtifacts, FsspecArtifacts, InMemoryArtifacts, SqlArtifacts
from runner.memory import InMemoryMemory, SqlMemory
from runner.sessions import InMemorySessions, SqlSessions

PLACE: dict[str, str] = {}
"""The databases and folders of the suite that is running."""


@pytest.fixture(scope="class")
def folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A fresh folder for a suite."""
    PLACE["folder"] = str(tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="class")
def postgres_tables() -> Iterator[None]:
    """A fresh schema for a suite."""
    with postgres_schema() as PLACE["postgres"]:
        yield


def local(suite: Callable[..., type], factory: Callable[[str], Any], backend: str = "asyncio") -> type:
    """A suite for a service that is made with the path of a folder."""
    return pytest.mark.usefixtures("folder")(suite(lambda: factory(PLACE["folder"]), backend=backend))


def postgres(suite: Callable[..., type], factory: Callable[[str], Any]) -> type:
    """A suite for a service on PostgreSQL."""
    made = suite(lambda: factory(PLACE["postgres"]))
    return pytest.mark.postgres(pytest.mark.usefixtures("postgres_tables")(made))


def in_memory(suite: Callable[..., type], service: Any, backend: str = "asyncio") -> type:
    """A suite for one object."""
    return suite(lambda: service, backend=backend)


TestSessionsInMemory = in_memory(session_service_suite, InMemorySessions())
TestSessionsInMemoryOnTrio = in_memory(session_service_suite, InMemorySessions(), "trio")
TestSessionsOnSqlite = local(session_service_suite, lambda path: SqlSessions(f"sqlite:///{path}/a.db"))
TestSessionsOnSqliteOnTrio = local(session_service_suite, lambda path: SqlSessions(f"{path}/a.db"), "trio")
TestSessionsOnPostgres = postgres(session_service_suite, SqlSessions)

TestSearchInMemory = in_memory(searchable_sessions_suite, InMemorySessions())
TestSearchOnSqlite = local(searchable_sessions_suite, lambda path: SqlSessions(f"{path}/a.db"))
TestSearchOnSqliteOnTrio = local(searchable_sessions_suite, lambda path: SqlSessions(f"{path}/a.db"), "trio")
TestSearchOnPostgres = postgres(searchable_sessions_suite, SqlSessions)

TestWindowsInMemory = in_memory(windowed_sessions_suite, InMemorySessions())
TestWindowsOnSqlite = local(windowed_sessions_suite, lambda path: SqlSessions(f"{path}/a.db"))
TestWindowsOnPostgres = postgres(windowed_sessions_suite, SqlSessions)

TestLeasesInMemory = in_memory(summary_leases_suite, InMemorySessions())
TestLeasesOnSqlite = local(summary_leases_suite, lambda path: SqlSessions(f"{path}/a.db"))
TestLeasesOnPostgres = postgres(summary_leases_suite, SqlSessions)

TestMemoryInMemory = in_memory(memory_service_suite, InMemoryMemory())
TestMemoryOnSqlite = local(memory_service_suite, lambda path: SqlMemory(f"{path}/a.db"))
TestMemoryOnPostgres = postgres(memory_service_suite, SqlMemory)

TestArtifactsInMemory = in_memory(artifact_service_suite, InMemoryArtifacts())
TestArtifactsOnSqlite = local(artifact_service_suite, lambda path: SqlArtifacts(f"{path}/a.db"))
TestArtifactsOnPostgres = postgres(artifact_service_suite, SqlArtifacts)
TestArtifactsInFiles = local(artifact_service_suite, FileArtifacts)
TestArtifactsInFilesOnTrio = local(artifact_service_suite, FileArtifacts, "trio")
TestArtifactsByFsspecInFiles = local(artifact_service_suite, lambda path: FsspecArtifacts(f"file://{path}"))
MEMORY_URL = f"memory://files-{fresh_id()}"
TestArtifactsByFsspecInMemory = artifact_service_suite(lambda: FsspecArtifacts(MEMORY_URL))
