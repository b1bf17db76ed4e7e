"""Fixtures for the public fault reports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from typing import Any

import pytest
from support.pausing import Lives

from graphagent import StateGraph


@pytest.fixture(params=["superstep", "eager"])
async def lives(
    request: pytest.FixtureRequest, open_store: Callable[[], Any], lineage: str, anyio_backend: str
) -> AsyncIterator[Callable[[Callable[[], StateGraph]], Lives]]:
    """A function that gives the lives of a graph, on each engine and store.

    Between two lives the store is opened anew; the one on PostgreSQL, where that takes long, stays open.
    """
    engine = request.param
    if "postgres" in request.node.name:
        async with open_store() as store:
            yield lambda graph: Lives(lambda: nullcontext(store), graph, engine, lineage)
    else:
        yield lambda graph: Lives(open_store, graph, engine, lineage)
