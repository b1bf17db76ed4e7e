"""Databases for the tests of SQL stores."""

from __future__ import annotations

import os
from pathlib import Path

from support.databases import SERVER, postgres_schema

from graphagent.checkpoint.record import Row
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.checkpoint.store import Lease
from graphagent.testing.store_model import AnyCodec

CODEC = AnyCodec()
__all__ = ["CODEC", "ROOT", "SERVER", "TABLES", "environment", "postgres_schema", "schema_of", "write"]
TABLES = ("activations", "effects", "frames", "lineages", "pins", "rows", "runs")
ROOT = Path(__file__).parents[2]


def environment(folder: Path = ROOT, **more: str) -> dict[str, str]:
    """The environment of a process that has the release in `folder` installed; it may cache compiled modules."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**own, "PYTHONPATH": str(folder), **more}


def schema_of(url: str) -> str:
    """The schema of a url that `postgres_schema` made."""
    return url.rpartition("search_path%3D")[2].partition("%20")[0]


async def write(store: SqlCheckpoints, lease: Lease, rows: list[Row], namespace: str = "") -> None:
    """Append rows one at a time."""
    for row in rows:
        await store.append(lease, namespace, [row], CODEC)
