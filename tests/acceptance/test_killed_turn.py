"""`kill -9` in the middle of a conversation: another process goes on, and nothing is lost or done twice.

A sample takes some seconds; GRAPHAGENT_KILL_ALL=1 kills at every point.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphagent.ids import fresh_id
from graphagent.testing.forks import ForkServer
from graphagent.testing.kills import KILLED, every_kill
from graphagent.testing.report import Report

pytestmark = pytest.mark.kill
STRIDE = 1 if os.environ.get("GRAPHAGENT_KILL_ALL") else 11


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """A process that has imported everything, to fork those that are killed."""
    with ForkServer("support.turn_worker:live") as server:
        yield server


def killed(server: ForkServer, job: dict[str, Any], points: Callable[[int], Iterable[int]]) -> Report:
    """The turns, killed at points."""

    def effects(lineage: str) -> Sequence[str]:
        path = Path(job["folder"]) / f"{lineage}.log"
        return path.read_text().splitlines() if path.exists() else []

    return every_kill(server, job, effects=effects, points=points)


def open_call(trace: Iterable[str]) -> bool | None:
    """Whether a tool had begun and its outcome was not known when the process was killed; None if there is no telling:
    another tool's record was on its way to the store."""
    begun: set[str] = set()
    flying: set[str] = set()
    last = None
    for point in trace:
        if point == KILLED:
            flying.discard(last or "")  # the point that it was killed before
            break
        found = re.match(r"(before|after) (claim|commit)_effect .*:(pay|note):", point)
        last = found[3] if found is not None and found[1] == "before" else None
        if last is not None:
            flying.add(last)
        elif found is not None:
            flying.discard(found[3])
            (begun.add if found[2] == "claim" else begun.discard)(found[3])
    return None if flying else bool(begun)


def assert_held(report: Report) -> None:
    """Same events, each once, same effects, each once; a person is asked exactly where a tool's outcome is unknown."""
    print(report)
    assert report.trials
    broken = [trial for trial in report.trials if trial.verdict == "broken"]
    assert [(trial.fault, trial.problem) for trial in broken] == []
    told = [(open_call(trial.trace), trial) for trial in report.trials]
    assert [trial.fault for known, trial in told if known not in (None, trial.verdict == "unknown")] == []
    assert sum(known is None for known, _ in told) <= len(told) // 4


def test_killed_at_a_point(server: ForkServer, database: str, tmp_path: Path) -> None:
    """Two turns with a tool and an agent as a tool: wherever the process is killed, another one ends them as if nothing
    had been. It goes on without new words, also where the person's were stored and no run had begun."""
    job = {"url": database, "folder": str(tmp_path)}
    assert_held(killed(server, job, lambda count: range(2, count + 1, STRIDE)))


def test_killed_between_a_tool_call_and_the_next_model_call(server: ForkServer, database: str, tmp_path: Path) -> None:
    """Killed at every point between a tool and the next call of the model: the tool ran once."""
    job = {"url": database, "folder": str(tmp_path)}
    names = points_of(server, job)
    first = names.index("effect ends note") + 2
    last = next(place for place, name in enumerate(names) if name == "model bot" and place > first)
    report = killed(server, job, lambda count: range(first + 1, last + 2, max(1, STRIDE // 4)))
    assert_held(report)
    assert all(trial.verdict == "held" for trial in report.trials)


def points_of(server: ForkServer, job: dict[str, Any]) -> list[str]:
    """The names of the points, in order."""
    trace = Path(job["folder"]) / "names"
    [ended] = server.run({**job, "lineage": fresh_id(), "kill": 0, "after": 0.0, "trace": str(trace)})
    assert ended.result["status"] == "completed"
    return trace.read_text().splitlines()


def test_the_oracle_reads_traces() -> None:
    """A tool is open from its claim to its commit."""
    claim, commit = "after claim_effect bot/1.0 0:pay:c/call.0", "after commit_effect bot/1.0 0:pay:c/call.0"
    assert open_call([claim, KILLED, commit])
    assert not open_call([claim, commit, KILLED])
    before = "before claim_effect bot/1.0 0:pay:c/call.0"
    assert open_call([before, KILLED, claim]) is False
    assert open_call([before, "before append bot/3 step", KILLED]) is None
