"""What the services need of a database, and which one a url asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

from graphagent.checkpoint.sql.operations import Operation
from graphagent.checkpoint.sql.options import PoolOptions
from graphagent.checkpoint.sql.urls import postgres_url, sqlite_path
from runner.sql.schema import ServiceMigration

T = TypeVar("T")
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class DatabaseOptions:
    """How a service opens its database.

    `busy_timeout`: seconds to wait for other processes that write the same SQLite file. `pool`: connections to
    PostgreSQL. `auto_migrate`: bring older tables up to date when the database is opened. `in_thread`: SQLite works
    in a thread, for statements that move many bytes; else on the loop thread, tens of microseconds each.
    """

    busy_timeout: float = 10.0
    pool: PoolOptions = field(default_factory=PoolOptions)
    auto_migrate: bool = True
    in_thread: bool = False


class Database(Protocol):
    """Runs statements with `?` for parameters. It opens itself on first use, which makes the tables if need be."""

    dialect: str
    """`sqlite` or `postgresql`."""

    async def open(self) -> None:
        """Connect, create or migrate the tables. Raises ServiceError."""
        ...

    async def run(self, sql: str, parameters: Sequence[Any]) -> Rows:
        """One statement, which is a transaction by itself; returns its rows. Raises ServiceError."""
        ...

    async def transact(self, make: Callable[[], Operation[T]]) -> T:
        """An operation that writes, in one transaction. It comes as a function that makes it, so that it can be
        repeated. Raises ServiceError, and what the operation raises."""
        ...

    async def migrate(self, dry_run: bool) -> ServiceMigration:
        """Bring the tables up to date, or see what that would do. Raises ServiceSchemaError."""
        ...

    async def aclose(self) -> None:
        """Close the connections; harmless twice."""
        ...


class OnDatabase:
    """A service that keeps what it has in a database, and is opened and closed with it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def aclose(self) -> None:
        """Close the connections; harmless twice."""
        await self._database.aclose()

    async def __aenter__(self) -> Self:
        await self._database.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def database_for(url: str, options: DatabaseOptions) -> Database:
    """The database of a url (see `graphagent.checkpoint.sql.urls`). Raises UsageError."""
    path = sqlite_path(url)
    return _postgres(postgres_url(url), options) if path is None else _sqlite(path, options)


def _sqlite(path: str, options: DatabaseOptions) -> Database:
    from runner.sql.sqlite import SqliteDatabase

    return SqliteDatabase(path, options)


def _postgres(url: str, options: DatabaseOptions) -> Database:
    from runner.sql.postgres import PostgresDatabase

    return PostgresDatabase(url, options)
