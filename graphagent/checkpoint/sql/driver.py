"""What a database driver does for the SQL store, and which one a url asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from graphagent.checkpoint.sql.heartbeat import Runner
from graphagent.checkpoint.sql.loading import Found, Place
from graphagent.checkpoint.sql.operations import Batch, Claim, Dialect, Grip, Operation
from graphagent.checkpoint.sql.options import PoolOptions, Sync
from graphagent.checkpoint.sql.urls import postgres_url, sqlite_path
from graphagent.errors import UsageError

if TYPE_CHECKING:
    from graphagent.checkpoint.sql.schema import MigrationReport

T = TypeVar("T")


class Driver(Protocol):
    """Runs operations on a database. Operations come as functions that make them, so that they can be repeated."""

    dialect: Dialect
    shared: bool
    """False if only this object can get at the database."""
    remote: bool
    """True if a write is waited for, False if it is done on the spot."""

    async def open(self) -> None:
        """Connect, create or migrate the tables. Raises CheckpointError."""
        ...

    async def read(self, make: Callable[[], Operation[T]], *, alone: bool = False) -> T:
        """Run an operation that only reads, in one snapshot. `alone`: it is one statement. Raises LoadError."""
        ...

    async def load(self, lineage: str, namespace: str, seq: int | None) -> Found | None:
        """`loading.load`, as fast as the database allows. Raises LoadError."""
        ...

    async def write(self, make: Callable[[], Operation[T]], *, alone: bool = False) -> T:
        """Run an operation in one transaction. `alone`: it is one statement. Raises SaveError."""
        ...

    async def take(self, claim: Claim, reads: Place | None) -> tuple[int, int, Found | None]:
        """Take a lineage and read a row of it, if asked to: its key, the token, what was found.

        Raises LineageBusy, SaveError.
        """
        ...

    async def append(self, grip: Grip, batch: Batch) -> None:
        """`operations.append`, as fast as the database allows. Raises LeaseLost, SaveError."""
        ...

    async def migrate(self, dry_run: bool) -> MigrationReport:
        """Bring the tables up to date, or see what that would do. Raises SchemaVersionError."""
        ...

    def thread_runner(self) -> Runner:
        """A connection for the thread that calls."""
        ...

    async def aclose(self) -> None:
        """Close the connections; harmless twice."""
        ...


def driver_for(url: str, sync: Sync, busy_timeout: float, migrate: bool, pool: PoolOptions) -> Driver:
    """The driver for a url (see `urls.sqlite_path`). Raises UsageError."""
    if sync not in ("normal", "full", "group"):
        raise UsageError(f"sync is {sync!r}; known: 'normal', 'full', 'group'")
    path = sqlite_path(url)
    if path is None:
        return _postgres(postgres_url(url), migrate, pool)
    return _sqlite(path, sync, busy_timeout, migrate)


def _sqlite(path: str, sync: Sync, busy_timeout: float, migrate: bool) -> Driver:
    from graphagent.checkpoint.sql.sqlite import SqliteDriver

    return SqliteDriver(path, sync, busy_timeout, migrate)


def _postgres(url: str, migrate: bool, pool: PoolOptions) -> Driver:
    from graphagent.checkpoint.sql.postgres import PostgresDriver

    return PostgresDriver(url, migrate, pool)
