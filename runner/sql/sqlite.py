"""SQLite by the standard library: one connection in WAL mode."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio.to_thread

from graphagent.checkpoint.sql.operations import Operation
from graphagent.checkpoint.sql.sqlite import PAGE_SIZE, transact, use_wal
from graphagent.checkpoint.sql.versions import prepare_sqlite
from graphagent.errors import ServiceError
from runner.sql import schema
from runner.sql.database import DatabaseOptions, Rows
from runner.sql.schema import ServiceMigration, run_migration

T = TypeVar("T")


class SqliteDatabase:
    """A SQLite file, or a database in memory if `path` is empty.

    A commit survives a killed process; SQLite syncs the file at its own checkpoints.
    """

    dialect = "sqlite"

    def __init__(self, path: str, options: DatabaseOptions) -> None:
        self.path = path
        self._options = options
        self._lock = threading.Lock()  # one transaction at a time, also where threads or two event loops meet
        self._closed = False
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Connect, create or migrate the tables. Raises ServiceError."""
        await self._call(self._opened)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._closed:
                raise ServiceError(f"the service on {self} is closed; open a new one")
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        options = self._options
        connection = sqlite3.connect(
            self.path or ":memory:",
            timeout=options.busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            if self.path:
                use_wal(connection, options.busy_timeout)
            connection.execute("PRAGMA synchronous = NORMAL")
            url = f"sqlite:///{self.path}"
            if prepare_sqlite(schema.TABLES, connection, url, migrate=options.auto_migrate):
                run_migration(url, dry_run=False)
        except BaseException:
            connection.close()
            raise
        return connection

    async def run(self, sql: str, parameters: Sequence[Any]) -> Rows:
        """One statement. Raises ServiceError."""
        return await self._call(lambda: self._opened().execute(sql, parameters).fetchall())

    async def transact(self, make: Callable[[], Operation[T]]) -> T:
        """An operation in one transaction. Raises ServiceError."""
        return await self._call(lambda: transact(self._opened(), make(), "BEGIN IMMEDIATE"))

    async def _call(self, work: Callable[[], T]) -> T:
        if self._options.in_thread:
            return await anyio.to_thread.run_sync(self._guarded, work)
        return self._guarded(work)

    def _guarded(self, work: Callable[[], T]) -> T:
        with self._errors(), self._lock:
            return work()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            text = f"the database {self} refused: {error}"
            if "locked" in str(error) or "busy" in str(error):
                text += (
                    f"; another process held the file for {self._options.busy_timeout} s: end it, or raise busy_timeout"
                )
            elif "unable to open" in str(error):
                text += "; create its folder, or check that it may be written"
            elif "readonly" in str(error):
                text += "; make file and folder writable"
            raise ServiceError(text) from error

    async def migrate(self, dry_run: bool) -> ServiceMigration:
        """Bring the tables up to date, or see what that would do. Raises ServiceSchemaError."""
        return await anyio.to_thread.run_sync(lambda: run_migration(f"sqlite:///{self.path}", dry_run=dry_run))

    def __str__(self) -> str:
        return f"'{self.path}'" if self.path else "in memory (SQLite)"

    async def aclose(self) -> None:
        """Close the connection; harmless twice."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None
