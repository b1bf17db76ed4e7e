"""Sessions of each kind of service, for tests of summaries."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graphagent.services import SessionService
from runner.sessions import InMemorySessions, SqlSessions


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SessionService]:
    """A session service, in memory and on each database."""
    service: Any
    if request.param == "memory":
        service = InMemorySessions()
    elif request.param == "sqlite":
        service = SqlSessions(f"sqlite:///{tmp_path}/s.db")
    else:
        service = SqlSessions(request.getfixturevalue("shared_postgres_url"))
    yield service
    await service.aclose()
