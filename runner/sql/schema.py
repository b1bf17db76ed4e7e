"""The service tables of this release: their version, and how older ones are brought up to it.

They have a version table of their own, so that they can share a database with checkpoints.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from graphagent.checkpoint.sql.versions import TableSet
from graphagent.errors import ServiceError

VERSION = 1
"""The version of the tables that this release reads and writes: the number of its newest migration."""

VERSION_TABLE = "ga_services_version"
"""Alembic's version table: one row with the number of the last migration, such as `0001`."""

MIGRATIONS = Path(__file__).parent / "migrations"
ADVISORY_LOCK = 0x6761_7365_7276_6963
"""PostgreSQL's advisory lock for whoever creates or migrates the tables."""


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


TABLES = TableSet(
    what="service tables",
    version=VERSION,
    version_table=VERSION_TABLE,
    migrations=MIGRATIONS,
    lock=ADVISORY_LOCK,
    command="graphagent store migrate --db",
    opened="service",
    wrong_version=ServiceSchemaError,
    refused=ServiceError,
)


def run_migration(url: str, *, dry_run: bool) -> ServiceMigration:
    """`migrate.migrate`, imported late: it loads SQLAlchemy and alembic."""
    from runner.sql.migrate import migrate

    return migrate(url, dry_run=dry_run)
