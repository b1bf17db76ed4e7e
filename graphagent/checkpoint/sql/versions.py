"""A set of tables that has a version of its own in a database: made where it is missing, checked where it is there.

Checkpoints are one such set, the services around a Runner another; both may share a database. A fresh set is made from
`create.*.sql` in its folder of migrations, without the import of SQLAlchemy.
"""

from __future__ import annotations

import shlex
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphagent.checkpoint.sql.urls import redacted
from graphagent.errors import GraphAgentError

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True)
class TableSet:
    """Tables that are created and migrated together.

    `what`: what messages call them. `version`: that of this release, the number of its newest migration.
    `version_table`: alembic's, with one row, such as `0001`. `migrations`: the folder. `lock`: PostgreSQL's advisory
    lock for whoever creates or migrates them. `command`: migrates them, with the url behind it. `opened`: what is
    opened on them. `wrong_version`, `refused`: the errors for tables of another version, and for what the database
    refuses.
    """

    what: str
    version: int
    version_table: str
    migrations: Path
    lock: int
    command: str
    opened: str
    wrong_version: type[GraphAgentError]
    refused: type[GraphAgentError]

    @property
    def select(self) -> str:
        """The statement that asks for the version."""
        return f"SELECT version_num FROM {self.version_table}"

    def creation(self, dialect: str) -> list[str]:
        """The statements that make the tables in a `sqlite` or `postgresql` database."""
        return [text for text in (self.migrations / f"create.{dialect}.sql").read_text().split(";\n") if text]

    def is_older(self, version: int | None, url: str, migrate: bool) -> bool:
        """Whether tables of that version (None: just made) must be migrated. Raises `wrong_version` if they can't
        be."""
        if version is None or version == self.version:
            return False
        place = redacted(url)
        if version > self.version:
            raise self.wrong_version(
                f"the {self.what} in '{place}' are of version {version}, this release of graphagent knows up to "
                f"version {self.version}: install the release that wrote them, or a newer one "
                f"(pip install -U graphagent)"
            )
        if not migrate:
            raise self.wrong_version(
                f"the {self.what} in '{place}' are of version {version}, this release of graphagent needs version "
                f"{self.version}: run `{self.command} {shlex.quote(place)}` (with --dry-run first, to see what it "
                f"does), or open the {self.opened} with auto_migrate=True"
            )
        return True


def prepare_sqlite(tables: TableSet, connection: sqlite3.Connection, url: str, *, migrate: bool) -> bool:
    """Make sure that the tables are there; True if older ones are to be migrated. Several processes may do so at once.

    Raises sqlite3.Error, and the errors of the tables.
    """
    version = _sqlite_version(tables, connection)
    if version is None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = _sqlite_version(tables, connection)
            for statement in tables.creation("sqlite") if version is None else ():
                connection.execute(statement)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    return tables.is_older(version, url, migrate)


def _sqlite_version(tables: TableSet, connection: sqlite3.Connection) -> int | None:
    try:
        return int(connection.execute(tables.select).fetchone()[0])
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise


async def prepare_postgres(
    tables: TableSet, connection: psycopg.AsyncConnection[Any], url: str, *, migrate: bool
) -> bool:
    """As `prepare_sqlite`. Raises psycopg.Error, and the errors of the tables."""
    version = await _postgres_version(tables, connection)
    if version is None:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (tables.lock,))
            version = await _postgres_version(tables, connection)
            for statement in tables.creation("postgresql") if version is None else ():
                await connection.execute(statement.encode())
    return tables.is_older(version, url, migrate)


async def _postgres_version(tables: TableSet, connection: psycopg.AsyncConnection[Any]) -> int | None:
    # not to_regclass: that may answer from a cache which is older than the lock
    found = await connection.execute(
        "SELECT 1 FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)", (tables.version_table,)
    )
    if await found.fetchone() is None:
        return None
    row = await (await connection.execute(tables.select.encode())).fetchone()
    return None if row is None else int(row[0])
