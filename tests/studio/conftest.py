"""Fixtures of the studio's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import studio_graphs
from browser import GRAPHS, Shared, chromium, fill, studio


@pytest.fixture(scope="module")
def launched() -> Iterator[Any]:
    """A headless browser, closed before the tests of another file: its driver keeps their event loops out."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def db(tmp_path: Path) -> str:
    """The url of a SQLite file of one's own."""
    return f"sqlite:///{tmp_path}/runs.db"


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """A studio that may write, with the graphs `order` and `questions`, for tests that use lineages of their own."""
    url = f"sqlite:///{tmp_path_factory.mktemp('studio')}/runs.db"
    fill(url, studio_graphs.order, {"text": "shoes"}, "order/1?")
    fill(url, studio_graphs.failing, {"text": "shoes"}, "fail-1")
    with studio(url, f"{GRAPHS}:order", f"{GRAPHS}:questions") as served:
        yield Shared(served, url)
