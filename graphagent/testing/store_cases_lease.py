"""What every checkpoint store promises about leases and several writers; see `store_cases`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import anyio.lowlevel

from graphagent.checkpoint.record import ActivationRow, EffectRow
from graphagent.checkpoint.store import CheckpointStore, Lease, Signal
from graphagent.errors import LeaseLost, LineageBusy
from graphagent.ids import fresh_id
from graphagent.testing.store_cases import CODEC, Stores, need_persistent, refused, write
from graphagent.testing.store_model import plain_rows


async def a_lineage_has_one_writer(stores: Stores) -> None:
    """A second run is turned away with an error that names the first one and the policies; after it, tokens grow."""
    async with stores() as store:
        lineage = fresh_id()
        first = await store.acquire(lineage, "run-1")
        message = await refused(LineageBusy, store.acquire(lineage, "run-2"))
        for word in (lineage, "'run-1'", "reject", "queue", "cancel_previous", "fork"):
            assert word in message
        await store.acquire(fresh_id(), "run-2")
        await store.release(first)
        second = await store.acquire(lineage, "run-2")
        assert second.token > first.token
        await store.release(first)
        await write(store, second, plain_rows(1))


async def a_row_can_give_the_lease_back(stores: Stores) -> None:
    """`append` with `release` writes and releases in one transaction; the lease is of no use after that."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        await write(store, lease, plain_rows(1))
        await store.append(lease, "", plain_rows(1, start=1), CODEC, release=True)
        await refused(LeaseLost, store.append(lease, "", plain_rows(1, start=2), CODEC))
        newer = await store.acquire(lease.lineage, "run-2")
        await write(store, newer, plain_rows(1, start=2))
        loaded = await store.load(lease.lineage, codec=CODEC)
        assert loaded is not None
        assert loaded.values == {"count": 2, "log": [0, 1, 2]}


async def a_lost_lease_writes_nothing(stores: Stores) -> None:
    """Every write with a lease that was released, and with one that another run took over, raises LeaseLost."""
    async with stores() as store:
        lineage = fresh_id()
        old = await store.acquire(lineage, "run-1")
        await write(store, old, plain_rows(2))
        await store.release(old)
        await _nothing_works(store, old)
        new = await store.acquire(lineage, "run-2")
        await _nothing_works(store, old)
        assert len(await store.history(lineage)) == 2
        assert await store.activations(lineage, "", 1, CODEC) == {}
        assert await store.effects(lineage, "", 1) == []
        await write(store, new, plain_rows(1, start=2))


async def _nothing_works(store: CheckpointStore, lease: Lease) -> None:
    stale = replace(lease, lost=False)
    await refused(LeaseLost, store.append(stale, "", plain_rows(1, start=2), CODEC))
    await refused(LeaseLost, store.append(stale, "", plain_rows(2, start=2), CODEC, closes=1, release=True))
    await refused(LeaseLost, store.append(stale, "child", plain_rows(1), CODEC))
    await refused(LeaseLost, store.put_activations(stale, "", 1, [ActivationRow(0, "work")], CODEC))
    await refused(LeaseLost, store.claim_effect(stale, "", EffectRow(1, 0, "pay", 0, False)))
    await refused(LeaseLost, store.commit_effect(stale, "", EffectRow(1, 0, "pay", 0, True)))


async def another_handle_is_fenced_off(stores: Stores) -> None:
    """The lease holds across handles: the second one can't acquire, and after a takeover the first can't write."""
    async with stores() as one, stores() as two:
        need_persistent(one)
        lease = await one.acquire(fresh_id(), "run-1")
        await write(one, lease, plain_rows(1))
        await refused(LineageBusy, two.acquire(lease.lineage, "run-2"))
        await two.delete(lease.lineage)
        taken = await two.acquire(lease.lineage, "run-2")
        await refused(LeaseLost, one.append(lease, "", plain_rows(1, start=1), CODEC))
        await write(two, taken, plain_rows(1))


async def a_request_to_cancel_reaches_the_owner(stores: Stores) -> None:
    """The owner is signalled once per request or more, others are not, and asking an idle lineage says so."""
    async with stores() as store:
        lineage, other = fresh_id(), fresh_id()
        heard: list[str] = []
        lease = await store.acquire(lineage, "run-1", on_signal=lambda signal: heard.append(f"1 {signal}"))
        await store.acquire(other, "run-2", on_signal=lambda signal: heard.append(f"2 {signal}"))
        assert await store.request_cancel(lineage)
        await _until(lambda: heard == ["1 cancel"])
        await write(store, lease, plain_rows(1))
        await store.release(lease)
        assert not await store.request_cancel(lineage)
        assert not await store.request_cancel(fresh_id())
        again = await store.acquire(lineage, "run-3", on_signal=lambda signal: heard.append(f"3 {signal}"))
        await store.release(again)
        assert heard == ["1 cancel"]


async def a_request_to_cancel_crosses_handles(stores: Stores) -> None:
    """An owner hears of a request that another handle left, without writing anything itself."""
    async with stores() as one, stores() as two:
        need_persistent(one)
        heard: list[Signal] = []
        lease = await one.acquire(fresh_id(), "run-1", on_signal=heard.append)
        assert await two.request_cancel(lease.lineage)
        await _until(lambda: heard == ["cancel"])
        await one.release(lease)


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(15):
        while not condition():  # noqa: ASYNC110 - signals come from any thread
            await anyio.sleep(0.02)


async def a_holder_hears_of_a_deletion(stores: Stores) -> None:
    """Deleting a lineage takes the lease with it, and its holder is told."""
    async with stores() as store:
        heard: list[Signal] = []
        lease = await store.acquire(fresh_id(), "run-1", on_signal=heard.append)
        await write(store, lease, plain_rows(2))
        assert await store.delete(lease.lineage) == 2
        await _until(lambda: heard == ["lost"])
        assert lease.lost
        await refused(LeaseLost, store.append(lease, "", plain_rows(1), CODEC))


async def closing_gives_leases_back(stores: Stores) -> None:
    """A store that is closed holds nothing any more, and may be closed twice."""
    lineage = fresh_id()
    async with stores() as store:
        need_persistent(store)
        await store.acquire(lineage, "run-1")
    await store.aclose()
    async with stores() as store:
        await store.acquire(lineage, "run-2")


async def concurrent_runs_keep_to_their_lineages(stores: Stores) -> None:
    """Runs that write at once, two frames of one lineage among them, all find their own rows afterwards."""
    async with stores() as store:
        leases = [await store.acquire(fresh_id(), f"run-{place}") for place in range(8)]

        async def run(lease: Lease, namespace: str) -> None:
            for row in plain_rows(10):
                await write(store, lease, [row], namespace)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            for lease in leases:
                tasks.start_soon(run, lease, "")
                tasks.start_soon(run, lease, "child")
        for lease in leases:
            for namespace in ("", "child"):
                loaded = await store.load(lease.lineage, namespace, codec=CODEC)
                assert loaded is not None
                assert loaded.values == {"count": 9, "log": list(range(10))}


async def one_handle_reads_while_another_writes(stores: Stores) -> None:
    """A reader sees whole rows of a growing history, each with its full state, and never an error."""
    async with stores() as one, stores() as two:
        need_persistent(one)
        lease = await one.acquire(fresh_id(), "run-1")
        seen: list[int] = []
        done = anyio.Event()

        async def read() -> None:
            while not done.is_set():
                loaded = await two.load(lease.lineage, codec=CODEC)
                if loaded is not None:
                    assert loaded.values == {"count": loaded.row.seq, "log": list(range(loaded.row.seq + 1))}
                    seen.append(loaded.row.seq)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            for row in plain_rows(60):
                await write(one, lease, [row])
                await anyio.lowlevel.checkpoint()
            done.set()
        assert seen == sorted(seen)
        assert [header.seq for header in await two.history(lease.lineage)] == list(range(59, -1, -1))


CASES: tuple[Callable[[Stores], Awaitable[None]], ...] = (
    a_lineage_has_one_writer,
    a_row_can_give_the_lease_back,
    a_lost_lease_writes_nothing,
    another_handle_is_fenced_off,
    a_request_to_cancel_reaches_the_owner,
    a_request_to_cancel_crosses_handles,
    a_holder_hears_of_a_deletion,
    closing_gives_leases_back,
    concurrent_runs_keep_to_their_lineages,
    one_handle_reads_while_another_writes,
)
