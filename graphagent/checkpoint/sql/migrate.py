"""Bring the tables of a database up to date with alembic: in place, in one transaction, with a dry run.

From a shell: `graphagent store status --db URL` and `graphagent store migrate --db URL [--dry-run]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic import command
from sqlalchemy import Connection, event, text

from graphagent.checkpoint.sql.schema import TABLES, VERSION, MigrationReport, Statement
from graphagent.checkpoint.sql.upgrade import config_of, reading, titles, upgrading, version_of

_READS = ("SELECT", "PRAGMA")


def migrate(url: str, *, dry_run: bool = False) -> MigrationReport:
    """Migrate the database at `url` (see `urls.sqlite_path`) to this release's version.

    All steps run in one transaction: it ends with all of them done or none, and can be repeated. A dry run does the
    same and rolls back, so it proves that the steps work on this data; meanwhile other writers wait. A database
    without tables is left alone. Raises SchemaVersionError for tables of a newer release, CheckpointError for what the
    database refuses.
    """
    with upgrading(TABLES, url, dry_run=dry_run) as connection:
        return _migrate(connection, url, dry_run)


def status(url: str) -> MigrationReport:
    """What a migration of the database at `url` would start from and do, without trying it; changes nothing.

    Raises CheckpointError if the database can't be read.
    """
    with reading(TABLES, url) as connection:
        current = version_of(TABLES, connection)
        if current is None or current > VERSION:
            return MigrationReport(current, VERSION)
        lineages, rows = _counts(connection)
        steps = titles(current, config_of(TABLES, connection))
        return MigrationReport(current, VERSION, steps, lineages=lineages, rows=rows)


def _migrate(connection: Connection, url: str, dry_run: bool) -> MigrationReport:
    current = version_of(TABLES, connection)
    if current is None:
        return MigrationReport(None, VERSION)
    TABLES.is_older(current, url, migrate=True)
    config = config_of(TABLES, connection)
    steps = titles(current, config)
    lineages, rows = _counts(connection)
    with _recorded(connection) as statements:
        command.upgrade(config, "head")
    applied = bool(steps) and not dry_run
    return MigrationReport(current, VERSION, steps, tuple(statements), lineages, rows, applied)


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
