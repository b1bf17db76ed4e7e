"""What every checkpoint store promises about pins, pruning and deletion; see `store_cases`."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from graphagent.checkpoint.record import ActivationRow, EffectRow, Question, Retention, Row
from graphagent.checkpoint.store import CheckpointStore
from graphagent.errors import CheckpointNotFound
from graphagent.ids import fresh_id
from graphagent.testing.store_cases import CODEC, Stores, assert_same, refused, write
from graphagent.testing.store_model import History, plain_rows, random_history


async def pins_are_shown_and_taken_off(stores: Stores) -> None:
    """A pinned row is marked in the history until it is unpinned; a row that isn't there can't be pinned."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        await write(store, lease, plain_rows(3))
        for _ in range(2):
            await store.pin(lease.lineage, "", 1)
        assert [header.pinned for header in await store.history(lease.lineage)] == [False, True, False]
        await store.pin(lease.lineage, "", 1, False)
        await store.pin(lease.lineage, "", 2, False)
        assert not any(header.pinned for header in await store.history(lease.lineage))
        for address in (("", 3), ("child", 0)):
            await refused(CheckpointNotFound, store.pin(lease.lineage, *address))
        await refused(CheckpointNotFound, store.pin(fresh_id(), "", 0))


async def _snapshot(store: CheckpointStore, lineage: str, namespace: str = "") -> dict[int, tuple[Any, ...]]:
    """What every row of a frame loads as, apart from where its folding begins and whether rows before it are left."""
    found = {}
    for header in await store.history(lineage, namespace):
        loaded = await store.load(lineage, namespace, header.seq, CODEC)
        assert loaded is not None
        row = replace(loaded.row, snap=0, root=0, pointer=None)
        found[header.seq] = (header, row, dict(sorted(loaded.values.items())), loaded.newest)
    return found


async def rows_that_stay_load_as_before(stores: Stores) -> None:
    """Whatever is pruned of random histories, snapshots, pointers and forks in it, what stays is equal to before."""
    for seed in range(5):
        rng = random.Random(seed)
        history = random_history(seed, 40)
        async with stores() as store:
            lease = await store.acquire(fresh_id(), "run-1")
            await write(store, lease, history.rows)
            for seq in rng.sample(range(40), rng.randrange(5)):
                await store.pin(lease.lineage, "", seq)
            for keep_last in sorted({rng.randrange(1, 39) for _ in range(3)}, reverse=True):
                before = await _snapshot(store, lease.lineage)
                policy = Retention(keep_last=keep_last)
                planned = await store.prune(policy, lineage=lease.lineage, dry_run=True)
                assert len(await store.history(lease.lineage)) == len(before)
                report = await store.prune(policy, lineage=lease.lineage)
                after = await _snapshot(store, lease.lineage)
                assert report.rows == planned.rows == len(before) - len(after)
                assert report.lineages == (1 if report.rows else 0)
                assert_same(after, {seq: before[seq] for seq in after})
                assert [seq for seq in before if seq not in after and seq >= 40 - keep_last] == []
            assert (await store.prune(policy, lineage=lease.lineage)).rows == 0


async def a_run_goes_on_after_pruning(stores: Stores) -> None:
    """A run whose history is pruned under it goes on with the snapshot and root it knew; its rows load right."""
    for seed in range(6):
        history = random_history(seed, 60)
        async with stores() as store:
            lease = await store.acquire(fresh_id(), "run-1")
            for row in history.rows:
                pointer = row.pointer if row.pointer is not None else row.parent
                if pointer is not None and await store.load(lease.lineage, "", pointer) is None:
                    break  # the row that this one goes on from was pruned: no engine could have written it
                await write(store, lease, [row])
                if row.seq % 7 == 6:
                    await store.prune(Retention(keep_last=1 + seed), lineage=lease.lineage)
            await _assert_states(store, lease.lineage, history)


async def _assert_states(store: CheckpointStore, lineage: str, history: History) -> None:
    headers = await store.history(lineage)
    assert headers
    for header in headers:
        loaded = await store.load(lineage, "", header.seq, CODEC)
        assert loaded is not None
        assert_same(dict(sorted(loaded.values.items())), dict(sorted(history.states[header.seq].items())))


async def the_newest_row_always_stays(stores: Stores) -> None:
    """However strict the policy, each frame keeps its newest row, with its full state; age is one of the bounds."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        await write(store, lease, plain_rows(10))
        recent = [replace(row, created_at=time.time()) for row in plain_rows(3, start=10)]
        await write(store, lease, recent)
        await write(store, lease, plain_rows(4), "child")
        await store.prune(Retention(max_age=3600.0), lineage=lease.lineage)
        assert [header.seq for header in await store.history(lease.lineage)] == [12, 11, 10]
        assert [header.seq for header in await store.history(lease.lineage, "child")] == [3]
        await store.prune(Retention(keep_last=0, max_age=0.0), lineage=lease.lineage)
        assert [header.seq for header in await store.history(lease.lineage)] == [12]
        loaded = await store.load(lease.lineage, codec=CODEC)
        assert loaded is not None
        assert loaded.values == {"count": 12, "log": list(range(13))}
        await store.prune(Retention(), lineage=lease.lineage)
        assert await store.namespaces(lease.lineage) == ["", "child"]


async def bytes_are_a_bound_too(stores: Stores) -> None:
    """A persistent store keeps no more than `max_bytes` of a frame and tells what it freed; memory counts no bytes."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        rows = [replace(row, values={"count": "x" * 1000}) for row in plain_rows(20)]
        await write(store, lease, rows)
        report = await store.prune(Retention(max_bytes=5500), lineage=lease.lineage)
        left = len(await store.history(lease.lineage))
        assert left == (5 if store.persistent else 20)
        assert report.rows == 20 - left
        assert (13_000 < report.bytes < 17_000) == store.persistent


async def what_rows_refer_to_stays(stores: Stores) -> None:
    """Child rows that a pinned interrupt waits for stay, and the activations and effects that a resume would read.

    Those are of a row's base and, for the eager engine, of the origins in its marking.
    """
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        rows = plain_rows(10)
        asked = Question("q", "key", "work", 0, 0, frame=("child", 2))
        rows[4] = replace(rows[4], source="interrupt", base=3, values={}, lists={}, questions=(asked,))
        await write(store, lease, plain_rows(6), "child")
        for row in rows:
            await write(store, lease, [row])
            if row.base == row.seq:
                await store.put_activations(lease, "", row.seq, [ActivationRow(0, "work")], CODEC)
                await store.claim_effect(lease, "", EffectRow(row.seq, 0, "pay", 0, False))
        eager = replace(plain_rows(1, start=10)[0], marking={"m": [], "o": [[6, 0, 6], [10, 0, 10]]})
        await write(store, lease, [eager])
        await store.pin(lease.lineage, "", 4)
        await store.prune(Retention(keep_last=1), lineage=lease.lineage)
        assert [header.seq for header in await store.history(lease.lineage)] == [10, 4]
        assert [header.seq for header in await store.history(lease.lineage, "child")] == [5, 2]
        for base in range(10):
            kept = base in (3, 6)
            assert bool(await store.activations(lease.lineage, "", base, CODEC)) == kept
            assert bool(await store.effects(lease.lineage, "", base)) == kept


async def what_was_forked_from_stays(stores: Stores) -> None:
    """A row that another one, that stays, was made from keeps its place, also where nothing is read from it."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        rows = plain_rows(8)
        rows[7] = replace(rows[7], source="fork", parent=2, snap=7, root=7)
        await write(store, lease, rows)
        await store.prune(Retention(keep_last=1), lineage=lease.lineage)
        assert [header.seq for header in await store.history(lease.lineage)] == [7, 2]
        loaded = await store.load(lease.lineage, "", 2, CODEC)
        assert loaded is not None
        assert loaded.values == {"count": 2, "log": [0, 1, 2]}


async def pruning_one_lineage_leaves_others_alone(stores: Stores) -> None:
    """With a lineage named, no other one is touched; a lineage that isn't there is no error."""
    async with stores() as store:
        leases = [await store.acquire(fresh_id(), "run-1") for _ in range(2)]
        for lease in leases:
            await write(store, lease, plain_rows(5))
        report = await store.prune(Retention(keep_last=2), lineage=leases[0].lineage)
        assert (report.rows, report.lineages) == (3, 1)
        assert [len(await store.history(lease.lineage)) for lease in leases] == [2, 5]
        assert (await store.prune(Retention(keep_last=1), lineage=fresh_id())).rows == 0


async def deletion_leaves_nothing(stores: Stores) -> None:
    """After a deletion the name is as new: nothing of frames, activations, effects, pins or the lease comes back."""
    async with stores() as store:
        lineage, other = fresh_id(), fresh_id()
        kept = await store.acquire(other, "run-1")
        await write(store, kept, plain_rows(2))
        for _ in range(2):
            lease = await store.acquire(lineage, "run-1")
            for namespace in ("", "child"):
                assert await store.activations(lineage, namespace, 1, CODEC) == {}
                assert await store.effects(lineage, namespace, 1) == []
                await write(store, lease, plain_rows(3), namespace)
                assert not any(header.pinned for header in await store.history(lineage, namespace))
                await store.put_activations(lease, namespace, 1, [ActivationRow(0, "work")], CODEC)
                await store.claim_effect(lease, namespace, EffectRow(1, 0, "pay", 0, False))
                await store.pin(lineage, namespace, 1)
            assert await store.delete(lineage) == 6
            assert await store.history(lineage) == []
            assert await store.namespaces(lineage) == []
            assert await store.lineages(prefix=lineage) == []
        assert len(await store.history(other)) == 2


async def a_long_history_is_pruned_in_linear_space(stores: Stores) -> None:
    """Keeping every tenth row by pins doesn't copy the append-like field into each of them."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        rows: list[Row] = plain_rows(200)
        await write(store, lease, rows, size=50)
        for seq in range(0, 200, 10):
            await store.pin(lease.lineage, "", seq)
        report = await store.prune(Retention(keep_last=1), lineage=lease.lineage)
        assert report.rows == 179
        assert (report.bytes > 0) == store.persistent
        for seq in (0, 100, 190, 199):
            loaded = await store.load(lease.lineage, "", seq, CODEC)
            assert loaded is not None
            assert loaded.values == {"count": seq, "log": list(range(seq + 1))}


CASES: tuple[Callable[[Stores], Awaitable[None]], ...] = (
    pins_are_shown_and_taken_off,
    rows_that_stay_load_as_before,
    a_run_goes_on_after_pruning,
    the_newest_row_always_stays,
    bytes_are_a_bound_too,
    what_rows_refer_to_stays,
    what_was_forked_from_stays,
    pruning_one_lineage_leaves_others_alone,
    deletion_leaves_nothing,
    a_long_history_is_pruned_in_linear_space,
)
