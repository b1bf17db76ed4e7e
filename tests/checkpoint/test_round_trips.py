"""How often the stores go to the database: counts, which repeat where times don't; and what is read along."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel
from sql_help import CODEC, write

from graphagent import END, START, Executor, NodeContext, StateGraph
from graphagent.checkpoint.record import ActivationRow, EffectRow, ListDelta, Row
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.errors import LeaseLost, LineageBusy, LoadError
from graphagent.testing.store_model import plain_rows

pytestmark = pytest.mark.anyio


class Trips:
    """The statements that went to PostgreSQL since the last look; each is waited for."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def taken(self) -> int:
        """How many, and begin anew."""
        found, self.texts = len(self.texts), []
        return found


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Trips:
    """Counts what async connections of psycopg execute."""
    found = Trips()
    execute = psycopg.AsyncConnection.execute

    async def counted(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        found.texts.append(str(query))
        return await execute(self, query, *args, **options)

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", counted)
    return found


@pytest.mark.postgres
async def test_what_a_run_does_on_postgres_takes_one_round_trip_each(postgres_url: str, trips: Trips) -> None:
    """Taking a lineage takes one, with what is in it two; rows, also the first of a run, a claim, a result, a kept
    activation, a look into the ledger and giving the lineage back take one each: no BEGIN, no COMMIT, no look ahead."""
    async with SqlCheckpoints(postgres_url) as store:
        trips.taken()
        lease, read = await store.begin("order-1", "run-1")
        assert (read(CODEC), trips.taken()) == (None, 2)
        first, *more = plain_rows(4)
        for row in (first, *more[:2]):
            await store.append(lease, "", [row], CODEC)
            assert trips.taken() == 1
        await store.claim_effect(lease, "", EffectRow(2, 0, "pay", 0, False))
        await store.commit_effect(lease, "", EffectRow(2, 0, "pay", 0, True, "paid"))
        await store.put_activations(lease, "", 2, [ActivationRow(0, "work")], CODEC)
        assert trips.taken() == 3
        assert [effect.result for effect in await store.effects("order-1", "", 2)] == ["paid"]
        assert list(await store.activations("order-1", "", 2, CODEC)) == [0]
        assert len(await store.history("order-1", limit=1)) == 1
        assert trips.taken() == 3
        await store.append(lease, "", more[2:], CODEC, closes=2, release=True)
        assert trips.taken() == 1
        lease = await store.acquire("order-1", "run-2")
        await store.release(lease)
        assert trips.taken() == 2
        lease, read = await store.begin("order-1", "run-3")
        loaded = read(CODEC)
        assert loaded is not None
        assert (loaded.row.seq, loaded.values, trips.taken()) == (3, {"count": 3, "log": [0, 1, 2, 3]}, 2)
        await store.append(lease, "", [plain_rows(5)[4]], CODEC, release=True)
        assert trips.taken() == 1


class Answered(BaseModel):
    """A number that grows, and an answer."""

    x: int = 0
    answer: str = ""


async def _more(state: Answered) -> dict[str, int]:
    return {"x": state.x + 1}


async def _ask(state: Answered, ctx: NodeContext) -> dict[str, str]:
    return {"answer": await ctx.interrupt("ok", "ok?", str)}


async def test_a_question_and_its_answer_take_few_statements_on_sqlite(tmp_path: Path) -> None:
    """A run to its question and the resume to its end: eight transactions, thirty statements, BEGIN and COMMIT
    included. Each names what it is for, so that one more is noticed."""
    graph = StateGraph(Answered).add_node("a", _more).add_node("ask", _ask).add_node("c", _more)
    for source, target in ((START, "a"), ("a", "ask"), ("ask", "c"), ("c", END)):
        graph.add_edge(source, target)
    statements: list[str] = []
    async with SqlCheckpoints(str(tmp_path / "checkpoints.db")) as store:
        executor = Executor(graph.compile(), checkpoints=store)
        await executor.run({"x": 0}, lineage="first")  # the graph's document is kept once
        store._driver._opened().set_trace_callback(statements.append)  # type: ignore[attr-defined]
        await executor.run({"x": 0}, lineage="order-1")
        result = await executor.resume("order-1", {"ok": "yes"})
    assert (result.status, result.state.x, result.state.answer) == ("completed", 2, "yes")
    begun = sum(text.startswith("BEGIN") for text in statements)
    assert (begun, sum(text == "COMMIT" for text in statements)) == (6, 6)
    assert len(statements) <= 30, "\n".join(statements)


async def _fill(store: SqlCheckpoints) -> None:
    """Lineages of all shapes: short, long, gone on from an older row, stopped in the middle of a step."""
    branched = plain_rows(4)
    branched.append(Row(4, 1, "fork", 2, 4, 4, 4, "work", pointer=1, values={"count": 1}))
    branched.append(Row(5, 4, "step", 3, 5, 4, 4, "work", lists={"log": ListDelta([9])}))
    stopped = [*plain_rows(2), Row(2, 1, "interrupt", 2, 1, 0, 0, "work")]
    for name, rows in (
        ("short", plain_rows(3)),
        ("long", plain_rows(700)),
        ("branched", branched),
        ("stopped", stopped),
    ):
        lease = await store.acquire(name, "run-1")
        await store.append(lease, "", rows, CODEC)
        if rows is stopped:
            await store.put_activations(lease, "", 1, [ActivationRow(0, "work"), ActivationRow(2, "work")], CODEC)
        await store.release(lease)


@pytest.mark.parametrize("lineage", ["short", "long", "branched", "stopped"])
async def test_what_is_read_with_the_lease_is_what_load_says(url: str, lineage: str) -> None:
    """Of the newest row and of older ones; beside a row at which a step stopped stand its activations."""
    async with SqlCheckpoints(url) as store:
        await _fill(store)
        assert len(await store.history(lineage)) == {"short": 3, "long": 700, "branched": 6, "stopped": 3}[lineage]
        for seq in (None, 0, 1, 2):
            lease, read = await store.begin(lineage, "run-2", "", seq)
            with pytest.raises(LineageBusy):
                await store.begin(lineage, "run-3", "", seq)
            for codec in (CODEC, None):
                found, expected = read(codec), await store.load(lineage, "", seq, codec)
                assert found is not None
                assert expected is not None
                assert replace(found, finished=None) == replace(expected, finished=None)
                assert (found.finished is None) == (found.row.source != "interrupt")
                if found.finished is not None:
                    assert found.finished(CODEC) == await store.activations(lineage, "", found.row.base, CODEC)
                    assert list(found.finished(CODEC)) == [0, 2]
            await store.release(lease)


async def test_a_lineage_whose_row_is_damaged_is_not_left_held(url: str) -> None:
    """The error comes when the lineage is taken; the lineage is free then."""
    async with SqlCheckpoints(url) as store:
        lease = await store.acquire("order-1", "run-1")
        await write(store, lease, plain_rows(2))
        await store.release(lease)
        _damage(url)
        with pytest.raises(LoadError):
            await store.begin("order-1", "run-2")
        await store.release(await store.acquire("order-1", "run-3"))


def _damage(url: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.execute("UPDATE ga_rows SET delta = x'5b7b'")
            file.commit()
    else:
        with psycopg.connect(url) as server:
            server.execute(r"UPDATE ga_rows SET delta = '\x5b7b'")


async def test_nothing_is_written_beside_rows_once_the_lease_is_gone(url: str) -> None:
    """A claim, a result and an activation of a run that was taken over leave no trace, though it remembers all keys."""
    async with SqlCheckpoints(url) as store:
        lease = await store.acquire("order-1", "run-1")
        await write(store, lease, plain_rows(1))
        await store.release(lease)
        other = await store.acquire("order-1", "run-2")
        with pytest.raises(LeaseLost):
            await store.claim_effect(lease, "", EffectRow(0, 0, "pay", 0, False))
        with pytest.raises(LeaseLost):
            await store.commit_effect(lease, "", EffectRow(0, 0, "pay", 0, True, "paid"))
        with pytest.raises(LeaseLost):
            await store.put_activations(lease, "", 0, [ActivationRow(0, "work")], CODEC)
        with pytest.raises(LeaseLost):
            await store.append(lease, "", [plain_rows(2)[1]], CODEC)
        assert await store.effects("order-1", "", 0) == []
        assert await store.activations("order-1", "", 0, CODEC) == {}
        assert len(await store.history("order-1")) == 1
        await store.release(other)
