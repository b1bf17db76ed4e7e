"""Databases for tests: fresh SQLite files and PostgreSQL schemas, and the stores on them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from graphagent.ids import fresh_id

SERVER = os.environ.get("GRAPHAGENT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")


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
