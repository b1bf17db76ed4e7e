"""Fixtures of the service tests: sessions of every kind, time that stands still."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.hand_clock import HandClock

from graphagent.ids import fresh_id
from runner.sessions import InMemorySessions, SqlSessions

OpenSessions = Callable[..., Any]


@pytest.fixture
def clock() -> HandClock:
    """A clock that goes on only when it is told to."""
    return HandClock()


@pytest.fixture
def app() -> str:
    """An app that no other test uses."""
    return f"app-{fresh_id()}"


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def open_sessions(request: pytest.FixtureRequest, tmp_path: Path) -> OpenSessions:
    """A function that opens sessions of each kind, with options; every call leads to the same ones."""
    if request.param == "memory":
        kept: list[InMemorySessions] = []

        def in_memory(**options: Any) -> InMemorySessions:
            if not kept:
                kept.append(InMemorySessions(**options))
            return kept[0]

        return in_memory
    if request.param == "sqlite":
        return lambda **options: SqlSessions(f"sqlite:///{tmp_path}/services.db", **options)
    url = request.getfixturevalue("shared_postgres_url")
    return lambda **options: SqlSessions(url, **options)


@pytest.fixture
def empty(fresh_database: str) -> str:
    """The url of a database that has no tables yet."""
    return fresh_database
