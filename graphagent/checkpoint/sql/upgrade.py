"""What every migration with alembic needs: a connection in one transaction, the version, and the steps ahead."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from graphagent.checkpoint.sql.urls import redacted, sqlite_path
from graphagent.checkpoint.sql.versions import TableSet


@contextmanager
def upgrading(tables: TableSet, url: str, *, dry_run: bool) -> Iterator[Connection]:
    """A connection to the database at `url` whose transaction ends with all done or none; a dry run is undone.

    Meanwhile other writers wait. Raises the error of the tables for what the database refuses.
    """
    engine = _engine(url, "BEGIN IMMEDIATE")
    with _errors(tables, url), engine.connect() as connection, connection.begin() as transaction:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": tables.lock})
        yield connection
        if dry_run:
            transaction.rollback()


@contextmanager
def reading(tables: TableSet, url: str) -> Iterator[Connection]:
    """A connection that only looks. Raises the error of the tables."""
    with _errors(tables, url), _engine(url, "BEGIN").connect() as connection:
        yield connection


def version_of(tables: TableSet, connection: Connection) -> int | None:
    """The version of the tables; None if they aren't there."""
    options = {"version_table": tables.version_table}
    revision = MigrationContext.configure(connection, opts=options).get_current_revision()
    return None if revision is None else int(revision)


def config_of(tables: TableSet, connection: Connection) -> Config:
    """What alembic's commands take."""
    config = Config()
    config.set_main_option("script_location", str(tables.migrations).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def titles(current: int, config: Config) -> tuple[str, ...]:
    """Number and title of each step ahead of a version, in order."""
    steps = ScriptDirectory.from_config(config).iterate_revisions("head", f"{current:04}")
    return tuple(f"{step.revision} {(step.doc or '').rstrip('.')}" for step in steps)[::-1]


@contextmanager
def _errors(tables: TableSet, url: str) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise tables.refused(
            f"the {tables.what} in '{redacted(url)}' could not be read or migrated: {cause}; nothing was changed, "
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
