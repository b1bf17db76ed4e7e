"""Fixtures for all tests: event loop, stores of every kind, a lineage of one's own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.databases import postgres_schema

from graphagent import MemoryCheckpoints, SqlCheckpoints
from graphagent.ids import fresh_id

OpenStore = Callable[[], Any]
BROUGHT = (
    "PostgreSQL",
    "pgbouncer",
    "tmux",
    "strace",
    "CA bundle",
    "numpy",
    "local model",
    "MCP_TIME",
    "Chromium",
    "needs bubblewrap",
)
"""What `.ci/run` brings: with GRAPHAGENT_TEST_NO_SKIP a test that was skipped for want of it fails the run."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """Ids that every worker of pytest-xdist makes alike: the order in which a set shows itself differs by process."""
    return repr(sorted(val, key=repr)) if isinstance(val, set | frozenset) else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a CI run in which something was skipped that CI brings."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("GRAPHAGENT_TEST_NO_SKIP"):
        return
    reasons = [str(report.longrepr) for report in reporter.stats.get("skipped", ())]
    missing = sorted({reason for reason in reasons if any(name in reason for name in BROUGHT)})
    if missing:
        reporter.write_line("skipped although CI brings it:\n" + "\n".join(missing), red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of async tests: psycopg works with asyncio only."""
    return "asyncio"


@pytest.fixture
def lineage() -> str:
    """A lineage that no other test uses."""
    return f"t-{fresh_id()}"


@pytest.fixture(scope="session")
def shared_postgres_url() -> Iterator[str]:
    """The url of a PostgreSQL schema that the tests of a session share; each uses its own lineage."""
    with postgres_schema() as url:
        yield url


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """A function that opens a store of each kind; every call leads to the same rows, as after a restart."""
    if request.param == "memory":
        kept = MemoryCheckpoints()
        return lambda: kept
    if request.param == "sqlite":
        return lambda: SqlCheckpoints(f"sqlite:///{tmp_path}/checkpoints.db")
    url = request.getfixturevalue("shared_postgres_url")
    return lambda: SqlCheckpoints(url)


@pytest.fixture
async def store(open_store: OpenStore, anyio_backend: str) -> AsyncIterator[Any]:
    """A store of each kind, open while the test runs."""
    async with open_store() as opened:
        yield opened


@pytest.fixture(params=["superstep", "fast", "eager"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of each engine, for behaviour that both share.

    `fast` is the superstep engine without the debug mode that pytest turns on: it takes the ways that production
    takes, in which changes of the state in place are not watched for.
    """
    if request.param == "fast":
        monkeypatch.setenv("GRAPHAGENT_DEBUG", "0")
        return "superstep"
    return str(request.param)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The url of a database of each kind, for tests that open it more than once or from another process."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/checkpoints.db"
    return str(request.getfixturevalue("shared_postgres_url"))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def fresh_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The url of a database of each kind that nobody else uses."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/fresh.db"
        return
    with postgres_schema() as url:
        yield url
