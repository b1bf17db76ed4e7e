"""Fault reports about stores, replayed: growth, concurrency, leaks, nasty text."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import anyio
import psycopg
import pytest
from sql_help import CODEC, TABLES, environment, write

from graphagent.checkpoint.record import ActivationRow, EffectRow, ListDelta, Question, Retention, Row
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.checkpoint.store import Lease
from graphagent.errors import CheckpointError, LeaseLost, LoadError, SaveError, UsageError
from graphagent.testing.store_model import NASTY, plain_rows

pytestmark = pytest.mark.anyio


def count_rows(url: str) -> dict[str, int]:
    """Rows of every table."""
    queries = {table: f"SELECT count(*) FROM ga_{table}" for table in TABLES}
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            return {table: file.execute(query).fetchone()[0] for table, query in queries.items()}
    counts: dict[str, int] = {}
    with psycopg.connect(url) as server:
        for table, query in queries.items():
            row = server.execute(query.encode()).fetchone()
            assert row is not None
            counts[table] = row[0]
    return counts


def turns(length: int, snapshot_every: int) -> list[Row]:
    """A conversation: a message and a number each turn, a snapshot now and then."""
    rows = plain_rows(length)
    for row in rows:
        row.snap = row.seq - row.seq % snapshot_every
        row.values = {"count": row.seq, "topic": "x" * 100} if row.snap == row.seq else {"count": row.seq}
        row.lists = {"log": ListDelta([{"role": "ai", "content": f"turn {row.seq}"}])}
    return rows


async def test_c122_the_latest_state_is_read_in_the_same_time_at_any_length(url: str) -> None:
    """10, 1,000 and 10,000 checkpoints: the newest loads from as many rows, in single-digit milliseconds."""
    async with SqlCheckpoints(url) as store:
        best: dict[int, float] = {}
        for length in (10, 1000, 10_000):
            lease = await store.acquire(f"line-{length}", "run-1")
            rows = [replace(row, snap=row.seq - row.seq % 128, lists={}) for row in plain_rows(length)]
            for start in range(0, length, 500):
                await store.append(lease, "", rows[start : start + 500], CODEC)
            await store.release(lease)
            times = []
            for _ in range(15):
                started = time.perf_counter()
                loaded = await store.load(lease.lineage, codec=CODEC)
                times.append(time.perf_counter() - started)
                assert loaded is not None
                assert loaded.values == {"count": length - 1}
                assert loaded.delta_rows <= 128
            best[length] = min(times)
        assert best[10_000] < max(0.010, 2 * best[10])
        assert best[10_000] < 3 * best[10] + 0.002
        times = []
        for _ in range(5):
            started = time.perf_counter()
            assert len(await store.history("line-10000", limit=50)) == 50
            times.append(time.perf_counter() - started)
        assert min(times) < 0.05
        assert len(await store.history("line-10000")) == 10_000


@pytest.mark.parametrize("variant", ["plain", "pause", "fork", "child"])
async def test_c125_pruning_folds_what_later_rows_need(url: str, variant: str) -> None:
    """120 turns with a snapshot every 50, only the newest kept: it loads as before; so does what it refers to."""
    async with SqlCheckpoints(url) as store:
        lease = await store.acquire("order-1", "run-1")
        rows, kept, child = _conversation(variant)
        for row in rows:
            await write(store, lease, [row])
        await write(store, lease, turns(20, 50), "child")
        before = [await store.load("order-1", "", seq, CODEC) for seq in kept]
        asked = await store.load("order-1", "child", child, CODEC)
        report = await store.prune(Retention(keep_last=1), lineage="order-1")
        assert report.rows == len(rows) - len(kept) + (18 if variant == "child" else 19)
        assert report.bytes > 0
        assert [header.seq for header in await store.history("order-1")] == list(reversed(kept))
        for seq, old in zip(kept, before, strict=True):
            new = await store.load("order-1", "", seq, CODEC)
            assert old is not None
            assert new is not None
            assert new.values == old.values
            assert new.row.questions == old.row.questions
            assert new.row.pointer is None or new.row.pointer in kept
        new = await store.load("order-1", "child", child, CODEC)
        assert asked is not None
        assert new is not None
        assert new.values == asked.values


def _conversation(variant: str) -> tuple[list[Row], list[int], int]:
    """Rows, the seqs that stay, and the newest row of the child that is asked about."""
    rows = turns(120, 50)
    if variant in ("pause", "child"):
        child = 9 if variant == "child" else 19
        question = Question("q", "ok?", "work", 0, 0, frame=("child", 9) if variant == "child" else None)
        rows[-1] = replace(rows[-1], source="interrupt", base=118, values={}, lists={}, questions=(question,))
        return rows, [119], child
    if variant == "fork":
        fork = replace(rows[0], seq=120, parent=60, source="fork", base=120, snap=120, root=120, pointer=60)
        fork.values, fork.lists = {"count": 60, "topic": "x" * 100}, {}
        return [*rows, fork, replace(rows[0], seq=121, parent=120, base=121, snap=120, root=120)], [60, 121], 19
    return rows, [119], 19


async def test_c134_text_with_nul_is_kept_and_listed(url: str) -> None:
    """A user's message with U+0000 is saved, loaded and listed on both databases."""
    async with SqlCheckpoints(url) as store:
        lease = await store.acquire("order-1", "run-1")
        row = plain_rows(1)[0]
        row.values, row.lists = {"text": "a\0b"}, {"log": ListDelta([{"content": text} for text in NASTY])}
        row.nodes, row.note = ("no\0de",), "\0"
        await write(store, lease, [row])
        await store.claim_effect(lease, "", EffectRow(0, 0, "pay", 0, False, "\0"))
        loaded = await store.load("order-1", codec=CODEC)
        assert loaded is not None
        assert loaded.values == {"text": "a\0b", "log": [{"content": text} for text in NASTY]}
        assert loaded.row.note == "\0"
        assert (await store.history("order-1"))[0].nodes == ("no\0de",)


READER = """
import asyncio, sys, time
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.testing.store_model import AnyCodec

async def main(path):
    reads = 0
    async with SqlCheckpoints(path) as store:
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            for lineage in await store.lineages():
                headers = await store.history(lineage)
                loaded = await store.load(lineage, codec=AnyCodec())
                assert loaded.values["log"] == list(range(loaded.row.seq + 1))
                assert [h.seq for h in headers] == list(range(len(headers) - 1, -1, -1))
                reads += 1
    print(reads)

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("sync", ["normal", "full", "group"])
async def test_c142_one_process_reads_what_another_writes(tmp_path: Path, sync: str) -> None:
    """Two processes on one file, one streaming runs, one reading their history in a loop: neither sees an error."""
    path = str(tmp_path / "checkpoints.db")
    command = [sys.executable, "-c", READER, path]
    async with SqlCheckpoints(path, sync=sync) as store:  # type: ignore[arg-type]
        reader = subprocess.Popen(  # noqa: ASYNC220 - it starts while nothing else runs
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        written = 0
        while reader.poll() is None:
            lease = await store.acquire(f"order-{written // 100}", "run-1")
            await write(store, lease, plain_rows(1, start=written % 100))
            await store.release(lease)
            written += 1
        out, problem = reader.communicate()
        assert reader.returncode == 0, problem.decode()
        assert int(out) > 10
        assert written > 50
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_c148_rows_with_one_time_stamp_are_in_order(url: str) -> None:
    """Fifty rows written at a frozen time, read back between each: order and conflicts go by number, never by time."""
    async with SqlCheckpoints(url) as store:
        lease = await store.acquire("order-1", "run-1")
        for row in plain_rows(50, created_at=1.0):
            await write(store, lease, [row])
            seqs = [header.seq for header in await store.history("order-1")]
            assert seqs == list(range(row.seq, -1, -1))


async def test_c156_deletion_leaves_no_row_in_any_table(url: str) -> None:
    """Twenty steps with values of a megabyte, children, forks, effects, pins: all tables are empty after a deletion."""
    async with SqlCheckpoints(url) as store:
        lease = await store.acquire("order-1", "run-1")
        rows = [replace(row, values={"blob": "x" * 1_000_000}) for row in plain_rows(20)]
        rows[-1] = replace(rows[-1], source="fork", parent=3, snap=19, root=19, pointer=3)
        await write(store, lease, rows)
        await write(store, lease, rows[:3], "child")
        await store.put_activations(lease, "child", 2, [ActivationRow(0, "work", {"blob": "x" * 1000})], CODEC)
        await store.claim_effect(lease, "child", EffectRow(2, 0, "pay", 0, False))
        await store.pin("order-1", "", 4)
        assert all(count_rows(url).values())
        assert await store.delete("order-1") == 23
        assert count_rows(url) == dict.fromkeys(TABLES, 0)


async def test_pruning_forgets_runs_that_wrote_no_row_that_is_left(url: str) -> None:
    """A session with a run per turn doesn't keep a record of each run for ever."""
    async with SqlCheckpoints(url) as store:
        for turn in range(5):
            lease = await store.acquire("order-1", f"run-{turn}")
            await write(store, lease, [replace(row, run_id=f"run-{turn}") for row in plain_rows(2, start=2 * turn)])
            await store.release(lease)
        assert count_rows(url)["runs"] == 5
        await store.prune(Retention(keep_last=2))
        assert count_rows(url)["runs"] == 1
        assert [header.run_id for header in await store.history("order-1")] == ["run-4", "run-4"]


async def test_pruning_all_lineages_counts_them(url: str) -> None:
    """Without a lineage named, each one is pruned in a transaction of its own, and the report adds up."""
    async with SqlCheckpoints(url) as store:
        for name, length in (("a", 5), ("b", 1), ("c", 3)):
            lease = await store.acquire(name, "run-1")
            await write(store, lease, plain_rows(length))
            await store.release(lease)
        planned = await store.prune(Retention(keep_last=2), dry_run=True)
        report = await store.prune(Retention(keep_last=2))
        assert (planned.rows, planned.lineages) == (report.rows, report.lineages) == (4, 2)


async def test_concurrent_runs_share_a_commit(tmp_path: Path) -> None:
    """With `group` the rows of forty runs that end together are in a few commits; with `full` each has its own."""
    commits = {}
    for sync in ("full", "group"):
        async with SqlCheckpoints(str(tmp_path / f"{sync}.db"), sync=sync) as store:  # type: ignore[arg-type]
            leases = [await store.acquire(f"order-{place}", "run-1") for place in range(40)]
            traced: list[str] = []
            store._driver._written.set_trace_callback(traced.append)  # type: ignore[attr-defined]
            async with anyio.create_task_group() as tasks:
                for lease in leases:
                    tasks.start_soon(write, store, lease, plain_rows(5))
            store._driver._written.set_trace_callback(None)  # type: ignore[attr-defined]
            commits[sync] = traced.count("COMMIT")
            for lease in leases:
                assert len(await store.history(lease.lineage)) == 5
    assert commits["full"] == 200
    assert commits["group"] <= 50


async def test_one_bad_piece_does_not_spoil_a_shared_commit(tmp_path: Path) -> None:
    """In a group commit, a run that lost its lease fails alone."""
    async with SqlCheckpoints(str(tmp_path / "checkpoints.db"), sync="group") as store:
        leases = [await store.acquire(f"order-{place}", "run-1") for place in range(10)]
        await store.delete("order-3")
        results: dict[str, str] = {}

        async def run(lease: Lease) -> None:
            try:
                await write(store, lease, plain_rows(2))
                results[lease.lineage] = "saved"
            except LeaseLost:
                results[lease.lineage] = "lost"

        async with anyio.create_task_group() as tasks:
            for lease in leases:
                tasks.start_soon(run, lease)
        assert {name for name, result in results.items() if result == "lost"} == {"order-3"}
        assert len(await store.lineages()) == 9


async def test_an_acquire_that_is_given_up_holds_nothing(url: str) -> None:
    """Whenever the applicant is cancelled, before or after the answer was under way, the lineage is free."""
    async with SqlCheckpoints(url, sync="group") as store:
        await store.lineages()
        for delay in (0.0, 0.0002, 0.0005, 0.001, 0.002):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.acquire, "order-1", "run-1")
                await anyio.sleep(delay)
                tasks.cancel_scope.cancel()
            for lease in store._heartbeat.held():
                await store.release(lease)
            await store.release(await store.acquire("order-1", "run-2"))


@pytest.mark.parametrize("sync", ["normal", "full", "group"])
async def test_a_full_disk_is_a_typed_error(tmp_path: Path, sync: str) -> None:
    """The save that found no room fails whole; with room again, the run goes on where it was."""
    async with SqlCheckpoints(str(tmp_path / "checkpoints.db"), sync=sync) as store:  # type: ignore[arg-type]
        lease = await store.acquire("order-1", "run-1")
        await write(store, lease, plain_rows(1))
        file = store._driver._written or store._driver._connection  # type: ignore[attr-defined]
        pages = file.execute("PRAGMA page_count").fetchone()[0]
        file.execute(f"PRAGMA max_page_count = {pages + 1}")
        big = replace(plain_rows(1, start=1)[0], values={"count": "x" * 100_000})
        with pytest.raises(SaveError, match="could not be written: database or disk is full"):
            await write(store, lease, [big])
        with pytest.raises(SaveError, match="full"):
            await store.append(lease, "", [big, *plain_rows(1, start=2)], CODEC, closes=0, release=True)
        assert [header.seq for header in await store.history("order-1")] == [0]
        file.execute("PRAGMA max_page_count = 1000000")
        await write(store, lease, [big])
        await store.release(lease)


@pytest.mark.parametrize("sync", ["full", "group"])
def test_a_loop_may_end_before_its_answer_comes(tmp_path: Path, sync: str) -> None:
    """The writer thread outlives an event loop that gave up waiting; the next loop uses the same store."""
    path = tmp_path / "checkpoints.db"
    store = SqlCheckpoints(str(path), sync=sync)  # type: ignore[arg-type]

    async def save(seq: int, patience: float) -> None:
        lease = await store.acquire(f"order-{seq}", "run-1")
        with anyio.move_on_after(patience):
            await write(store, lease, plain_rows(1))

    anyio.run(save, 1, 60)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        anyio.run(_give_up, store)
        other.execute("ROLLBACK")
    anyio.run(save, 2, 60)
    assert anyio.run(store.lineages) == ["order-1", "order-2"]
    anyio.run(store.aclose)


async def _give_up(store: SqlCheckpoints) -> None:
    with anyio.move_on_after(0.05):
        await store.pin("order-1", "", 0)


async def test_damaged_rows_are_a_typed_error(tmp_path: Path) -> None:
    """Bytes that aren't what was written fail the load by name, not by accident."""
    path = tmp_path / "checkpoints.db"
    async with SqlCheckpoints(str(path)) as store:
        lease = await store.acquire("order-1", "run-1")
        await write(store, lease, plain_rows(2))
        with closing(sqlite3.connect(path)) as file:
            file.execute("UPDATE ga_rows SET delta = x'7b7b'")
            file.commit()
        with pytest.raises(LoadError, match="can't be read"):
            await store.load("order-1")


async def test_a_file_that_is_no_database_is_a_typed_error(tmp_path: Path) -> None:
    """The error names the file."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, and long enough to have a header of a hundred bytes. " * 4)
    with pytest.raises(CheckpointError, match=r"notes\.txt.*not a database"):
        await SqlCheckpoints(str(path)).lineages()


async def test_a_busy_file_is_a_typed_error(tmp_path: Path) -> None:
    """If another process holds the file for longer than `busy_timeout`, the error says so and names the option."""
    path = tmp_path / "checkpoints.db"
    async with SqlCheckpoints(str(path), busy_timeout=0.2) as store:
        lease = await store.acquire("order-1", "run-1")
        await write(store, lease, plain_rows(1))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(CheckpointError, match=r"locked.*0\.2 s: end it, or raise busy_timeout"):
                await write(store, lease, plain_rows(1, start=1))
            other.execute("ROLLBACK")
        await write(store, lease, plain_rows(1, start=1))


@pytest.mark.parametrize("sync", ["normal", "full", "group"])
async def test_a_closed_store_says_so(tmp_path: Path, sync: str) -> None:
    """Using a store after `aclose` is a typed error."""
    store = SqlCheckpoints(str(tmp_path / "checkpoints.db"), sync=sync)  # type: ignore[arg-type]
    await store.lineages()
    await store.aclose()
    for call in (store.lineages, lambda: store.acquire("order-1", "run-1")):
        with pytest.raises(CheckpointError, match="is closed; open a new one"):
            await call()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://file.db", "write 'sqlite:///file.db'"),
        ("mysql://host/db", "known: 'sqlite', 'postgresql'"),
        ("sqlite+aiosqlite:///x.db", "known: 'sqlite'"),
    ],
)
def test_urls_that_cannot_be_read_are_refused(url: str, words: str) -> None:
    """The error tells what to write."""
    with pytest.raises(UsageError, match=words):
        SqlCheckpoints(url)
    with pytest.raises(UsageError, match="known: 'normal', 'full', 'group'"):
        SqlCheckpoints("x.db", sync="fast")  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["sqlite://", ":memory:", "sqlite:///:memory:"])
async def test_sqlite_in_memory(url: str) -> None:
    """A database in memory has one connection, keeps its lease without a heartbeat, and is gone when it is closed."""
    async with SqlCheckpoints(url, sync="group", lease_ttl=0.1) as store:
        heard: list[str] = []
        lease = await store.acquire("order-1", "run-1", on_signal=heard.append)
        await write(store, lease, plain_rows(5))
        assert await store.request_cancel("order-1")
        assert heard == ["cancel"]
        assert (await store.prune(Retention(keep_last=1))).rows == 4
        loaded = await store.load("order-1", codec=CODEC)
        assert loaded is not None
        assert loaded.values == {"count": 4, "log": [0, 1, 2, 3, 4]}
    async with SqlCheckpoints(url) as other:
        assert await other.lineages() == []
