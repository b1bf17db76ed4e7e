"""Processes to kill: the fork server, kill points, and a program that is killed by its environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphagent.testing.forks import ForkServer
from graphagent.testing.kills import KillPoints

pytestmark = pytest.mark.kill


def work(job: Any, meet: Any) -> Any:
    """Does what the job says."""
    if job["do"] == "fail":
        raise ValueError("it broke")
    if job["do"] == "meet":
        Path(job["here"]).touch()
        meet()
        return [Path(path).exists() for path in job["there"]]
    points = KillPoints(job["at"], after=job.get("after", 0), trace=job.get("trace"))
    for number in range(5):
        points.reach(f"point {number}")
    while job["do"] == "hang":
        pass
    print("not for the server's stdout")
    return {"count": points.count, "pid": os.getpid()}


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """A server that forks workers of this module."""
    with ForkServer(f"{__name__}:work") as server:
        yield server


def test_every_job_has_a_process_of_its_own(server: ForkServer) -> None:
    """Results come back in the order of the jobs, from processes with different ids."""
    one, other = server.run({"do": "pass", "at": 0}, {"do": "pass", "at": 0})
    assert one.code == other.code == 0
    assert one.result["count"] == 5
    assert len({one.result["pid"], other.result["pid"], os.getpid()}) == 3


def test_a_process_kills_itself_at_its_point(server: ForkServer, tmp_path: Path) -> None:
    """It gets no further than the point, which is the last line of its trace."""
    trace = tmp_path / "trace"
    (ended,) = server.run({"do": "pass", "at": 3, "trace": str(trace)})
    assert ended == (-signal.SIGKILL, None)
    assert trace.read_text() == "point 0\npoint 1\npoint 2\n"


def test_a_process_ends_at_a_moment(server: ForkServer) -> None:
    """The timer ends a process that is busy."""
    (ended,) = server.run({"do": "hang", "at": 0, "after": 0.01})
    assert ended.code == -signal.SIGALRM


def test_processes_meet(server: ForkServer, tmp_path: Path) -> None:
    """Nobody gets past `meet` before all have come; one that dies on the way doesn't hold the others up."""
    files = [str(tmp_path / name) for name in "abc"]
    ends = server.run(*({"do": "meet", "here": here, "there": files} for here in files), {"do": "pass", "at": 1})
    assert [ended.result for ended in ends] == [[True, True, True]] * 3 + [None]


def test_an_error_of_a_worker_is_raised(server: ForkServer) -> None:
    """With the job and the worker's traceback; the server goes on."""
    with pytest.raises(RuntimeError, match=r"(?s)a worker failed at .*'do': 'fail'.*it broke"):
        server.run({"do": "fail"})
    assert server.run({"do": "pass", "at": 0})[0].code == 0


def test_a_program_is_killed_by_its_environment(tmp_path: Path) -> None:
    """GRAPHAGENT_KILL_AT and GRAPHAGENT_KILL_TRACE reach any program that asks for them."""
    program = (
        "from graphagent.testing.kills import KillPoints\n"
        "points = KillPoints.from_environment()\n"
        "for i in range(9): points.reach(str(i))"
    )
    told = {"GRAPHAGENT_KILL_AT": "2", "GRAPHAGENT_KILL_TRACE": str(tmp_path / "trace")}
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **told})
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "trace").read_text() == "0\n1\n"
