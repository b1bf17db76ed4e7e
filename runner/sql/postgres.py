"""PostgreSQL by psycopg 3: a statement that commits by itself where one is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import psycopg

from graphagent.checkpoint.sql.operations import Operation
from graphagent.checkpoint.sql.pool import Connection, Pool
from graphagent.checkpoint.sql.postgres import transact
from graphagent.checkpoint.sql.urls import redacted
from graphagent.checkpoint.sql.versions import prepare_postgres
from graphagent.errors import ServiceBusy, ServiceError, StoreBusy, UsageError
from runner.sql import schema
from runner.sql.database import DatabaseOptions, Rows
from runner.sql.schema import ServiceMigration, run_migration

T = TypeVar("T")
_AGAIN = ("08", "40001", "40P01", "57P")  # connection lost, serialization, deadlock, server going down or coming up


class PostgresDatabase:
    """A PostgreSQL database. Works under asyncio only, as psycopg does."""

    dialect = "postgresql"

    def __init__(self, url: str, options: DatabaseOptions) -> None:
        self._url = url
        self._options = options
        self._pool = Pool(url, options.pool)
        self._ready = False
        self._closed = False

    async def open(self) -> None:
        """Connect, create or migrate the tables. Raises ServiceError."""
        if self._closed:
            raise ServiceError(f"the service on {self} is closed; open a new one")
        try:
            asyncio.get_running_loop()
        except RuntimeError as error:
            raise UsageError(f"the service on {self} needs asyncio, the loop that runs is another") from error
        try:
            if await self._attempt(self._prepare):
                await self.migrate(dry_run=False)
            self._ready = True
        finally:
            if not self._ready:
                await self._pool.clear()

    async def _prepare(self, connection: Connection) -> bool:
        return await prepare_postgres(schema.TABLES, connection, self._url, migrate=self._options.auto_migrate)

    async def run(self, sql: str, parameters: Sequence[Any]) -> Rows:
        """One statement, one round trip. Raises ServiceError."""

        async def work(connection: Connection) -> Rows:
            cursor = await connection.execute(_placeholders(sql), parameters, binary=True)
            return await cursor.fetchall() if cursor.description else []

        return await self._opened(work)

    async def transact(self, make: Callable[[], Operation[T]]) -> T:
        """An operation in one transaction. Raises ServiceError."""
        return await self._opened(lambda connection: transact(connection, make(), "BEGIN"))

    async def _opened(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        if not self._ready or self._closed:
            await self.open()
        return await self._attempt(work)

    async def _attempt(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do work on a connection, and again on a fresh one if the server ended it; work must be repeatable."""
        attempt = 1
        while True:
            try:
                async with self._pool.connection() as connection:
                    return await work(connection)
            except psycopg.Error as error:
                if attempt >= self._options.pool.attempts or not _is_worth_another_try(error):
                    times = f" in {attempt} attempts" if attempt > 1 else ""
                    raise ServiceError(f"the database {self} refused{times}: {str(error).strip()}") from error
            except StoreBusy as error:
                raise ServiceBusy(str(error)) from error
            await self._pool.clear()
            await anyio.sleep(0.1 * (attempt - 1) ** 2)
            attempt += 1

    async def migrate(self, dry_run: bool) -> ServiceMigration:
        """Bring the tables up to date, or see what that would do. Raises ServiceSchemaError."""
        return await anyio.to_thread.run_sync(lambda: run_migration(self._url, dry_run=dry_run))

    def __str__(self) -> str:
        return f"'{redacted(self._url)}'"

    async def aclose(self) -> None:
        """Close the connections; harmless twice."""
        self._closed = True
        await self._pool.clear()


@lru_cache(maxsize=256)
def _placeholders(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _is_worth_another_try(error: psycopg.Error) -> bool:
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate is None or error.sqlstate.startswith(_AGAIN))
