"""The version of the service tables in a database: create them, check them, bring older ones up to date.

As `graphagent.checkpoint.sql.schema` does it for checkpoints, with a version table of its own: both may share a
database. A fresh one is made from `migrations/create.*.sql`, without the import of SQLAlchemy.
"""

from __future__ import annotations

import shlex
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphagent.checkpoint.sql.urls import redacted
from graphagent.errors import ServiceError

if TYPE_CHECKING:
    import psycopg

VERSION = 1
"""The version of the tables that this release reads and writes: the number of its newest migration."""

VERSION_TABLE = "ga_services_version"
"""Alembic's version table: one row with the number of the last migration, such as `0001`."""

MIGRATIONS = Path(__file__).parent / "migrations"
ADVISORY_LOCK = 0x6761_7365_7276_6963
"""PostgreSQL's advisory lock for whoever creates or migrates the tables."""

_SELECT = f"SELECT version_num FROM {VERSION_TABLE}"


class ServiceSchemaError(ServiceError):
    """The service tables of a database are of a version that this release can't work with."""


class ServiceMigration(NamedTuple):
    """What a migration did, or would do: from version `current` (None: no tables) to `target`, by these `steps`.

    `applied`: it was done, and is there to stay.
    """

    current: int | None
    target: int
    steps: tuple[str, ...] = ()
    applied: bool = False


def creation(dialect: str) -> list[str]:
    """The statements that make the tables of this version in a `sqlite` or `postgresql` database."""
    return [text for text in (MIGRATIONS / f"create.{dialect}.sql").read_text().split(";\n") if text]


def prepare_sqlite(connection: sqlite3.Connection, url: str, *, migrate: bool) -> bool:
    """Make sure that the tables are there; True if older ones are to be migrated. Several processes may do so at once.

    Raises sqlite3.Error, ServiceSchemaError.
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
    return is_older(version, url, migrate)


def _sqlite_version(connection: sqlite3.Connection) -> int | None:
    try:
        return int(connection.execute(_SELECT).fetchone()[0])
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise


async def prepare_postgres(connection: psycopg.AsyncConnection[Any], url: str, *, migrate: bool) -> bool:
    """As `prepare_sqlite`. Raises psycopg.Error, ServiceSchemaError."""
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
    row = await (await connection.execute(_SELECT.encode())).fetchone()
    return None if row is None else int(row[0])


def is_older(version: int | None, url: str, migrate: bool) -> bool:
    """Whether tables of that version (None: just made) must be migrated. Raises ServiceSchemaError if they can't be."""
    if version is None or version == VERSION:
        return False
    place = redacted(url)
    if version > VERSION:
        raise ServiceSchemaError(
            f"the service tables in '{place}' are of version {version}, this release of graphagent knows up to "
            f"version {VERSION}: install the release that wrote them, or a newer one (pip install -U graphagent)"
        )
    if not migrate:
        raise ServiceSchemaError(
            f"the service tables in '{place}' are of version {version}, this release of graphagent needs version "
            f"{VERSION}: run `python -m runner.sql.migrate {shlex.quote(place)}` (with --dry-run first, to see what it "
            f"does), or open the service with auto_migrate=True"
        )
    return True


def run_migration(url: str, *, dry_run: bool) -> ServiceMigration:
    """`migrate.migrate`, imported late: it loads SQLAlchemy and alembic."""
    from runner.sql.migrate import migrate

    return migrate(url, dry_run=dry_run)
