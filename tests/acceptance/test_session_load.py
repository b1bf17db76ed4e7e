"""Many conversations at once: no event is lost or doubled, no turn fails, and nothing stays in memory.

A small version of `python -m tests.tools.session_load`, which prints figures.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.databases import postgres_schema
from support.service_tables import query
from support.session_load import Load, World, held, load, lost_or_doubled, talk

from runner.runner import RunnerPolicy

pytestmark = pytest.mark.anyio

SMALL = RunnerPolicy(held_events=100)
"""What a Runner holds is there after the first wave."""


def assert_well(found: Load) -> None:
    """Nothing was lost or doubled, and all objects of the conversations are gone."""
    print(found)
    assert found.faults == ()
    assert abs(found.growth) < 0.02


async def test_on_sqlite(tmp_path: Path) -> None:
    """Twelve sessions with eight turns each, twice over."""
    assert_well(await load(f"sqlite:///{tmp_path}/load.db", sessions=12, turns=8, policy=SMALL))


@pytest.mark.postgres
async def test_on_postgres() -> None:
    """Thirty sessions with four turns each, twice over: more than there are connections."""
    with postgres_schema() as url:
        assert_well(await load(url, sessions=30, turns=4, policy=SMALL))


async def test_the_ledger_notices(tmp_path: Path) -> None:
    """A row that is gone or doubled behind the library's back is told of, so that a clean report means something."""
    url = f"sqlite:///{tmp_path}/load.db"
    world = World()
    async with held(url, world) as runner:
        for name in ("one", "two", "three"):
            await talk(runner, world, name, 2)
    assert lost_or_doubled(url, world, list(world.texts)) == []
    of = "FROM ga_events WHERE session = (SELECT id FROM ga_sessions WHERE name = '{}')"
    query(url, f"DELETE {of.format('one')} AND place = (SELECT max(place) {of.format('one')})")
    last = f"place = (SELECT max(place) {of.format('two')})"
    columns = "place + 1, session, said, 'x', at, shown, asked, body"
    query(url, f"INSERT INTO ga_events SELECT {columns} FROM ga_events WHERE {last}")
    faults = lost_or_doubled(url, world, list(world.texts))
    assert [fault.split(":")[0] for fault in faults] == ["one", "one", "two", "two"]
    assert "lost {'answer one 1': 1}" in faults[0]
    assert "doubled {'answer two 1': 1}" in faults[2]
