"""Databases, each fresh for the test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

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


@pytest.fixture
def url(fresh_database: str) -> str:
    """The url of a fresh database, of each kind."""
    return fresh_database
