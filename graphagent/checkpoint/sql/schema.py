"""The checkpoint tables of this release: their version, and how older ones are brought up to it.

`migrations/create.*.sql`, from which a fresh database is made, is kept equal to `tables.py` by a test. Only a migration
imports SQLAlchemy and alembic.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graphagent.checkpoint.sql.versions import TableSet
from graphagent.errors import CheckpointError

VERSION = 2
"""The version of the tables that this release reads and writes: the number of its newest migration."""

VERSION_TABLE = "ga_version"
"""Alembic's version table: one row with the number of the last migration, such as `0001`."""

MIGRATIONS = Path(__file__).parent.parent / "migrations"
ADVISORY_LOCK = 0x6761_7461_626C_6573
"""PostgreSQL's advisory lock for whoever creates or migrates the tables."""


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


TABLES = TableSet(
    what="checkpoint tables",
    version=VERSION,
    version_table=VERSION_TABLE,
    migrations=MIGRATIONS,
    lock=ADVISORY_LOCK,
    command="graphagent store migrate --db",
    opened="store",
    wrong_version=SchemaVersionError,
    refused=CheckpointError,
)


def run_migration(url: str, *, dry_run: bool) -> MigrationReport:
    """Bring the tables of a database up to date, in place and in one transaction; imports SQLAlchemy and alembic.

    Raises SchemaVersionError, CheckpointError.
    """
    from graphagent.checkpoint.sql.migrate import migrate

    return migrate(url, dry_run=dry_run)
