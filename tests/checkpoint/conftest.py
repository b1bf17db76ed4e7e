"""Databases, each fresh for the test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sql_help import postgres_schema


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of async tests: psycopg works with asyncio only."""
    return "asyncio"


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """The url of a fresh schema on the test server."""
    with postgres_schema() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The url of a fresh database, of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/checkpoints.db"
    else:
        with postgres_schema() as schema:
            yield schema
