"""PostgreSQL: connections that die, replies that get lost, poolers, recycling."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import psycopg
import pytest
from sql_help import CODEC, SERVER, schema_of, write

from graphagent.checkpoint.record import ActivationRow, EffectRow
from graphagent.checkpoint.sql.options import PoolOptions
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.errors import CheckpointError, LoadError, SaveError, StoreBusy, UsageError
from graphagent.testing.store_model import plain_rows

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]


def named(url: str, *settings: str) -> str:
    """The url with an application name that tells the test's connections, and with more server settings."""
    more = "".join(f"%20-c{setting.replace('=', '%3D')}" for setting in settings)
    return f"{url}{more}&application_name={schema_of(url)}"


def connections(url: str, what: str) -> list[tuple[str]]:
    """`what` of every connection that a store opened at `named(url)`."""
    with psycopg.connect(SERVER, autocommit=True) as server:
        query = f"SELECT {what} FROM pg_stat_activity WHERE application_name = %s"
        return server.execute(query.encode(), (schema_of(url),)).fetchall()


async def test_c144_a_save_survives_the_end_of_all_connections(postgres_url: str) -> None:
    """While a node sleeps the server ends every connection, the heartbeat's too; the next save goes through."""
    url = named(postgres_url)
    async with SqlCheckpoints(url, lease_ttl=1.5) as store:
        lease = await store.acquire("order-1", "run-1")
        for row in plain_rows(6):
            await write(store, lease, [row])
            await asyncio.sleep(0.3)
            assert connections(postgres_url, "pg_terminate_backend(pid)")
            loaded = await store.load("order-1", codec=CODEC)
            assert loaded is not None
            assert loaded.row.seq == row.seq
            connections(postgres_url, "pg_terminate_backend(pid)")
        assert not lease.lost
        await store.release(lease)


async def test_c144_no_connection_is_held_between_saves(postgres_url: str) -> None:
    """Fifty runs that wait for a model at once need no more than two connections, and none of them is in use."""
    async with SqlCheckpoints(named(postgres_url), pool=PoolOptions(max_size=2)) as store:
        leases = [await store.acquire(f"order-{place}", "run-1") for place in range(50)]
        await asyncio.gather(*(write(store, lease, plain_rows(3)) for lease in leases))
        states = connections(postgres_url, "state")
        assert 1 <= len(states) <= 3  # two of the pool, one of the heartbeat
        assert {state for (state,) in states} == {"idle"}


class Proxy:
    """Stands between clients and the server; it can swallow a reply and hang up, or hang up on everybody."""

    def __init__(self) -> None:
        self.replies: int | None = None  # let so many replies through, then swallow one and hang up
        self.cuts = 0
        self.down = False
        self.port = 0
        self._serving: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        """Accept connections."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield
            self.hang_up()
            await asyncio.gather(*self._serving, return_exceptions=True)

    def hang_up(self) -> None:
        """End all connections."""
        for task in self._serving:
            task.cancel()

    async def _serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        target = urlsplit(SERVER)
        reader, writer = await asyncio.open_connection(target.hostname, target.port or 5432)
        try:
            async with asyncio.TaskGroup() as both:
                request = both.create_task(_pump(client, writer))
                if not self.down:
                    await self._replies(reader, answer)
                request.cancel()
        except* (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            for end in (writer, answer):
                end.close()
                with suppress(ConnectionError):
                    await end.wait_closed()
            self._serving.discard(task)

    async def _replies(self, server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while data := await server.read(65536):
            if self.replies == 0:
                self.replies, self.cuts = None, self.cuts + 1
                return
            self.replies = None if self.replies is None else self.replies - 1
            client.write(data)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        target.write(data)
    target.close()


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[tuple[Proxy, SqlCheckpoints]]:
    """A store that reaches the server through a proxy."""
    proxy = Proxy()
    async with proxy.listen():
        parts = urlsplit(url)
        through = parts._replace(netloc=f"{parts.username or 'postgres'}@127.0.0.1:{proxy.port}").geturl()
        async with SqlCheckpoints(f"{through}&sslmode=disable&gssencmode=disable") as store:
            yield proxy, store


async def test_c144_a_write_whose_reply_was_lost_is_not_done_twice(postgres_url: str) -> None:
    """The commit got through, the connection died before the reply: the retry sees that the row is there."""
    async with proxied(postgres_url) as (proxy, store):
        proxy.replies = 0
        lease = await store.acquire("order-1", "run-1")
        rows = plain_rows(4)
        await write(store, lease, rows[:1])
        for row in rows[1:3]:
            proxy.replies = 0
            await write(store, lease, [row])
        proxy.replies = 0
        await store.put_activations(lease, "", 2, [ActivationRow(0, "work")], CODEC)
        proxy.replies = 0
        await store.claim_effect(lease, "", EffectRow(2, 0, "pay", 0, False))
        proxy.replies = 0
        await store.append(lease, "", rows[3:], CODEC, closes=2, release=True)
        assert proxy.cuts == 6
        assert [header.seq for header in await store.history("order-1")] == [3, 2, 1, 0]
        assert await store.activations("order-1", "", 2, CODEC) == {}
        loaded = await store.load("order-1", codec=CODEC)
        assert loaded is not None
        assert loaded.values == {"count": 3, "log": [0, 1, 2, 3]}
        await store.acquire("order-1", "run-2")


@pytest.mark.parametrize(("runs", "trips"), [(1, 1), (2, 13)])
async def test_c144_a_lost_reply_anywhere_in_the_first_append(postgres_url: str, runs: int, trips: int) -> None:
    """Whichever reply is lost while a run takes a lineage, writes its first rows and gives it back: all is done once.
    Rows of one run take one round trip; those of two, as of an import, a transaction."""
    async with proxied(postgres_url) as (proxy, store):
        for replies in range(20):
            proxy.replies = replies
            lease = await store.acquire(f"order-{replies}", "run-1")
            proxy.replies = replies
            rows = [replace(row, run_id=f"run-{row.seq}") for row in plain_rows(runs)]
            await store.append(lease, "", rows, CODEC)
            cut, proxy.replies = proxy.replies is None, None
            assert len(await store.history(lease.lineage)) == runs
            proxy.replies = replies
            await store.release(lease)
            proxy.replies = None
            await store.release(await store.acquire(lease.lineage, "run-2"))
            if not cut:
                break
        assert replies == trips
        assert proxy.cuts >= replies + 2  # and those of taking and of giving back


async def test_c144_a_server_that_stays_away_is_a_typed_error(postgres_url: str) -> None:
    """After the declared number of attempts the save fails, typed; when the server is back, the run can go on."""
    async with proxied(postgres_url) as (proxy, store):
        lease = await store.acquire("order-1", "run-1")
        await write(store, lease, plain_rows(1))
        proxy.down = True
        proxy.hang_up()
        with pytest.raises(SaveError, match="could not be written in 4 attempts"):
            await write(store, lease, plain_rows(1, start=1))
        with pytest.raises(LoadError, match="could not be read in 4 attempts"):
            await store.load("order-1")
        proxy.down = False
        await write(store, lease, plain_rows(1, start=1))
        await store.release(lease)


@pytest.fixture
def pgbouncer(postgres_url: str, tmp_path: Path) -> Iterator[str]:
    """The url of a PgBouncer in transaction mode before the test's schema; two connections to the server."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("no pgbouncer on this machine (apt-get install pgbouncer)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    target = urlsplit(SERVER)
    config = tmp_path / "pgbouncer.ini"
    config.write_text(
        f"[databases]\ntest = host={target.hostname} port={target.port or 5432} dbname={target.path[1:]} "
        f"user={target.username} connect_query='SET search_path TO {schema_of(postgres_url)}'\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 2\nserver_reset_query_always = 0\n"
    )
    command = [program, str(config)]
    if os.geteuid() == 0:
        command[1:1] = ["-u", "postgres"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            _wait_for(port)
            yield f"postgresql://{target.username}@127.0.0.1:{port}/test"
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    until = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


async def test_c144_a_transaction_pooler_works_with_the_documented_setting(pgbouncer: str) -> None:
    """Behind PgBouncer in transaction mode, with `PoolOptions(pooler=True)`, concurrent runs save and load."""
    async with SqlCheckpoints(pgbouncer, pool=PoolOptions(pooler=True)) as store:

        async def run(lineage: str) -> None:
            lease = await store.acquire(lineage, "run-1")
            await write(store, lease, plain_rows(12))
            loaded = await store.load(lineage, codec=CODEC)
            assert loaded is not None
            assert loaded.values == {"count": 11, "log": list(range(12))}
            await store.release(lease)

        await asyncio.gather(*(run(f"order-{place}") for place in range(6)))


async def test_c145_the_first_requests_of_the_morning_succeed(postgres_url: str) -> None:
    """The server ended all five idle connections of the pool; ten runs start at once and none of them notices."""
    url = named(postgres_url, "idle_session_timeout=300")
    async with SqlCheckpoints(url, pool=PoolOptions(max_size=5)) as store:

        async def run(lineage: str) -> None:
            lease = await store.acquire(lineage, "run-1")
            await write(store, lease, plain_rows(3))
            await store.release(lease)

        await asyncio.gather(*(run(f"evening-{place}") for place in range(10)))
        await asyncio.sleep(0.8)
        await asyncio.gather(*(run(f"morning-{place}") for place in range(10)))
        assert len(await store.lineages(prefix="morning")) == 10


@pytest.mark.parametrize("option", ["max_idle", "max_lifetime"])
async def test_c145_old_connections_are_not_used_again(postgres_url: str, option: str) -> None:
    """A connection that was idle too long, or is too old, makes room for a new one."""
    async with SqlCheckpoints(postgres_url, pool=PoolOptions(**{option: 0.1})) as store:
        pool = store._driver._pool  # type: ignore[attr-defined]
        async with pool.connection() as connection:
            first = connection.info.backend_pid
        async with pool.connection() as connection:
            assert connection.info.backend_pid == first
        await asyncio.sleep(0.15)
        async with pool.connection() as connection:
            assert connection.info.backend_pid != first


async def test_a_full_pool_is_a_typed_error(postgres_url: str) -> None:
    """Whoever waits too long for a connection is told which option to raise."""
    async with SqlCheckpoints(postgres_url, pool=PoolOptions(max_size=1, timeout=0.1)) as store:
        async with store._driver._pool.connection():  # type: ignore[attr-defined]
            with pytest.raises(StoreBusy, match=r"(?s)in 0.1 s .* all 1 connections .* Raise PoolOptions\.max_size"):
                await store.lineages()
        assert await store.lineages() == []


async def test_a_cancelled_save_leaves_the_store_usable(postgres_url: str) -> None:
    """Giving up on a save ends its connection, not the store."""
    async with SqlCheckpoints(postgres_url, pool=PoolOptions(max_size=1)) as store:
        lease = await store.acquire("order-1", "run-1")
        await write(store, lease, plain_rows(1))
        for delay in (0.0, 0.0005, 0.001):
            saving = asyncio.create_task(write(store, lease, plain_rows(1, start=1)))
            await asyncio.sleep(delay)
            saving.cancel()
            with suppress(asyncio.CancelledError):
                await saving
        seqs = [header.seq for header in await store.history("order-1")]
        assert seqs in ([0], [1, 0])
        await write(store, lease, plain_rows(1, start=len(seqs)))


async def test_messages_do_not_show_passwords() -> None:
    """An error about a server names it without the password."""
    store = SqlCheckpoints("postgresql://me:s3cret@127.0.0.1:1/db", pool=PoolOptions(attempts=1))
    with pytest.raises(CheckpointError) as caught:
        await store.lineages()
    assert "me@127.0.0.1" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_trio_is_told_what_is_missing(postgres_url: str) -> None:
    """psycopg needs asyncio; under trio the error says so."""
    with pytest.raises(UsageError, match="needs asyncio"):
        anyio.run(SqlCheckpoints(postgres_url).lineages, backend="trio")


def test_one_store_serves_event_loops_one_after_the_other(postgres_url: str) -> None:
    """Connections belong to a loop; the next loop gets new ones."""
    store = SqlCheckpoints(postgres_url)

    async def save(lineage: str) -> int:
        lease = await store.acquire(lineage, "run-1")
        await write(store, lease, plain_rows(2))
        await store.release(lease)
        await store._driver._pool.clear()  # type: ignore[attr-defined]
        return len(await store.lineages())

    assert [asyncio.run(save(name)) for name in ("a", "b")] == [1, 2]
    asyncio.run(store.aclose())
