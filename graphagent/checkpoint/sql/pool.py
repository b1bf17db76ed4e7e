"""A small pool of PostgreSQL connections: lent for one transaction, checked before use, recycled by age.

The pool of psycopg (psycopg_pool) would be one more dependency, works with background tasks bound to one event loop,
and its check costs a round trip; here a connection that the server ended is noticed without one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper

from graphagent.checkpoint.sql.options import PoolOptions
from graphagent.errors import StoreBusy
from graphagent.patience import in_line

Connection = psycopg.AsyncConnection[Any]


@dataclass(slots=True)
class _Idle:
    connection: Connection
    born: float
    since: float


class Pool:
    """Connections of one event loop; with another loop the pool begins anew."""

    def __init__(self, url: str, options: PoolOptions) -> None:
        self._url = url
        self._options = options
        self._idle: list[_Idle] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(options.max_size)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection outside of a transaction.

        It is kept for the next one if the block leaves it so, else it is closed, and what was left undone in it goes
        with it. Whoever asked first gets the next free one. Raises psycopg.Error if the server can't be reached,
        StoreBusy if none gets free in time.
        """
        self._enter_loop()
        places = self._places
        await self._place(places)
        try:
            entry = await self._take()
            try:
                yield entry.connection
            finally:
                if entry.connection.pgconn.transaction_status == TransactionStatus.IDLE:
                    entry.since = time.monotonic()
                    self._idle.append(entry)
                else:
                    await _close(entry.connection)
        finally:
            places.release()

    async def _place(self, places: asyncio.Semaphore) -> None:
        """Take a place, at once or after those who came before."""
        if not places.locked():
            await places.acquire()
            return
        try:
            with in_line(), anyio.fail_after(self._options.timeout):
                await places.acquire()
        except TimeoutError as error:
            raise StoreBusy(
                f"no connection to PostgreSQL got free in {self._options.timeout} s (PoolOptions.timeout): all "
                f"{self._options.max_size} connections were in use and others were before this one; nothing was done. "
                f"Raise PoolOptions.max_size, or the timeout"
            ) from error

    def _enter_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            for entry in self._idle:
                entry.connection.pgconn.finish()
            self._loop, self._idle, self._places = loop, [], asyncio.Semaphore(self._options.max_size)

    async def _take(self) -> _Idle:
        now = time.monotonic()
        while self._idle:
            entry = self._idle.pop()  # the newest: the others may age and go
            young = now - entry.born < self._options.max_lifetime and now - entry.since < self._options.max_idle
            if young and _is_alive(entry.connection):
                return entry
            await _close(entry.connection)
        return _Idle(await self._connect(), now, now)

    async def _connect(self) -> Connection:
        connection = await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, prepare_threshold=None if self._options.pooler else 2
        )
        # One integer type for all parameters: else each width would be a statement of its own to prepare.
        connection.adapters.register_dumper(int, Int8Dumper)
        return connection

    async def clear(self) -> None:
        """Close the idle connections: if the server ended one, it has likely ended the others."""
        while self._idle:
            await _close(self._idle.pop().connection)


def _is_alive(connection: Connection) -> bool:
    """False if the server has ended an idle connection: then its last words, or the end, can be read from it."""
    try:
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()  # the first may have read a farewell, then the second meets the end
    except psycopg.Error:
        return False
    return not connection.broken and not connection.closed


async def _close(connection: Connection) -> None:
    with anyio.CancelScope(shield=True):
        await connection.close()
