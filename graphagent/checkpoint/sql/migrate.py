"""Bring the tables of a database up to date with alembic: in place, in one transaction, with a dry run.

From a shell: `python -m graphagent.checkpoint.sql.migrate URL [--dry-run]`.
"""

from __future__ import annotations

import argparse
import sqlite3

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, text

from graphagent.checkpoint.sql.schema import (
    ADVISORY_LOCK,
    MIGRATIONS,
    VERSION,
    VERSION_TABLE,
    MigrationReport,
    is_older,
)
from graphagent.checkpoint.sql.urls import redacted, sqlite_path


def migrate(url: str, *, dry_run: bool = False) -> MigrationReport:
    """Migrate the database at `url` (see `urls.sqlite_path`) to this release's version.

    All steps run in one transaction: it ends with all of them done or none, and can be repeated. A dry run does the
    same and rolls back, so it proves that the steps work on this data; meanwhile other writers wait. A database
    without tables is left alone. Raises SchemaVersionError for tables of a newer release.
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
    finally:
        engine.dispose()


def _migrate(connection: Connection, url: str, dry_run: bool) -> MigrationReport:
    revision = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
    if revision is None:
        return MigrationReport(VERSION, VERSION, (), applied=False)
    is_older(int(revision), f"'{redacted(url)}'", migrate=True)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    steps = list(ScriptDirectory.from_config(config).iterate_revisions("head", revision))[::-1]
    command.upgrade(config, "head")
    titles = tuple(f"{step.revision} {(step.doc or '').rstrip('.')}" for step in steps)
    return MigrationReport(int(revision), VERSION, titles, applied=bool(steps) and not dry_run)


def _engine(url: str) -> Engine:
    path = sqlite_path(url)
    if path is None:
        return create_engine(f"postgresql+psycopg://{url.partition('://')[2]}", poolclass=NullPool)
    engine = create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(path, timeout=60, isolation_level=None), poolclass=NullPool
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:  # the driver's own transactions would not hold schema changes
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m graphagent.checkpoint.sql.migrate", description=migrate.__doc__)
    parser.add_argument("url", help="sqlite:///path, a path, or postgresql://user@host:port/database")
    parser.add_argument("--dry-run", action="store_true", help="do it, tell what was done, undo it")
    arguments = parser.parse_args()
    report = migrate(arguments.url, dry_run=arguments.dry_run)
    state = "done" if report.applied else "would be done" if report.steps else "nothing to do"
    print(f"version {report.current} -> {report.target}: {state}")
    for step in report.steps:
        print(f"  {step}")


if __name__ == "__main__":
    main()
