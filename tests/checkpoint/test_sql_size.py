"""What a row costs on disk and in calls, against the same data in a plain table."""

from __future__ import annotations

import cProfile
import json
import pstats
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sql_help import CODEC, write

from graphagent.checkpoint.memory import MemoryCheckpoints
from graphagent.checkpoint.record import ListDelta, Row
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.testing.store_model import AnyCodec, plain_rows

pytestmark = pytest.mark.anyio
KEYS = [f"key-{number}" for number in range(300)]


def message_turn(row: Row) -> dict[str, Any]:
    """A message of 500 bytes every second step, a number on the others."""
    message = {"role": "ai", "content": "x" * 500}
    row.values = {"count": row.seq} if row.seq % 2 == 0 else {}
    row.lists = {} if row.seq % 2 == 0 else {"messages": ListDelta([message])}
    return {"count": row.seq} if row.seq % 2 == 0 else {"messages": message}


def one_key(row: Row) -> dict[str, Any]:
    """One of 300 keys of 100 bytes."""
    change = {KEYS[row.seq % 300]: f"{row.seq:0100}"}
    row.values, row.patches, row.lists = ({"data": {}}, {}, {}) if row.seq == 0 else ({}, {"data": change}, {})
    return change


def limit_bytes(path: Path, changes: list[dict[str, Any]]) -> int:
    """The size of a file with nothing but thread, step and the JSON of what changed."""
    file = sqlite3.connect(path)
    file.execute("CREATE TABLE t (thread TEXT, step INT, delta TEXT, PRIMARY KEY (thread, step)) WITHOUT ROWID")
    file.executemany("INSERT INTO t VALUES ('t', ?, ?)", [(step, json.dumps(c)) for step, c in enumerate(changes)])
    file.commit()
    file.execute("VACUUM")
    file.close()
    return path.stat().st_size


@pytest.mark.parametrize("shape", [message_turn, one_key])
async def test_rows_take_at_most_seven_tenths_more_than_the_bare_data(
    tmp_path: Path, shape: Callable[[Row], dict[str, Any]]
) -> None:
    """Names, order, marking and time of 2,000 rows cost less than 0.7 of what changed, whatever the shape."""
    names = {"run_id": "f" * 20, "fingerprint": "f" * 16, "marking": "agent", "nodes": ("agent",)}
    rows = [replace(row, **names) for row in plain_rows(2000)]
    changes = [shape(row) for row in rows]
    path = tmp_path / "checkpoints.db"
    async with SqlCheckpoints(str(path)) as store:
        lease = await store.acquire("f" * 20, "f" * 20)
        await write(store, lease, rows)
        await store.release(lease)
    assert path.stat().st_size <= 1.7 * limit_bytes(tmp_path / "limit.db", changes)


async def test_a_database_grows_on_a_line(tmp_path: Path) -> None:
    """Twice the turns, twice the bytes: a turn costs the same at the beginning and at the end."""
    sizes = []
    for length in (500, 1000, 2000):
        path = tmp_path / f"{length}.db"
        rows = plain_rows(length)
        for row in rows:
            message_turn(row)
        async with SqlCheckpoints(str(path)) as store:
            lease = await store.acquire("order-1", "run-1")
            await write(store, lease, rows)
            await store.release(lease)
        sizes.append(path.stat().st_size)
    first, second = (sizes[1] - sizes[0]) / 500, (sizes[2] - sizes[1]) / 1000
    assert first == pytest.approx(second, rel=0.1)


@pytest.mark.parametrize(("kind", "calls"), [("memory", 9), ("sqlite", 50)])
async def test_a_row_is_saved_in_few_calls(tmp_path: Path, kind: str, calls: int) -> None:
    """Function calls per saved row, which repeat where times don't; `normal` hands nothing to a thread."""
    store = MemoryCheckpoints() if kind == "memory" else SqlCheckpoints(str(tmp_path / "checkpoints.db"))
    async with store:
        lease = await store.acquire("order-1", "run-1")
        rows = plain_rows(201)
        await store.append(lease, "", rows[:1], CODEC)
        profile = cProfile.Profile()
        profile.enable()
        for row in rows[1:]:
            await store.append(lease, "", [row], PlainCodec())
        profile.disable()
        assert pstats.Stats(profile).total_calls // 200 <= calls  # type: ignore[attr-defined]
        await store.release(lease)


class PlainCodec(AnyCodec):
    """Takes values for plain data, so that only the store's own calls count."""

    def encode_part(self, field: str, part: Any) -> Any:
        """The value itself."""
        return part
