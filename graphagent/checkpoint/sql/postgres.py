"""PostgreSQL by psycopg 3: a step is one statement, which checks the lease and commits by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import psycopg

from graphagent.checkpoint.sql import loading, operations
from graphagent.checkpoint.sql.loading import Found, Place
from graphagent.checkpoint.sql.operations import HELD, Batch, Claim, Dialect, Grip, Operation
from graphagent.checkpoint.sql.options import PoolOptions
from graphagent.checkpoint.sql.pool import Connection, Pool
from graphagent.checkpoint.sql.rows import COLUMNS, FRAME_SHIFT, SOURCES
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
    holds="position({part} IN {whole}) > 0",
    bytewise=' COLLATE "C"',
)
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_AGAIN = ("08", "40001", "40P01", "57P")  # connection lost, serialization, deadlock, server going down or coming up
_CASTS = {"created_at": "float8", **dict.fromkeys(("nodes", "marking", "delta", "lists", "extra"), "bytea")}
_ROW = ", ".join(["?::bigint", *(f"?::{_CASTS.get(name, 'integer')}" for name in COLUMNS)])


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

    async def read(self, make: Callable[[], Operation[T]], *, alone: bool = False) -> T:
        """Run an operation that only reads, in one snapshot. `alone`: it is one statement. Raises LoadError."""
        return await self._run(LoadError, "read", make, "" if alone else _READ)

    async def load(self, lineage: str, namespace: str, seq: int | None) -> Found | None:
        """A row and what it builds on, in one round trip unless its lists go back to another row. Raises LoadError."""
        try:
            return await self.read(lambda: loading.load_alone(lineage, namespace, seq), alone=True)
        except loading.Elsewhere:
            return await self.read(lambda: loading.load(lineage, namespace, seq))

    async def write(self, make: Callable[[], Operation[T]], *, alone: bool = False) -> T:
        """Run an operation in one transaction. `alone`: it is one statement. Raises SaveError."""
        return await self._run(SaveError, "written", make, "" if alone else "BEGIN")

    async def take(self, claim: Claim, reads: Place | None) -> tuple[int, int, Found | None]:
        """Take a lineage, then read a row of it, which nobody else writes now. Raises LineageBusy, SaveError."""
        taken = await self.write(lambda: operations.take_free(claim, DIALECT), alone=True)
        if taken is None:
            taken = await self.write(lambda: operations.acquire(claim, DIALECT))
        try:
            return *taken, None if reads is None else await self.load(claim.lineage, *reads)
        except CheckpointError:
            await self.write(lambda: operations.abandon(claim), alone=True)
            raise

    async def _run(self, kind: type[CheckpointError], verb: str, make: Callable[[], Operation[T]], begin: str) -> T:
        if not self._ready or self._closed:
            await self.open()
        return await self._attempt(kind, verb, lambda connection: transact(connection, make(), begin))

    async def append(self, grip: Grip, batch: Batch) -> None:
        """Write rows in one round trip. Raises LeaseLost, SaveError."""
        keys = grip.keys
        frame = keys.frames.get(batch.namespace)
        runs = {run for _, run, _ in batch.rows}
        if len(runs) == 1 and (frame is not None or batch.closes is None):
            [run] = runs
            sql, parameters = _append(grip, batch, frame, run)
            written = await self._attempt(SaveError, "written", lambda connection: _insert(connection, sql, parameters))
            if written is not None:
                keys.frames[batch.namespace], keys.runs[run] = written
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
                rows = cursor.fetchall() if cursor.description else [()] * cursor.rowcount

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


async def transact(connection: Connection, operation: Operation[T], begin: str) -> T:
    """Run an operation between `begin` and COMMIT, or ROLLBACK if it fails; without `begin` it is one statement."""
    rows: Any = None
    try:
        if begin:
            await connection.execute(begin.encode())
        while True:
            sql, parameters = operation.send(rows)
            cursor = await connection.execute(_placeholders(sql), parameters, binary=True)
            rows = await cursor.fetchall() if cursor.description else [()] * cursor.rowcount
    except StopIteration as stop:
        if begin:
            await connection.execute("COMMIT")
        return stop.value  # type: ignore[no-any-return]
    except GraphAgentError:
        if begin:
            await connection.execute("ROLLBACK")
        raise


async def _insert(connection: Connection, sql: str, parameters: list[Any]) -> tuple[int, int] | None:
    """The keys of frame and run; None if the lease isn't the current one, or a row is there already."""
    try:
        cursor = await connection.execute(sql, parameters, binary=True)
    except psycopg.errors.UniqueViolation:
        return None
    row = await cursor.fetchone()
    return None if row is None else (row[0] >> FRAME_SHIFT, row[1])


def _append(grip: Grip, batch: Batch, frame: int | None, run: tuple[str, str]) -> tuple[str, list[Any]]:
    """The statement that writes rows of one run; it makes the keys of frame and run that aren't remembered."""
    keys, closes = grip.keys, batch.closes
    if closes is not None and any(columns[0] == _INTERRUPT and columns[2] == closes for _, _, columns in batch.rows):
        closes = None  # the statement sees the table as it was before these rows
    run_id = keys.runs.get(run)
    parameters: list[Any] = [keys.lineage, grip.token]
    parameters += [frame] if frame is not None else [keys.lineage, batch.namespace]
    parameters += [run_id] if run_id is not None else [keys.lineage, *run]
    if closes is not None:
        assert frame is not None
        parameters += operations.close_parameters(frame, closes)
    for seq, _, columns in batch.rows:
        parameters += (seq, *columns)
    return _append_sql(len(batch.rows), frame is None, run_id is None, closes is not None, batch.release), parameters


_INTERRUPT = SOURCES.index("interrupt")
_KNOWN = "SELECT ?::bigint AS id FROM held"


@lru_cache(maxsize=64)
def _append_sql(rows: int, new_frame: bool, new_run: bool, closes: bool, release: bool) -> str:
    held = f"{operations.RELEASE} AND expires >= 0 RETURNING 1" if release else f"{HELD} FOR SHARE"
    frame = operations.MAKE_FRAME.format("SELECT ?::bigint, ? FROM held") if new_frame else _KNOWN
    run = operations.MAKE_RUN.format("SELECT ?::bigint, ?, ? FROM held") if new_run else _KNOWN
    gone = f", gone AS ({operations.CLOSE_STEP} AND EXISTS (SELECT 1 FROM held))" if closes else ""
    names, values = ", ".join(COLUMNS), ", ".join([f"({_ROW})"] * rows)
    return _placeholders(
        f"WITH held AS ({held}), f AS ({frame}), s AS ({run}){gone} INSERT INTO ga_rows (id, run, {names}) "
        f"SELECT (f.id << {FRAME_SHIFT}) + v.seq, s.id, {', '.join('v.' + name for name in COLUMNS)} "
        f"FROM (VALUES {values}) v (seq, {names}), f, s RETURNING id, run"
    )


@lru_cache(maxsize=256)
def _placeholders(sql: str) -> str:
    return sql.replace("?", "%s")


def _is_worth_another_try(error: psycopg.Error) -> bool:
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate is None or error.sqlstate.startswith(_AGAIN))
