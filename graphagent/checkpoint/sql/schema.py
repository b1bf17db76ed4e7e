"""The version of the tables in a database: create them, check them, bring older ones up to date.

A fresh database is made from `migrations/create.*.sql`, which a test keeps equal to `tables.py`: so opening one takes
a millisecond, not the import of SQLAlchemy. Only a migration imports that, and alembic.
"""

from __future__ import annotations

import shlex
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphagent.checkpoint.sql.urls import redacted
from graphagent.errors import CheckpointError

if TYPE_CHECKING:
    import psycopg

VERSION = 2
"""The version of the tables that this release reads and writes: the number of its newest migration."""

VERSION_TABLE = "ga_version"
"""Alembic's version table: one row with the number of the last migration, such as `0001`."""

MIGRATIONS = Path(__file__).parent.parent / "migrations"
ADVISORY_LOCK = 0x6761_7461_626C_6573
"""PostgreSQL's advisory lock for whoever creates or migrates the tables."""

_SELECT = f"SELECT version_num FROM {VERSION_TABLE}"


class SchemaVersionError(CheckpointError):
    """The tables of a database are of a version that this release can't work with."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a migration and how many rows it changed (0 where it changes tables only)."""

    sql: str
    rows: int


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What a migration did, or would do.

    `current` is the version it starts from, None for a database without checkpoint tables; `target` that of this
    release. `steps`: number and title of each. `statements`: what was run, also where it was rolled back. `lineages`,
    `rows`: how many the database holds. `applied`: it was done, and is there to stay.
    """

    current: int | None
    target: int
    steps: tuple[str, ...] = ()
    statements: tuple[Statement, ...] = ()
    lineages: int = 0
    rows: int = 0
    applied: bool = False


def prepare_sqlite(connection: sqlite3.Connection, path: str, *, migrate: bool) -> None:
    """Make sure that the tables are there and of this version; several processes may do so at once.

    Raises sqlite3.Error, SchemaVersionError.
    """
    version = _sqlite_version(connection)
    if version is None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = _sqlite_version(connection)
            for statement in creation("sqlite") if version is None else ():
                connection.execute(statement)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    if is_older(version, f"sqlite:///{path}", migrate):
        run_migration(f"sqlite:///{path}", dry_run=False)


def _sqlite_version(connection: sqlite3.Connection) -> int | None:
    try:
        return int(connection.execute(_SELECT).fetchone()[0])
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise


async def prepare_postgres(connection: psycopg.AsyncConnection[Any], url: str, *, migrate: bool) -> bool:
    """As `prepare_sqlite`, but returns True if older tables are to be migrated.

    Raises psycopg.Error, SchemaVersionError.
    """
    version = await _postgres_version(connection)
    if version is None:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
            version = await _postgres_version(connection)
            for statement in creation("postgresql") if version is None else ():
                await connection.execute(statement.encode())
    return is_older(version, url, migrate)


async def _postgres_version(connection: psycopg.AsyncConnection[Any]) -> int | None:
    # not to_regclass: that may answer from a cache which is older than the lock
    tables = await connection.execute(
        "SELECT 1 FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)", (VERSION_TABLE,)
    )
    if await tables.fetchone() is None:
        return None
    row = await (await connection.execute(_SELECT)).fetchone()
    return None if row is None else int(row[0])


def creation(dialect: str) -> list[str]:
    """The statements that make the tables of this version."""
    return [text for text in (MIGRATIONS / f"create.{dialect}.sql").read_text().split(";\n") if text]


def is_older(version: int | None, url: str, migrate: bool) -> bool:
    """Whether tables of that version (None: just made) must be migrated. Raises SchemaVersionError if they can't be."""
    if version is None or version == VERSION:
        return False
    place = redacted(url)
    if version > VERSION:
        raise SchemaVersionError(
            f"the checkpoint tables in '{place}' are of version {version}, this release of graphagent knows up "
            f"to version {VERSION}: install the release that wrote them, or a newer one (pip install -U graphagent)"
        )
    if not migrate:
        raise SchemaVersionError(
            f"the checkpoint tables in '{place}' are of version {version}, this release of graphagent needs "
            f"version {VERSION}: run `graphagent store migrate --db {shlex.quote(place)}` (with --dry-run first, "
            f"to see what it does), or open the store with auto_migrate=True"
        )
    return True


def run_migration(url: str, *, dry_run: bool) -> MigrationReport:
    """Bring the tables of a database up to date, in place and in one transaction; imports SQLAlchemy and alembic.

    Raises SchemaVersionError, CheckpointError.
    """
    from graphagent.checkpoint.sql.migrate import migrate

    return migrate(url, dry_run=dry_run)
