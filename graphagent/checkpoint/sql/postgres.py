"""PostgreSQL by psycopg 3: a step is one statement, which checks the lease and commits by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import psycopg

from graphagent.checkpoint.sql import operations
from graphagent.checkpoint.sql.operations import HELD, Batch, Dialect, Grip, Operation
from graphagent.checkpoint.sql.options import PoolOptions
from graphagent.checkpoint.sql.pool import Connection, Pool
from graphagent.checkpoint.sql.rows import COLUMNS, SOURCES, row_id
from graphagent.checkpoint.sql.schema import TABLES, MigrationReport, run_migration
from graphagent.checkpoint.sql.urls import redacted
from graphagent.checkpoint.sql.versions import prepare_postgres
from graphagent.errors import CheckpointError, GraphAgentError, LoadError, SaveError, UsageError

T = TypeVar("T")

DIALECT = Dialect(
    now="extract(epoch FROM clock_timestamp())::float8",
    greatest="greatest",
    share=" FOR SHARE",
    exclusive=" FOR UPDATE",
    lossy=True,
)
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_AGAIN = ("08", "40001", "40P01", "57P")  # connection lost, serialization, deadlock, server going down or coming up
_CASTS = {"created_at": "float8", **dict.fromkeys(("nodes", "marking", "delta", "lists", "extra"), "bytea")}
_ROW = ", ".join(["?::bigint", "?::bigint", *(f"?::{_CASTS.get(name, 'integer')}" for name in COLUMNS)])


class PostgresDriver:
    """Runs operations on a PostgreSQL database. Works under asyncio only, as psycopg does."""

    dialect = DIALECT
    shared = True
    remote = True

    def __init__(self, url: str, migrate: bool, options: PoolOptions) -> None:
        self._url = url
        self._migrate = migrate
        self._options = options
        self._pool = Pool(url, options)
        self._ready = False
        self._closed = False

    async def open(self) -> None:
        """Connect, create or migrate the tables. Raises CheckpointError."""
        if self._closed:
            raise CheckpointError(f"the checkpoint store in {self} is closed; open a new one")
        try:
            asyncio.get_running_loop()
        except RuntimeError as error:
            raise UsageError(f"the checkpoint store in {self} needs asyncio, the loop that runs is another") from error
        try:
            if await self._attempt(CheckpointError, "opened", self._prepare):
                await self.migrate(dry_run=False)
            self._ready = True
        finally:
            if not self._ready:
                await self._pool.clear()

    async def _prepare(self, connection: Connection) -> bool:
        return await prepare_postgres(TABLES, connection, self._url, migrate=self._migrate)

    async def migrate(self, dry_run: bool) -> MigrationReport:
        """Bring the tables up to date, or see what that would do. Raises SchemaVersionError."""
        return await anyio.to_thread.run_sync(lambda: run_migration(self._url, dry_run=dry_run))

    async def read(self, make: Callable[[], Operation[T]]) -> T:
        """Run an operation that only reads, in one snapshot. Raises LoadError."""
        return await self._run(LoadError, "read", make, _READ)

    async def write(self, make: Callable[[], Operation[T]]) -> T:
        """Run an operation in one transaction. Raises SaveError."""
        return await self._run(SaveError, "written", make, "BEGIN")

    async def _run(self, kind: type[CheckpointError], verb: str, make: Callable[[], Operation[T]], begin: str) -> T:
        if not self._ready or self._closed:
            await self.open()
        return await self._attempt(kind, verb, lambda connection: transact(connection, make(), begin))

    async def append(self, grip: Grip, batch: Batch) -> None:
        """Write rows in one round trip. Raises LeaseLost, SaveError."""
        keys = grip.keys
        frame = keys.frames.get(batch.namespace)
        runs = [keys.runs.get(run) for _, run, _ in batch.rows]
        if frame is not None and None not in runs and batch.rows:
            sql, parameters = _append(grip, batch, frame, runs)
            if await self._attempt(SaveError, "written", lambda connection: _insert(connection, sql, parameters)):
                return
        key, new = await self.write(lambda: operations.append(grip, batch, DIALECT))
        keys.frames[batch.namespace] = key
        keys.runs.update(new)

    async def _attempt(self, kind: type[CheckpointError], verb: str, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Do work on a connection, and again on a fresh one if the server ended it; work must be repeatable."""
        attempt = 1
        while True:
            try:
                async with self._pool.connection() as connection:
                    return await work(connection)
            except psycopg.Error as error:
                if attempt >= self._options.attempts or not _is_worth_another_try(error):
                    raise self._wrapped(kind, verb, error, attempt) from error
            await self._pool.clear()
            await anyio.sleep(0.1 * (attempt - 1) ** 2)
            attempt += 1

    def _wrapped(self, kind: type[CheckpointError], verb: str, error: psycopg.Error, attempts: int) -> CheckpointError:
        times = f" in {attempts} attempts" if attempts > 1 else ""
        return kind(f"checkpoints in {self} could not be {verb}{times}: {str(error).strip()}")

    def thread_runner(self) -> PostgresThread:
        """A connection for the thread that calls."""
        return PostgresThread(psycopg.connect(self._url, autocommit=True, prepare_threshold=None))

    def __str__(self) -> str:
        return f"'{redacted(self._url)}'"

    async def aclose(self) -> None:
        """Close the connections; harmless twice."""
        self._closed = True
        await self._pool.clear()


class PostgresThread:
    """The connection of the heartbeat: operations run on the thread that calls."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def run(self, operation: Operation[T], *, writes: bool) -> T:
        """Run an operation in one transaction. Raises psycopg.Error."""
        rows: Any = None
        with self._connection.transaction():
            while True:
                try:
                    sql, parameters = operation.send(rows)
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]
                cursor = self._connection.execute(_placeholders(sql), parameters)
                rows = cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


async def transact(connection: Connection, operation: Operation[T], begin: str) -> T:
    """Run an operation between `begin` and COMMIT, or ROLLBACK if it fails."""
    rows: Any = None
    try:
        await connection.execute(begin.encode())
        while True:
            sql, parameters = operation.send(rows)
            cursor = await connection.execute(_placeholders(sql), parameters, binary=True)
            rows = await cursor.fetchall() if cursor.description else []
    except StopIteration as stop:
        await connection.execute("COMMIT")
        return stop.value  # type: ignore[no-any-return]
    except GraphAgentError:
        await connection.execute("ROLLBACK")
        raise


async def _insert(connection: Connection, sql: str, parameters: list[Any]) -> bool:
    """False if the lease isn't the current one, or a row is there already."""
    try:
        cursor = await connection.execute(sql, parameters)
    except psycopg.errors.UniqueViolation:
        return False
    return cursor.rowcount > 0


def _append(grip: Grip, batch: Batch, frame: int, runs: list[int | None]) -> tuple[str, list[Any]]:
    closes = batch.closes
    if closes is not None and any(columns[0] == _INTERRUPT and columns[2] == closes for _, _, columns in batch.rows):
        closes = None  # the statement sees the table as it was before these rows
    parameters: list[Any] = [grip.keys.lineage, grip.token]
    if closes is not None:
        parameters += operations.close_parameters(frame, closes)
    for (seq, _, columns), run in zip(batch.rows, runs, strict=True):
        parameters += (row_id(frame, seq), run, *columns)
    return _append_sql(len(batch.rows), closes is not None, batch.release), parameters


_INTERRUPT = SOURCES.index("interrupt")


@lru_cache(maxsize=64)
def _append_sql(rows: int, closes: bool, release: bool) -> str:
    held = f"{operations.RELEASE} AND owner IS NOT NULL RETURNING 1" if release else f"{HELD} FOR SHARE"
    gone = f", gone AS ({operations.CLOSE_STEP} AND EXISTS (SELECT 1 FROM held))" if closes else ""
    values = ", ".join([f"({_ROW})"] * rows)
    return _placeholders(
        f"WITH held AS ({held}){gone} INSERT INTO ga_rows (id, run, {', '.join(COLUMNS)}) "
        f"SELECT v.* FROM (VALUES {values}) v, held"
    )


@lru_cache(maxsize=256)
def _placeholders(sql: str) -> str:
    return sql.replace("?", "%s")


def _is_worth_another_try(error: psycopg.Error) -> bool:
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate is None or error.sqlstate.startswith(_AGAIN))
