"""`kill -9` at the writes of a run and in between: another process ends the run as if nothing had been.

The sample takes some seconds; GRAPHAGENT_KILL_ALL=1 tries every point (`python -m tests.tools.kill_report` as well).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kill_campaign import WORKER, Plan, killed_at_times, killed_once, killed_twice, problems
from support.kill_oracle import open_claims, run_again

from graphagent.testing.forks import ForkServer
from graphagent.testing.kills import KILLED
from graphagent.testing.report import Report

pytestmark = pytest.mark.kill
ALL = bool(os.environ.get("GRAPHAGENT_KILL_ALL"))
GRAPHS = ["demo", *map(str, range(10))]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """A process that has imported everything, to fork those that are killed."""
    with ForkServer(WORKER) as server:
        yield server


def plan(server: ForkServer, database: str, folder: Path, graph: str, sample: int, engine: str = "superstep") -> Plan:
    """What a test kills: a sample of the points, or all."""
    return Plan(server, database, str(folder), graph, engine, None if ALL else sample)


def assert_held(name: str, report: Report, *, exact: bool = True) -> None:
    """All trials held, and verdicts of unknown outcomes are right."""
    print(f"{name}: {report}")
    assert report.trials
    assert problems(report, exact=exact) == []


@pytest.mark.parametrize("graph", GRAPHS)
def test_c067_c071_killed_at_a_point(server: ForkServer, database: str, tmp_path: Path, graph: str) -> None:
    """Same final state; effects once; EffectUnknown exactly for unguarded effects that were open, and none twice."""
    assert_held(graph, killed_once(plan(server, database, tmp_path, graph, 8 if graph == "demo" else 2)))


@pytest.mark.parametrize("graph", ["demo", "8"])
def test_c067_killed_twice(server: ForkServer, database: str, tmp_path: Path, graph: str) -> None:
    """The same when the process that resumes is killed in its turn."""
    assert_held(graph, killed_twice(plan(server, database, tmp_path, graph, 2)))


@pytest.mark.parametrize("graph", ["demo", "0"])
def test_c067_killed_at_a_moment(server: ForkServer, database: str, tmp_path: Path, graph: str) -> None:
    """The same when the process ends at some moment, within a write or not."""
    chosen = plan(server, database, tmp_path, graph, 3)
    assert_held(graph, killed_at_times(chosen, 200 if ALL else 3), exact=False)


@pytest.mark.parametrize("graph", ["demo", "5"])
def test_c067_killed_under_the_eager_engine(server: ForkServer, database: str, tmp_path: Path, graph: str) -> None:
    """The eager engine holds the same promise; only the order of its log is its own."""
    assert_held(graph, killed_once(plan(server, database, tmp_path, graph, 3, "eager")))


@pytest.mark.parametrize(
    ("trace", "left"),
    [
        (["before claim_effect r/0.0 bare-a.0", KILLED], []),
        (["before claim_effect r/0.0 bare-a.0", "after claim_effect r/0.0 bare-a.0", KILLED], ["claimed"]),
        (["before claim_effect r/0.0 bare-a.0", "before append r/1 step", KILLED], ["claiming"]),
        (["after claim_effect r/0.0 bare-a.0", "before commit_effect r/0.0 bare-a.0", KILLED], ["claimed"]),
        (["before commit_effect r/0.0 bare-a.0", "node ends b", KILLED], ["committing"]),
        (["before commit_effect r/0.0 bare-a.0", "after commit_effect r/0.0 bare-a.0", KILLED], []),
        (["after claim_effect r/0.0 idem-a.0", KILLED], []),
    ],
)
def test_the_oracle_reads_traces(trace: list[str], left: list[str]) -> None:
    """The oracle of unknown outcomes: only what is stored and unguarded is open, what was under way may be."""
    assert open_claims(trace) == left


def test_the_oracle_sees_what_ran_again() -> None:
    """An activation that began after it was kept is named; one that had not been kept may begin again."""
    trace = ["node begins root/1.0 a", "before put_activations root/1.0,2", KILLED, "node begins root/1.0 a"]
    assert run_again(trace) == []
    assert run_again([*trace, "after put_activations root/1.0,2", KILLED, "node begins root/1.2 c"]) == ["root/1.2 c"]
