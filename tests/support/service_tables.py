"""What a database of services holds, seen without the library."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg

from runner.sql.tables import METADATA


def query(url: str, *statements: str) -> list[Any]:
    """The rows of the last statement, run without the library."""
    if url.startswith("sqlite:///"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        try:
            with connection:
                return [connection.execute(text).fetchall() for text in statements][-1]
        finally:
            connection.close()
    with psycopg.connect(url, autocommit=True) as server:
        cursors = [server.execute(text) for text in statements]
        return cursors[-1].fetchall() if cursors[-1].description else []


def counts(url: str) -> dict[str, int]:
    """The number of rows per table, of those that have any."""
    found = {table: query(url, f"SELECT count(*) FROM {table}")[0][0] for table in METADATA.tables}
    return {table: count for table, count in found.items() if count}
