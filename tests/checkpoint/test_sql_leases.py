"""Leases of the SQL stores across processes: dead owners, busy loops, expiry, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from sql_help import CODEC, environment, write

from graphagent.checkpoint.sql import owner as owners
from graphagent.checkpoint.sql.owner import describe, is_dead, owner_text
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.errors import LeaseLost, LineageBusy
from graphagent.testing.store_model import plain_rows

pytestmark = pytest.mark.anyio

HOLD = """
import asyncio, sys, time
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.testing.store_model import AnyCodec, plain_rows

async def main(url, how):
    heard = asyncio.Event()
    loop = asyncio.get_running_loop()
    store = SqlCheckpoints(url, lease_ttl=float(sys.argv[3]))
    lease = await store.acquire("order-1", "run-1", on_signal=lambda s: loop.call_soon_threadsafe(heard.set))
    await store.append(lease, "", plain_rows(3), AnyCodec())
    print("held", flush=True)
    if how == "block":
        time.sleep(4)
    await heard.wait()
    await store.release(lease)
    await store.aclose()

asyncio.run(main(*sys.argv[1:3]))
"""


def _holder(url: str, how: str = "wait", ttl: float = 60) -> subprocess.Popen[str]:
    """A process that holds lineage `order-1` and has written three rows."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, url, how, str(ttl)], env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def _kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)


@pytest.mark.kill
async def test_a_killed_owner_is_taken_over_at_once(url: str) -> None:
    """After kill -9 another process resumes without waiting for the lease to run out, and finds all rows."""
    process = _holder(url)
    async with SqlCheckpoints(url) as store:
        with pytest.raises(LineageBusy, match=rf"'order-1' .* by run 'run-1' since .*process {process.pid} on host"):
            await store.acquire("order-1", "run-2")
        _kill(process)
        started = time.monotonic()
        lease = await store.acquire("order-1", "run-2")
        assert time.monotonic() - started < 1
        loaded = await store.load("order-1", codec=CODEC)
        assert loaded is not None
        assert loaded.values == {"count": 2, "log": [0, 1, 2]}
        await write(store, lease, plain_rows(1, start=3))


@pytest.mark.kill
def test_a_zombie_is_dead(url: str) -> None:
    """A killed owner that its parent hasn't reaped still has a pid, but no longer a claim."""
    process = _holder(url)
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    anyio.run(_acquire, url)
    process.communicate(timeout=10)


async def _acquire(url: str) -> None:
    async with SqlCheckpoints(url) as store:
        await store.acquire("order-1", "run-2")


@pytest.mark.kill
async def test_a_request_to_cancel_reaches_another_process(url: str) -> None:
    """The owner in another process hears of the request within a second or so and lets go."""
    process = _holder(url)
    async with SqlCheckpoints(url) as store:
        assert await store.request_cancel("order-1")
        process.communicate(timeout=10)
        assert process.returncode == 0
        assert not await store.request_cancel("order-1")
        await store.acquire("order-1", "run-2")


@pytest.mark.kill
async def test_a_blocked_event_loop_does_not_lose_the_lease(url: str) -> None:
    """The heartbeat is a thread of its own: a node that blocks the loop for longer than the lease keeps it."""
    process = _holder(url, "block", ttl=1.5)
    async with SqlCheckpoints(url) as store:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            with pytest.raises(LineageBusy):
                await store.acquire("order-1", "run-2")
            await anyio.sleep(0.2)
        await store.request_cancel("order-1")
        process.communicate(timeout=15)


@pytest.mark.kill
async def test_a_stopped_owner_loses_the_lease_and_is_told(url: str) -> None:
    """A process that was suspended beyond its lease is taken over; when it wakes up it hears so and may not write."""
    async with SqlCheckpoints(url) as store:
        process = _holder(url, ttl=1.0)
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(LineageBusy):
            await store.acquire("order-1", "run-2")
        await anyio.sleep(1.2)
        lease = await store.acquire("order-1", "run-2")
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=10)  # it waits for a signal, then ends
        assert process.returncode == 0
        await write(store, lease, plain_rows(1, start=3))


async def test_a_taken_over_lease_writes_nothing(url: str) -> None:
    """A handle whose lease ran out may go on until another run takes the lineage over, and not a row longer."""
    async with SqlCheckpoints(url, lease_ttl=0.2) as one, SqlCheckpoints(url) as two:
        heard: list[str] = []
        lease = await one.acquire("order-1", "run-1", on_signal=heard.append)
        await one._heartbeat.close()
        await anyio.sleep(0.4)
        await write(one, lease, plain_rows(1))
        taken = await two.acquire("order-1", "run-2")
        assert taken.token > lease.token
        with pytest.raises(LeaseLost, match="run 'run-1' no longer holds lineage 'order-1'"):
            await write(one, lease, plain_rows(1, start=1))
        await write(two, taken, plain_rows(1, start=1))
        await one.release(lease)
        with pytest.raises(LineageBusy, match="run-2"):
            await one.acquire("order-1", "run-3")


async def test_an_owner_that_cannot_be_told_does_not_stop_the_heartbeat(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A signal handler that raises is logged; other leases are kept alive and told."""

    def broken(signal: str) -> None:
        raise ValueError("no ears")

    async with SqlCheckpoints(url, lease_ttl=0.6) as one, SqlCheckpoints(url) as two:
        heard: list[str] = []
        await one.acquire("order-1", "run-1", on_signal=broken)
        await one.acquire("order-2", "run-1", on_signal=heard.append)
        for name in ("order-1", "order-2"):
            assert await two.request_cancel(name)
        await anyio.sleep(1.5)
        assert heard == ["cancel"]
        assert "the owner of lineage 'order-1' could not be told 'cancel'" in caplog.text
        for name in ("order-1", "order-2"):
            with pytest.raises(LineageBusy):
                await two.acquire(name, "run-2")


@pytest.mark.parametrize("count", [1, 230])
async def test_one_heartbeat_keeps_many_leases(url: str, count: int) -> None:
    """All leases of a store are renewed together, however many there are."""
    async with SqlCheckpoints(url, lease_ttl=1.5) as one, SqlCheckpoints(url) as two:
        await one.acquire("first", "run-1")
        for place in range(count - 1):
            await one.acquire(f"order-{place}", "run-1")
        await anyio.sleep(2.0)
        with pytest.raises(LineageBusy):
            await two.acquire("first", "run-2")


async def test_tokens_grow_over_a_deletion(url: str) -> None:
    """A lineage that is deleted and begun again doesn't hand out a token that an old run may still hold."""
    async with SqlCheckpoints(url) as one, SqlCheckpoints(url) as two:
        old = await one.acquire("order-1", "run-1")
        await two.delete("order-1")
        new = await two.acquire("order-1", "run-2")
        assert new.token > old.token
        with pytest.raises(LeaseLost):
            await write(one, old, plain_rows(1))


def test_owners_are_told_apart() -> None:
    """This process lives; one with its pid but another start time, or a pid that is free, is dead."""
    mine = owner_text()
    host, boot, namespace, pid, started = json.loads(mine)
    assert not is_dead(mine)
    assert str(os.getpid()) in describe(mine)
    assert host in describe(mine)
    assert is_dead(json.dumps([host, boot, namespace, pid, str(int(started or 0) + 1)]))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert is_dead(json.dumps([host, boot, namespace, gone.pid, "12345"]))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_owners_elsewhere_are_not_known_to_be_dead(place: int) -> None:
    """On another host, after a reboot, or in another container, only time can tell: the lease runs out."""
    parts = json.loads(owner_text())
    parts[place] = "elsewhere"
    parts[3] = 2**22 + 1  # above the largest pid
    assert not is_dead(json.dumps(parts))


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "{}", "null", '["a","b","c","d","e"]'])
def test_an_owner_that_cannot_be_read_is_not_known_to_be_dead(text: str) -> None:
    """Nor does it break the message about it."""
    assert not is_dead(text)
    assert describe(text)


def test_without_proc_a_pid_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there is no `/proc`, a pid that is free means dead; one in use can't be told from a reused one."""
    monkeypatch.setattr(owners, "PROC", str(tmp_path))
    for cached in (owners._machine, owners._own_text):
        cached.cache_clear()
    try:
        mine = owner_text()
        assert json.loads(mine)[4] == ""
        assert not is_dead(mine)
        assert is_dead(json.dumps([*json.loads(mine)[:3], 2**22 + 1, ""]))
        assert not is_dead(json.dumps([*json.loads(mine)[:3], 1, ""]))
    finally:
        for cached in (owners._machine, owners._own_text):
            cached.cache_clear()
