"""Servers that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.serving import AGENTS, Server, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of `bob` for everybody."""
    with served(tmp_path_factory.mktemp("bob"), "bob") as up:
        yield up


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of `bob` for two users, ann and eve, with a database."""
    with served(tmp_path_factory.mktemp("two"), "bob", "--auth", f"{AGENTS}:two_users", "--db", "two.db") as up:
        yield up
