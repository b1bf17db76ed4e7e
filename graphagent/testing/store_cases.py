"""What every checkpoint store promises about rows, one function a promise; `store_suite` makes tests of them.

Each takes a function that opens the store under test. Lineages have fresh names, so cases may share a database.
"""

from __future__ import annotations

import json
import unittest
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from graphagent.checkpoint.record import ActivationRow, EffectRow, ListDelta, Row
from graphagent.checkpoint.store import CheckpointStore, Lease
from graphagent.errors import CheckpointError, EncodeError, SaveError
from graphagent.ids import fresh_id
from graphagent.testing.store_model import NASTY, AnyCodec, History, plain_rows, random_history

Stores = Callable[[], AbstractAsyncContextManager[CheckpointStore]]
CODEC = AnyCodec()


async def write(store: CheckpointStore, lease: Lease, rows: Sequence[Row], namespace: str = "", size: int = 1) -> int:
    """Append rows, `size` at a time; returns the encoded bytes."""
    total = 0
    for start in range(0, len(rows), size):
        total += await store.append(lease, namespace, rows[start : start + size], CODEC)
    return total


def need_persistent(store: CheckpointStore) -> None:
    """Skip a case that needs two handles on one database."""
    if not store.persistent:
        raise unittest.SkipTest("the store lives in one process and one object")


def bare(row: Row) -> Row:
    """A row as `load` returns it: its changes are in the state."""
    return replace(row, values={}, patches={}, lists={})


def assert_same(found: Any, expected: Any) -> None:
    """Equal, and of the same classes: `True` is not `1`."""
    assert repr(found) == repr(expected)
    assert found == expected


async def assert_loads(store: CheckpointStore, lineage: str, namespace: str, history: History) -> None:
    """Every row of a history loads with its state."""
    last = history.rows[-1].seq
    for row, state in zip(history.rows, history.states, strict=True):
        loaded = await store.load(lineage, namespace, row.seq, CODEC)
        assert loaded is not None
        assert loaded.row == bare(row)
        assert loaded.newest == (row.seq == last)
        assert_same(dict(sorted(loaded.values.items())), dict(sorted(state.items())))


async def refused(kind: type[Exception], call: Awaitable[Any]) -> str:
    """Assert that a call raises an error of that kind; returns its message."""
    try:
        await call
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


async def what_is_not_there_is_empty(stores: Stores) -> None:
    """An unknown lineage has no rows, frames, activations or effects, and asking for them makes none."""
    async with stores() as store:
        lineage = fresh_id()
        assert await store.load(lineage) is None
        assert await store.load(lineage, "child", 3) is None
        assert await store.history(lineage) == []
        assert await store.namespaces(lineage) == []
        assert await store.lineages(prefix=lineage) == []
        assert await store.activations(lineage, "", 0, CODEC) == {}
        assert await store.effects(lineage, "", 0) == []
        assert await store.delete(lineage) == 0


async def every_row_loads_with_its_state(stores: Stores) -> None:
    """Deltas, patches, list changes, snapshots and pointers over several levels fold to the state that was written."""
    for seed in range(4):
        history = random_history(seed, 50)
        lineage = fresh_id()
        async with stores() as store:
            lease = await store.acquire(lineage, "run-1")
            await write(store, lease, history.rows, size=1 + seed % 3)
            await store.release(lease)
            await assert_loads(store, lineage, "", history)


async def another_handle_loads_the_same(stores: Stores) -> None:
    """What one handle wrote, one that is opened afterwards loads."""
    history = random_history(11, 50)
    lineage = fresh_id()
    async with stores() as store:
        need_persistent(store)
        lease = await store.acquire(lineage, "run-1")
        await write(store, lease, history.rows)
        await store.release(lease)
    async with stores() as other:
        await assert_loads(other, lineage, "", history)


async def without_a_codec_values_are_plain_data(stores: Stores) -> None:
    """Any tool can look at any lineage: a persistent store loads plain JSON data if no codec is given."""
    history = random_history(5, 40)
    async with stores() as store:
        need_persistent(store)
        lease = await store.acquire(fresh_id(), "run-1")
        await write(store, lease, history.rows)
        loaded = await store.load(lease.lineage)
        assert loaded is not None
        json.dumps(loaded.values)
        assert loaded.values.keys() == history.states[-1].keys()
        assert CODEC.decode_part("data", loaded.values["data"]) == history.states[-1]["data"]


async def a_write_is_all_or_nothing(stores: Stores) -> None:
    """If one row of a call can't be encoded or has a number that is taken, none of the call's rows is there."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        rows = plain_rows(5)
        await write(store, lease, rows[:2])
        for bad in ([rows[2], rows[2]], [rows[2], rows[1]], [rows[1]]):
            changed = [replace(row, values={"count": -1}) for row in bad]
            await refused(SaveError, store.append(lease, "", changed, CODEC))
        if store.persistent:
            broken = [rows[2], replace(rows[3], values={"count": object()})]
            await refused(EncodeError, store.append(lease, "", broken, CODEC))
        assert [header.seq for header in await store.history(lease.lineage)] == [1, 0]
        loaded = await store.load(lease.lineage, codec=CODEC)
        assert loaded is not None
        assert loaded.values == {"count": 1, "log": [0, 1]}
        await write(store, lease, rows[2:])


async def frames_number_their_rows_by_themselves(stores: Stores) -> None:
    """Children that run side by side each count from 0 and don't see each other's rows."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        spaces = ["", "b/work", "a/work"]
        for seq in range(3):
            for namespace in spaces[: seq + 1]:
                await write(store, lease, plain_rows(1, start=seq), namespace)
        assert await store.namespaces(lease.lineage) == sorted(spaces)
        for place, namespace in enumerate(spaces):
            headers = await store.history(lease.lineage, namespace)
            assert [header.seq for header in headers] == list(range(2, place - 1, -1))


async def history_lists_headers_newest_first(stores: Stores) -> None:
    """Headers tell what the rows were written with; `limit` and `before` page through them."""
    history = random_history(7, 30)
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        await write(store, lease, history.rows)
        headers = await store.history(lease.lineage)
        for header, row in zip(headers, reversed(history.rows), strict=True):
            assert header.id == f"{lease.lineage}:{row.seq}"
            names = ("seq", "parent", "source", "step", "nodes", "created_at", "run_id", "fingerprint")
            assert [getattr(header, name) for name in names] == [getattr(row, name) for name in names]
        assert await store.history(lease.lineage, limit=4) == headers[:4]
        assert await store.history(lease.lineage, before=20) == headers[10:]
        assert await store.history(lease.lineage, before=20, limit=3) == headers[10:13]
        assert await store.history(lease.lineage, before=0) == []


async def lineages_are_found_by_prefix(stores: Stores) -> None:
    """Lineages with rows are listed in the order of code points; one that was only acquired isn't."""
    async with stores() as store:
        prefix = fresh_id()
        names = [f"{prefix}{end}" for end in ("b", "B", "_", "%", "ä", "a b")]
        for name in names:
            lease = await store.acquire(name, "run-1")
            await write(store, lease, plain_rows(1))
            await store.release(lease)
        await store.acquire(prefix + "empty", "run-1")
        assert await store.lineages(prefix=prefix) == sorted(names)
        assert await store.lineages(prefix=prefix, limit=2) == sorted(names)[:2]
        assert await store.lineages(prefix=prefix + "%") == [prefix + "%"]


async def any_text_round_trips(stores: Stores) -> None:
    """NUL, lone surrogates and quotes in values, list items, node names, prompts and notes come back as they were."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        row = replace(
            plain_rows(1)[0],
            nodes=NASTY,
            values={"text": list(NASTY)},
            patches={"data": {text: text for text in NASTY}},
            lists={"log": ListDelta(list(NASTY))},
            overlays={0: {"text": NASTY[1]}},
            note={"error": NASTY[2]},
            marking=[[text] for text in NASTY],
        )
        await write(store, lease, [row])
        loaded = await store.load(lease.lineage, codec=CODEC)
        assert loaded is not None
        assert loaded.row == bare(row)
        assert loaded.values == {
            "text": list(NASTY),
            "data": {text: text for text in NASTY},
            "log": list(NASTY),
        }
        assert (await store.history(lease.lineage))[0].nodes == NASTY


async def names_that_databases_refuse_are_refused(stores: Stores) -> None:
    """A lineage or namespace with a NUL or a lone surrogate is refused by all stores alike."""
    async with stores() as store:
        for name in ("a\0b", "\udc80"):
            await refused(CheckpointError, store.acquire(name, "run-1"))
            lease = await store.acquire(fresh_id(), "run-1")
            await refused(CheckpointError, store.append(lease, name, plain_rows(1), CODEC))


async def order_is_by_number_not_by_time(stores: Stores) -> None:
    """Rows that carry the same time, or times that run backwards, are accepted and stay in order."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        for row in plain_rows(50):
            row.created_at = 1000.0 - row.seq // 2
            await write(store, lease, [row])
            loaded = await store.load(lease.lineage, codec=CODEC)
            assert loaded is not None
            assert loaded.row.seq == row.seq
            assert loaded.values == {"count": row.seq, "log": list(range(row.seq + 1))}


async def sizes_steer_the_next_snapshot(stores: Stores) -> None:
    """A loaded row tells how many rows and bytes were folded; lists, which are never written again, don't count."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        rows = plain_rows(12)
        rows[4] = replace(rows[4], snap=4)
        rows[5:] = [replace(row, snap=4) for row in rows[5:]]
        sizes = [await write(store, lease, [row]) for row in rows]
        for row in rows:
            loaded = await store.load(lease.lineage, "", row.seq, CODEC)
            assert loaded is not None
            assert loaded.delta_rows == row.seq - row.snap
            assert loaded.snap_size == sizes[row.snap]
            assert loaded.delta_size == sum(sizes[row.snap + 1 : row.seq + 1])
        assert all(sizes) == store.persistent
        long = replace(plain_rows(1, start=12)[0], lists={"log": ListDelta(["x" * 10_000])})
        assert await write(store, lease, [long]) <= 2 * max(sizes)


async def activations_are_kept_until_their_step_ends(stores: Stores) -> None:
    """Finished activations of an open step are read back by position, replaced by later ones, removed by the step."""
    done = [
        ActivationRow(2, "work", {"count": 1, "text": NASTY[2]}, None, None, {"usage": 3}),
        ActivationRow(0, "plan", {}, ("a", "b"), (("work", {"item": (1, 2)}), ("work", {})), None),
        ActivationRow(1, "none", {}, (), (), None),
    ]
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        rows = plain_rows(4)
        await write(store, lease, rows[:2])
        await store.put_activations(lease, "", 1, done[:1], CODEC)
        await store.put_activations(lease, "", 1, [replace(done[0], node="old"), done[1], done[2]], CODEC)
        await store.put_activations(lease, "", 1, done[:1], CODEC)
        await store.put_activations(lease, "child", 1, done[1:], CODEC)
        found = await store.activations(lease.lineage, "", 1, CODEC)
        assert list(found) == [0, 1, 2]
        assert [found[row.position] for row in done] == done
        await store.append(lease, "", rows[2:], CODEC, closes=1)
        assert await store.activations(lease.lineage, "", 1, CODEC) == {}
        assert list(await store.activations(lease.lineage, "child", 1, CODEC)) == [0, 1]


async def activations_outlive_a_step_that_was_interrupted(stores: Stores) -> None:
    """Going back to an interrupt must find what had finished, so the step's end leaves its activations."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        rows = plain_rows(4)
        rows[1] = replace(rows[1], source="interrupt", base=0, values={}, lists={})
        await write(store, lease, rows[:1])
        await store.put_activations(lease, "", 0, [ActivationRow(0, "work", {"count": 1})], CODEC)
        await write(store, lease, rows[1:2])
        await store.append(lease, "", rows[2:3], CODEC, closes=0)
        assert list(await store.activations(lease.lineage, "", 0, CODEC)) == [0]
        other = await store.acquire(fresh_id(), "run-1")
        await write(store, other, rows[:1])
        await store.put_activations(other, "", 0, [ActivationRow(0, "work", {"count": 1})], CODEC)
        await store.append(other, "", rows[1:3], CODEC, closes=0)
        assert list(await store.activations(other.lineage, "", 0, CODEC)) == [0]


async def effects_are_claimed_then_committed(stores: Stores) -> None:
    """The ledger is keyed by base row, position, name and ordinal, and keeps the newest word on each."""
    async with stores() as store:
        lease = await store.acquire(fresh_id(), "run-1")
        await write(store, lease, plain_rows(2))
        keys = ((0, "pay", 0), (0, "pay", 1), (2, "mail\n", 0))
        claims = [EffectRow(1, *key, committed=False) for key in keys]
        for claim in claims:
            await store.claim_effect(lease, "", claim)
        await store.claim_effect(lease, "", EffectRow(0, 0, "pay", 0, False))
        assert await store.effects(lease.lineage, "", 1) == claims
        paid = replace(claims[1], committed=True, result={"receipt": [1, NASTY[1]]})
        await store.commit_effect(lease, "", paid)
        assert await store.effects(lease.lineage, "", 1) == [claims[0], paid, claims[2]]
        assert await store.effects(lease.lineage, "child", 1) == []


async def graphs_are_kept_by_fingerprint(stores: Stores) -> None:
    """A graph's document is read back as it was; the first one stays, whatever becomes of the rows it belongs to."""
    document = {"nodes": {text: {"kind": "fn", "description": text} for text in NASTY}, "order": list(NASTY)}
    async with stores() as store:
        print_ = fresh_id()
        assert await store.graph(print_) is None
        await store.save_graph(print_, document)
        await store.save_graph(print_, {"nodes": {}})
        await store.save_graph(fresh_id(), {"nodes": {}})
        lease = await store.acquire(fresh_id(), "run-1")
        await write(store, lease, [replace(row, fingerprint=print_) for row in plain_rows(2)])
        await store.delete(lease.lineage)
        assert_same(await store.graph(print_), document)
        await refused(CheckpointError, store.save_graph("a\0b", document))
        persistent = store.persistent
    if persistent:
        async with stores() as other:
            assert_same(await other.graph(print_), document)


CASES: tuple[Callable[[Stores], Awaitable[None]], ...] = (
    what_is_not_there_is_empty,
    every_row_loads_with_its_state,
    another_handle_loads_the_same,
    without_a_codec_values_are_plain_data,
    a_write_is_all_or_nothing,
    frames_number_their_rows_by_themselves,
    history_lists_headers_newest_first,
    lineages_are_found_by_prefix,
    any_text_round_trips,
    names_that_databases_refuse_are_refused,
    order_is_by_number_not_by_time,
    sizes_steer_the_next_snapshot,
    activations_are_kept_until_their_step_ends,
    activations_outlive_a_step_that_was_interrupted,
    effects_are_claimed_then_committed,
    graphs_are_kept_by_fingerprint,
)
