"""Databases for the tests of SQL stores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from graphagent.checkpoint.record import Row
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.checkpoint.store import Lease
from graphagent.ids import fresh_id
from graphagent.testing.store_model import AnyCodec

CODEC = AnyCodec()
SERVER = os.environ.get("GRAPHAGENT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
TABLES = ("activations", "effects", "frames", "lineages", "pins", "rows", "runs")
ROOT = Path(__file__).parents[2]


def environment(folder: Path = ROOT, **more: str) -> dict[str, str]:
    """The environment of a process that has the release in `folder` installed; it may cache compiled modules."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**own, "PYTHONPATH": str(folder), **more}


@contextmanager
def postgres_schema() -> Iterator[str]:
    """The url of a fresh schema on the test server; skips the test if there is none."""
    try:
        server = psycopg.connect(SERVER, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL server at GRAPHAGENT_TEST_POSTGRES: {str(error).splitlines()[0]}")
    name = f"test_{fresh_id()}"
    with server:
        server.execute(f"CREATE SCHEMA {name}")
        try:
            yield f"{SERVER}{'&' if '?' in SERVER else '?'}options=-csearch_path%3D{name}"
        finally:
            server.execute(f"DROP SCHEMA {name} CASCADE")


def schema_of(url: str) -> str:
    """The schema of a url that `postgres_schema` made."""
    return url.rpartition("search_path%3D")[2].partition("%20")[0]


async def write(store: SqlCheckpoints, lease: Lease, rows: list[Row], namespace: str = "") -> None:
    """Append rows one at a time."""
    for row in rows:
        await store.append(lease, namespace, [row], CODEC)
