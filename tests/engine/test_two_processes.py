"""Two processes that resume one lineage at the same moment: one runs it, the other is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphagent.ids import fresh_id
from graphagent.testing.forks import ForkServer

pytestmark = pytest.mark.kill
ROUNDS = 100


def test_c069_one_of_two_processes_runs_a_lineage(database: str, tmp_path: Path) -> None:
    """A hundred times: released together, exactly one runs the node, the other gets LineageBusy while it is open."""
    lineages = [f"r{i}-{fresh_id()}" for i in range(ROUNDS)]
    job = {"url": database, "folder": str(tmp_path), "lineages": lineages}
    with ForkServer("support.two_worker:work") as server:
        (prepared,) = server.run({**job, "what": "prepare"})
        assert prepared.result == ["interrupted"] * ROUNDS
        one, other = server.run({**job, "what": "race", "who": 0}, {**job, "what": "race", "who": 1})
    assert one.code == other.code == 0
    for lineage, *ends in zip(lineages, one.result, other.result, strict=True):
        assert sorted(ends) == ["busy", "completed"], lineage
        assert len((tmp_path / f"{lineage}.ran").read_text().splitlines()) == 1
    print(f"{ROUNDS} rounds, won by the first process {one.result.count('completed')} times")
