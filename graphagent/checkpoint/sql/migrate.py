"""Bring the tables of a database up to date with alembic: in place, in one transaction, with a dry run.

From a shell: `graphagent store status --db URL` and `graphagent store migrate --db URL [--dry-run]`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from graphagent.checkpoint.sql.schema import (
    ADVISORY_LOCK,
    MIGRATIONS,
    VERSION,
    VERSION_TABLE,
    MigrationReport,
    Statement,
    is_older,
)
from graphagent.checkpoint.sql.urls import redacted, sqlite_path
from graphagent.errors import CheckpointError

_READS = ("SELECT", "PRAGMA")


def migrate(url: str, *, dry_run: bool = False) -> MigrationReport:
    """Migrate the database at `url` (see `urls.sqlite_path`) to this release's version.

    All steps run in one transaction: it ends with all of them done or none, and can be repeated. A dry run does the
    same and rolls back, so it proves that the steps work on this data; meanwhile other writers wait. A database
    without tables is left alone. Raises SchemaVersionError for tables of a newer release, CheckpointError for what the
    database refuses.
    """
    engine = _engine(url, "BEGIN IMMEDIATE")
    with _errors(url), engine.connect() as connection, connection.begin() as transaction:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
        report = _migrate(connection, url, dry_run)
        if dry_run:
            transaction.rollback()
        return report


def status(url: str) -> MigrationReport:
    """What a migration of the database at `url` would start from and do, without trying it; changes nothing.

    Raises CheckpointError if the database can't be read.
    """
    engine = _engine(url, "BEGIN")
    with _errors(url), engine.connect() as connection:
        current = _version(connection)
        if current is None or current > VERSION:
            return MigrationReport(current, VERSION)
        lineages, rows = _counts(connection)
        return MigrationReport(current, VERSION, _titles(current, _config(connection)), lineages=lineages, rows=rows)


def _migrate(connection: Connection, url: str, dry_run: bool) -> MigrationReport:
    current = _version(connection)
    if current is None:
        return MigrationReport(None, VERSION)
    is_older(current, url, migrate=True)
    config = _config(connection)
    steps = _titles(current, config)
    lineages, rows = _counts(connection)
    with _recorded(connection) as statements:
        command.upgrade(config, "head")
    applied = bool(steps) and not dry_run
    return MigrationReport(current, VERSION, steps, tuple(statements), lineages, rows, applied)


def _version(connection: Connection) -> int | None:
    revision = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()
    return None if revision is None else int(revision)


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _titles(current: int, config: Config) -> tuple[str, ...]:
    steps = ScriptDirectory.from_config(config).iterate_revisions("head", f"{current:04}")
    return tuple(f"{step.revision} {(step.doc or '').rstrip('.')}" for step in steps)[::-1]


def _counts(connection: Connection) -> tuple[int, int]:
    """How many lineages and rows there are."""
    found = connection.execute(text("SELECT (SELECT count(*) FROM ga_lineages), (SELECT count(*) FROM ga_rows)")).one()
    return int(found[0]), int(found[1])


@contextmanager
def _recorded(connection: Connection) -> Iterator[list[Statement]]:
    """The statements that change something, as they are run, and the rows that each changed."""
    statements: list[Statement] = []

    def record(_: Any, cursor: Any, sql: str, *__: Any) -> None:
        if not sql.lstrip().upper().startswith(_READS):
            lines = (line.strip() for line in sql.expandtabs(1).splitlines())
            statements.append(Statement(" ".join(line for line in lines if line), max(cursor.rowcount, 0)))

    event.listen(connection, "after_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(connection, "after_cursor_execute", record)


@contextmanager
def _errors(url: str) -> Iterator[None]:
    """What the database refuses as a CheckpointError."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise CheckpointError(
            f"the checkpoint tables in '{redacted(url)}' could not be read or migrated: {cause}; nothing was changed, "
            f"mend that and run it again"
        ) from error


def _engine(url: str, begin: str) -> Engine:
    path = sqlite_path(url)
    if path is None:
        return create_engine(f"postgresql+psycopg://{url.partition('://')[2]}", poolclass=NullPool)
    engine = create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(path, timeout=60, isolation_level=None), poolclass=NullPool
    )

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:  # the driver's own transactions would not hold schema changes
        connection.exec_driver_sql(begin)

    return engine
