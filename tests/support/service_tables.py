"""What a database of services holds, seen without the library."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from runner.sql import schema
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


STEP = f'''"""Sessions get a label."""

import sqlalchemy as sa
from alembic import op

revision = "{schema.VERSION + 1:04}"
down_revision = "{schema.VERSION:04}"


def upgrade() -> None:
    op.add_column("ga_sessions", sa.Column("label", sa.String(), nullable=False, server_default="none"))
    op.execute("UPDATE ga_sessions SET label = 'old ' || name")
'''
"""A migration of the release after this one."""


def newer_migrations(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """The migrations of the release after this one: one more, `STEP`, in the file `next.py`."""
    shutil.copytree(schema.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "next.py").write_text(STEP)
    patch.setattr(schema, "TABLES", replace(schema.TABLES, migrations=folder))
    return folder


def newer_services(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Make this the release after this one, as far as the service tables go."""
    newer_migrations(folder, patch)
    patch.setattr(schema, "TABLES", replace(schema.TABLES, version=schema.VERSION + 1))
