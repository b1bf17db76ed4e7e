"""What a database holds, seen without the library: rows per table, and everything as text."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg

TABLES = ("ga_lineages", "ga_frames", "ga_runs", "ga_rows", "ga_activations", "ga_effects", "ga_pins", "ga_graphs")


def all_rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table of a checkpoint store."""
    if url.startswith("sqlite:///"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            found = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
        connection.close()
        return found
    with psycopg.connect(url) as server:
        return {table: server.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}


def row_counts(url: str) -> dict[str, int]:
    """The number of rows per table."""
    return {table: len(rows) for table, rows in all_rows(url).items()}


def as_text(url: str) -> str:
    """Everything in every table as one text, bytes read as UTF-8."""
    cells = (cell for rows in all_rows(url).values() for row in rows for cell in row)
    return "\n".join(
        bytes(cell).decode("utf-8", "backslashreplace") if isinstance(cell, bytes | memoryview) else str(cell)
        for cell in cells
    )
