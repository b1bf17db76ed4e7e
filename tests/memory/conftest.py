"""Memories and sessions of each kind, side by side in one database where there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey
from runner.memory import InMemoryMemory, SqlMemory
from runner.sessions import InMemorySessions, SqlSessions


class Kept(NamedTuple):
    """Sessions, memories, and the key of a session that no other test uses."""

    sessions: Any
    memory: Any
    key: SessionKey


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    """Services of each kind, open while the test runs."""
    key = SessionKey(f"app-{fresh_id()}", "ann", "s1")
    if request.param == "memory":
        yield Kept(InMemorySessions(), InMemoryMemory(), key)
        return
    is_file = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/services.db" if is_file else request.getfixturevalue("shared_postgres_url")
    async with SqlSessions(url) as sessions, SqlMemory(url) as memory:
        yield Kept(sessions, memory, key)
