"""`kill -9` in the middle of an agent's turn: another process ends it, and nothing is done or paid for twice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphagent.ids import fresh_id
from graphagent.testing.forks import ForkServer

pytestmark = pytest.mark.kill
ALL = bool(os.environ.get("GRAPHAGENT_KILL_ALL"))


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """A process that has imported everything, to fork those that are killed."""
    with ForkServer("support.agent_worker:live") as server:
        yield server


class Turn:
    """A turn in processes of their own."""

    def __init__(self, server: ForkServer, url: str, folder: Path) -> None:
        self.server, self.url, self.folder = server, url, folder
        self.lineage = fresh_id()

    def life(self, kill: int = 0) -> Any:
        """One process; it is killed at that point, if there is one."""
        job = {"url": self.url, "folder": str(self.folder), "lineage": self.lineage}
        (ended,) = self.server.run(
            {**job, "kill": kill, "after": 0, "trace": str(self.folder / f"{self.lineage}.trace")}
        )
        return ended

    def read(self, kind: str) -> list[str]:
        """The lines of the log of what was done outside, or of the trace of points."""
        path = self.folder / f"{self.lineage}.{kind}"
        return path.read_text().splitlines() if path.exists() else []


def test_c067_c071_an_agents_turn_is_ended_by_another_process(
    server: ForkServer, database: str, tmp_path: Path
) -> None:
    """Killed at a point (a sample; GRAPHAGENT_KILL_ALL=1 tries every one), and resumed: the session is as if nothing
    had been. A bill is paid once; where the process died while one was being paid, the run says that it doesn't know
    instead of paying again. A model is asked again only if its answer had not been recorded."""
    whole = Turn(server, database, tmp_path)
    expected = whole.life().result
    trace, done = whole.read("trace"), whole.read("log")
    assert expected["error"] is None
    assert done == ["ask 1", "pay b0", "ask 3", "pay b1", "ask 5", "ask 6"]
    points = range(1, len(trace) + 1)
    for point in points if ALL else points[3::11]:
        turn = Turn(server, database, tmp_path)
        assert turn.life(point).code == -9
        result = turn.life().result
        told = Counter(turn.read("log"))
        where = f"killed at {point}: {trace[point - 1]}"
        assert result["ids"], where
        assert all(told[f"pay b{i}"] <= 1 for i in range(2)), where
        assert sum(told[line] - 1 for line in told if line.startswith("ask")) <= 1, where
        if result["error"] == "EffectUnknown":
            assert "call" in trace[point - 1] or "pay" in trace[point - 1], where
        else:
            assert {**result, "points": 0} == {**expected, "points": 0}, where
            assert set(told) == set(done), where


@pytest.mark.postgres
def test_killed_between_a_tool_call_and_the_next_model_call(
    server: ForkServer, shared_postgres_url: str, tmp_path: Path
) -> None:
    """On PostgreSQL, killed when the tool's result is recorded and before the model is asked again: the tool ran once,
    the model is asked what it would have been asked."""
    whole = Turn(server, shared_postgres_url, tmp_path)
    expected = whole.life().result
    point = whole.read("trace").index("before ask 3") + 1
    turn = Turn(server, shared_postgres_url, tmp_path)
    assert turn.life(point).code == -9
    assert turn.read("log") == ["ask 1", "pay b0"]
    result = turn.life().result
    assert turn.read("log") == ["ask 1", "pay b0", "ask 3", "pay b1", "ask 5", "ask 6"]
    assert result["texts"] == expected["texts"]
