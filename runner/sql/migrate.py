"""Bring the service tables of a database up to date with alembic: in place, in one transaction, with a dry run.

From a shell: `graphagent store status --db URL` and `graphagent store migrate --db URL [--dry-run]`, which do the same
with the checkpoint tables.
"""

from __future__ import annotations

from alembic import command
from sqlalchemy import Connection

from graphagent.checkpoint.sql.upgrade import config_of, reading, titles, upgrading, version_of
from runner.sql import schema
from runner.sql.schema import ServiceMigration


def migrate(url: str, *, dry_run: bool = False) -> ServiceMigration:
    """Migrate the database at `url` (see `graphagent.checkpoint.sql.urls`) to this release's version.

    All steps run in one transaction: it ends with all of them done or none, and can be repeated. A dry run does the
    same and rolls back; meanwhile other writers wait. A database without service tables is left alone. Raises
    ServiceSchemaError for tables of a newer release, ServiceError for what the database refuses.
    """
    with upgrading(schema.TABLES, url, dry_run=dry_run) as connection:
        return _migrate(connection, url, dry_run)


def status(url: str) -> ServiceMigration:
    """What a migration of the database at `url` would start from and do, without trying it; changes nothing.

    Raises ServiceError if the database can't be read.
    """
    tables = schema.TABLES
    with reading(tables, url) as connection:
        current = version_of(tables, connection)
        if current is None or current > tables.version:
            return ServiceMigration(current, tables.version)
        return ServiceMigration(current, tables.version, titles(current, config_of(tables, connection)))


def _migrate(connection: Connection, url: str, dry_run: bool) -> ServiceMigration:
    tables = schema.TABLES
    current = version_of(tables, connection)
    if current is None or not tables.is_older(current, url, migrate=True):
        return ServiceMigration(current, tables.version)
    config = config_of(tables, connection)
    steps = titles(current, config)
    command.upgrade(config, "head")
    return ServiceMigration(current, tables.version, steps, not dry_run)
