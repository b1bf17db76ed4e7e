"""Bring the service tables of a database up to date with alembic: in place, in one transaction, with a dry run.

From a shell: `python -m runner.sql.migrate URL [--dry-run]`.
"""

from __future__ import annotations

import sys

from alembic import command
from sqlalchemy import Connection

from graphagent.checkpoint.sql.upgrade import config_of, titles, upgrading, version_of
from graphagent.errors import GraphAgentError
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


def _migrate(connection: Connection, url: str, dry_run: bool) -> ServiceMigration:
    tables = schema.TABLES
    current = version_of(tables, connection)
    if current is None or not tables.is_older(current, url, migrate=True):
        return ServiceMigration(current, tables.version)
    config = config_of(tables, connection)
    steps = titles(current, config)
    command.upgrade(config, "head")
    return ServiceMigration(current, tables.version, steps, not dry_run)


def main(words: list[str]) -> int:
    """Migrate the database that the first word names and print what was done; returns the exit code."""
    urls = [word for word in words if word != "--dry-run"]
    if len(urls) != 1:
        print("usage: python -m runner.sql.migrate URL [--dry-run]", file=sys.stderr)
        return 2
    try:
        report = migrate(urls[0], dry_run="--dry-run" in words)
    except GraphAgentError as error:
        print(error, file=sys.stderr)
        return 1
    done = "applied" if report.applied else "not applied" if report.steps else "nothing to do"
    print("\n".join([f"version {report.current} -> {report.target}: {done}", *report.steps]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
