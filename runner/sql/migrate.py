"""Bring the service tables of a database up to date with alembic: in place, in one transaction, with a dry run.

From a shell: `python -m runner.sql.migrate URL [--dry-run]`.
"""

from __future__ import annotations

import sqlite3
import sys

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from graphagent.checkpoint.sql.urls import redacted, sqlite_path
from graphagent.errors import GraphAgentError, ServiceError
from runner.sql import schema
from runner.sql.schema import ADVISORY_LOCK, VERSION_TABLE, ServiceMigration


def migrate(url: str, *, dry_run: bool = False) -> ServiceMigration:
    """Migrate the database at `url` (see `graphagent.checkpoint.sql.urls`) to this release's version.

    All steps run in one transaction: it ends with all of them done or none, and can be repeated. A dry run does the
    same and rolls back; meanwhile other writers wait. A database without service tables is left alone. Raises
    ServiceSchemaError for tables of a newer release, ServiceError for what the database refuses.
    """
    engine = _engine(url)
    try:
        with engine.connect() as connection, connection.begin() as transaction:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
            report = _migrate(connection, url, dry_run)
            if dry_run:
                transaction.rollback()
            return report
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise ServiceError(
            f"the service tables in '{redacted(url)}' could not be migrated: {cause}; nothing was changed, mend that "
            f"and run it again"
        ) from error


def _migrate(connection: Connection, url: str, dry_run: bool) -> ServiceMigration:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    revision = context.get_current_revision()
    if revision is None:
        return ServiceMigration(None, schema.VERSION)
    if not schema.is_older(int(revision), url, migrate=True):
        return ServiceMigration(int(revision), schema.VERSION)
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    found = ScriptDirectory.from_config(config).iterate_revisions("head", revision)
    steps = tuple(f"{step.revision} {(step.doc or '').rstrip('.')}" for step in found)[::-1]
    command.upgrade(config, "head")
    return ServiceMigration(int(revision), schema.VERSION, steps, not dry_run)


def _engine(url: str) -> Engine:
    path = sqlite_path(url)
    if path is None:
        return create_engine(f"postgresql+psycopg://{url.partition('://')[2]}", poolclass=NullPool)
    engine = create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(path, timeout=60, isolation_level=None), poolclass=NullPool
    )

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:  # the driver's own transactions would not hold schema changes
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


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
