"""Sessions of each kind of service, for tests of search."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.databases import postgres_schema

from runner.sessions import InMemorySessions, SqlSessions


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """A function that opens sessions of each kind; every call leads to the same ones, in memory to new ones."""
    if request.param == "memory":
        yield InMemorySessions
    elif request.param == "sqlite":
        yield lambda **options: SqlSessions(f"sqlite:///{tmp_path}/s.db", **options)
    else:
        with postgres_schema() as found:
            yield lambda **options: SqlSessions(found, **options)
