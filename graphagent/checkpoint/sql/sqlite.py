"""SQLite by the standard library: one connection in WAL mode, statements prepared by their constant text."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio.to_thread

from graphagent.checkpoint.lease import row_exists
from graphagent.checkpoint.sql import loading, operations
from graphagent.checkpoint.sql.loading import Found, Place
from graphagent.checkpoint.sql.operations import INSERT_ROW, Batch, Claim, Dialect, Grip, Operation
from graphagent.checkpoint.sql.options import Sync
from graphagent.checkpoint.sql.rows import row_id
from graphagent.checkpoint.sql.schema import TABLES, MigrationReport, run_migration
from graphagent.checkpoint.sql.versions import prepare_sqlite
from graphagent.checkpoint.sql.writer import Reply, WriterThread
from graphagent.errors import CheckpointError, LoadError, SaveError

T = TypeVar("T")
Piece = tuple[Any, Reply[Any]]
Done = tuple[Reply[Any], Any, BaseException | None]
_OLDEST = (3, 35)  # the first SQLite with RETURNING

DIALECT = Dialect(
    now="(julianday('now') - 2440587.5) * 86400.0",
    greatest="max",
    share="",
    exclusive="",
    lossy=False,
    holds="instr({whole}, {part}) > 0",
    bytewise="",
)


PAGE_SIZE = 2048
"""Bytes; of a new file. Its dozen tables and indexes take a page each before the first row."""


class SqliteDriver:
    """Runs operations on a SQLite file, or in memory if `path` is empty.

    `normal` commits on the thread of the caller, tens of microseconds each, and survives a killed process; `full` and
    `group` commit on one writer thread and survive a loss of power; `group` commits all that is waiting at once.
    `busy_timeout` is how many seconds to wait for other processes that write; with `normal` the event loop waits too.
    """

    dialect = DIALECT

    def __init__(self, path: str, sync: Sync, busy_timeout: float, migrate: bool) -> None:
        self.path = path
        self.shared = bool(path)  # other processes can get at it
        self._sync = sync if path else "normal"
        self.remote = self._sync != "normal"
        self._busy_timeout = busy_timeout
        self._migrate = migrate
        self._lock = threading.Lock()  # one transaction at a time, should two event loops share the store
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        self._written: sqlite3.Connection | None = None
        self._writer = None if self._sync == "normal" else WriterThread(self._work, group=sync == "group")

    async def open(self) -> None:
        """Connect, create or migrate the tables. Raises CheckpointError."""
        with self._errors(CheckpointError, "opened"), self._lock:
            self._opened()

    def _connect(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise CheckpointError(
                f"this Python comes with SQLite {sqlite3.sqlite_version}, checkpoints need {_OLDEST[0]}.{_OLDEST[1]} "
                "or newer; use a newer build of Python"
            )
        connection = sqlite3.connect(
            self.path or ":memory:",
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            if self.path:
                use_wal(connection, self._busy_timeout)
            connection.execute(f"PRAGMA synchronous = {'NORMAL' if self._sync == 'normal' else 'FULL'}")
            url = f"sqlite:///{self.path}"
            if prepare_sqlite(TABLES, connection, url, migrate=self._migrate):
                run_migration(url, dry_run=False)
        except BaseException:
            connection.close()
            raise
        return connection

    async def migrate(self, dry_run: bool) -> MigrationReport:
        """Bring the tables up to date, or see what that would do. Raises SchemaVersionError."""
        return await anyio.to_thread.run_sync(lambda: run_migration(f"sqlite:///{self.path}", dry_run=dry_run))

    def thread_runner(self) -> SqliteThread:
        """A connection for the thread that calls."""
        return SqliteThread(self._connect())

    async def read(self, make: Callable[[], Operation[T]], *, alone: bool = False) -> T:
        """Run an operation that only reads, in one snapshot. `alone`: it is one statement. Raises LoadError."""
        try:
            with self._lock:
                connection = self._connection or self._opened()
                return drive(connection, make()) if alone else transact(connection, make(), "BEGIN")
        except sqlite3.Error as error:
            raise self._wrapped(LoadError, "read", error) from error

    async def load(self, lineage: str, namespace: str, seq: int | None) -> Found | None:
        """A row and what it builds on. Raises LoadError."""
        return await self.read(lambda: loading.load(lineage, namespace, seq))

    async def write(self, make: Callable[[], Operation[T]], *, alone: bool = False) -> T:
        """Run an operation in one transaction. `alone`: it is one statement. Raises SaveError."""
        try:
            if self._writer is not None:
                self._opened()
                return await self._writer.submit(make)  # type: ignore[no-any-return]
            with self._lock:
                connection = self._connection or self._opened()
                return drive(connection, make()) if alone else transact(connection, make(), "BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise self._wrapped(SaveError, "written", error) from error

    async def take(self, claim: Claim, reads: Place | None) -> tuple[int, int, Found | None]:
        """Take a lineage and read a row of it. Raises LineageBusy, SaveError."""
        return await self.write(lambda: loading.take(claim, reads, DIALECT))

    async def append(self, grip: Grip, batch: Batch) -> None:
        """Write rows. Raises LeaseLost, SaveError."""
        keys = grip.keys
        if self._writer is None and len(batch.rows) == 1 and batch.closes is None and not batch.release:
            seq, run, columns = batch.rows[0]
            frame, run_key = keys.frames.get(batch.namespace), keys.runs.get(run)
            if frame is not None and run_key is not None and self._insert(grip, row_id(frame, seq), run_key, columns):
                return
        try:
            key, runs = await self.write(lambda: operations.append(grip, batch, DIALECT))
        except SaveError as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError):
                raise row_exists(grip.lineage, batch.namespace, batch.rows[0][0]) from error
            raise
        keys.frames[batch.namespace] = key
        keys.runs.update(runs)

    def _insert(self, grip: Grip, key: int, run: int, columns: tuple[Any, ...]) -> bool:
        """The usual step: one row, one statement, which is a transaction by itself. False if it was refused."""
        try:
            with self._lock:
                cursor = (self._connection or self._opened()).execute(
                    INSERT_ROW, (key, run, *columns, grip.keys.lineage, grip.token)
                )
        except sqlite3.IntegrityError:
            return False
        except sqlite3.Error as error:
            raise self._wrapped(SaveError, "written", error) from error
        return cursor.rowcount == 1

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._closed:
                raise CheckpointError(f"the checkpoint store in {self} is closed; open a new one")
            self._connection = self._connect()
        return self._connection

    def _work(self, pieces: list[Piece]) -> None:
        """What the writer thread does: all pieces in one transaction, each undone by itself if it fails."""
        try:
            connection = self._written = self._written or self._connect()
            with _Transaction(connection, "BEGIN IMMEDIATE"):
                done = _each(connection, pieces)
        except BaseException as error:
            done = [(reply, None, error) for _, reply in pieces]
        for reply, result, problem in done:
            reply.set(result, problem)

    @contextmanager
    def _errors(self, kind: type[CheckpointError], verb: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._wrapped(kind, verb, error) from error

    def _wrapped(self, kind: type[CheckpointError], verb: str, error: sqlite3.Error) -> CheckpointError:
        text = f"checkpoints in {self} could not be {verb}: {error}"
        if "locked" in str(error) or "busy" in str(error):
            text += f"; another process held the file for {self._busy_timeout} s: end it, or raise busy_timeout"
        elif "unable to open" in str(error):
            text += "; create its folder, or check that it may be written"
        elif "readonly" in str(error):
            text += "; make file and folder writable"
        return kind(text)

    def __str__(self) -> str:
        return f"'{self.path}'" if self.path else "memory (SQLite)"

    async def aclose(self) -> None:
        """Close the connections; harmless twice."""
        self._closed = True
        if self._writer is not None:
            await self._writer.close()
        for connection in (self._written, self._connection):
            if connection is not None:
                connection.close()
        self._written = self._connection = None


def use_wal(connection: sqlite3.Connection, busy_timeout: float) -> None:
    """Turn on write-ahead logging; SQLite doesn't wait by itself where two connections do that at once."""
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


class SqliteThread:
    """The connection of the heartbeat: operations run on the thread that calls."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, operation: Operation[T], *, writes: bool) -> T:
        """Run an operation in one transaction. Raises sqlite3.Error."""
        return transact(self._connection, operation, "BEGIN IMMEDIATE" if writes else "BEGIN")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def transact(connection: sqlite3.Connection, operation: Operation[T], begin: str) -> T:
    """Run an operation between `begin` and COMMIT, or ROLLBACK if it fails."""
    with _Transaction(connection, begin):
        return drive(connection, operation)


class _Transaction:
    """A block between `begin` and COMMIT, or ROLLBACK if it fails."""

    __slots__ = ("_begin", "_connection")

    def __init__(self, connection: sqlite3.Connection, begin: str) -> None:
        self._connection, self._begin = connection, begin

    def __enter__(self) -> None:
        self._connection.execute(self._begin)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        connection = self._connection
        try:
            if kind is None:
                connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _each(connection: sqlite3.Connection, pieces: list[Piece]) -> list[Done]:
    """Do all pieces; one that fails is undone by itself."""
    done: list[Done] = []
    for make, reply in pieces:
        try:
            done.append((reply, _in_savepoint(connection, make()), None))
        except Exception as error:
            if not connection.in_transaction:  # SQLite itself undid all of it, as when the disk is full
                raise
            done.append((reply, None, error))
    return done


def _in_savepoint(connection: sqlite3.Connection, operation: Operation[T]) -> T:
    connection.execute("SAVEPOINT piece")
    try:
        return drive(connection, operation)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO piece")
        raise
    finally:
        if connection.in_transaction:
            connection.execute("RELEASE piece")


def drive(connection: sqlite3.Connection, operation: Generator[tuple[str, Any], Any, T]) -> T:
    """Execute what an operation yields until it returns."""
    rows: Any = None
    while True:
        try:
            sql, parameters = operation.send(rows)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        cursor = connection.execute(sql, parameters)
        rows = cursor.fetchall() if cursor.description else [()] * cursor.rowcount
