"""Kill a process with SIGKILL at every write and in between, go on in another one, and compare.

The user's worker runs in processes that `graphagent.testing.forks.ForkServer` forks:

```python
def worker(job, meet):                       # in a module that the server can import
    points = KillPoints.of(job)
    return one_life(lambda store: Executor(graph, store), points, job, answers={"approve": "yes"})

with ForkServer("my_tests.kills:worker") as server:
    report = every_kill(server, {"url": url, "folder": folder}, effects=read_log)
```

A program of one's own may be killed as well: `KillPoints.from_environment()` reads GRAPHAGENT_KILL_AT (a number from 1)
and GRAPHAGENT_KILL_TRACE (a file).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio

from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.checkpoint.store import CheckpointStore
from graphagent.engine.executor import Executor
from graphagent.errors import UsageError
from graphagent.graph.view import values_of
from graphagent.ids import fresh_id
from graphagent.testing.forks import Ended, ForkServer, Job
from graphagent.testing.lives import finish, unknown_effects
from graphagent.testing.report import Report, Run, Trial, judge
from graphagent.testing.store_proxy import Call, StoreProxy

T = TypeVar("T")
KILLED = "killed"
"""What a trace says where a process was killed."""


class KillPoints:
    """The points a process passes, counted from 1; at one of them it kills itself.

    `at`: the number of that point, 0 for none. `after`: seconds from now at which SIGALRM ends the process, wherever
    it is. `trace`: a file to which the name of each point is appended before anything happens there.
    """

    def __init__(self, at: int = 0, *, after: float = 0.0, trace: str | None = None) -> None:
        self.at = at
        self.count = 0
        self.began = time.monotonic()
        self._trace = None if trace is None else os.open(trace, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        if after > 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, after)

    @classmethod
    def of(cls, job: Job) -> KillPoints:
        """Those that a job of `every_kill` asks for."""
        return cls(job["kill"], after=job["after"], trace=job["trace"])

    @classmethod
    def from_environment(cls) -> KillPoints:
        """Those that GRAPHAGENT_KILL_AT and GRAPHAGENT_KILL_TRACE ask for."""
        return cls(int(os.environ.get("GRAPHAGENT_KILL_AT", "0")), trace=os.environ.get("GRAPHAGENT_KILL_TRACE"))

    def reach(self, name: str) -> None:
        """Pass a point; nodes and effects may have points of their own."""
        self.count += 1
        if self._trace is not None:
            os.write(self._trace, f"{name}\n".encode())
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


class KillingStore(StoreProxy):
    """A store with a point before and a point after each write: `before append root/3 step`."""

    def __init__(self, inner: CheckpointStore, points: KillPoints) -> None:
        super().__init__(inner)
        self.points = points

    async def writing(self, what: str, call: Call[T]) -> T:
        """Write between two points."""
        self.points.reach(f"before {what}")
        result = await call()
        self.points.reach(f"after {what}")
        return result


def one_life(
    make_executor: Callable[[CheckpointStore], Executor],
    points: KillPoints,
    job: Job,
    *,
    input: Any = None,
    answers: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a worker does: open the store, go on from where the last process came to, and say how it ended.

    The state is told as the text of its values.
    """

    async def live() -> dict[str, Any]:
        async with SqlCheckpoints(job["url"]) as store:
            executor = make_executor(KillingStore(store, points))
            result = await finish(executor, job["lineage"], input, answers or {})
        return {
            "status": "unknown" if unknown_effects(result.error) else result.status,
            "reason": f"{result.status}: {result.reason}",
            "state": {name: repr(value) for name, value in values_of(result.state).items()},
            "points": points.count,
            "seconds": time.monotonic() - points.began,
        }

    return anyio.run(live)


def every_kill(
    server: ForkServer,
    job: Job,
    *,
    effects: Callable[[str], Sequence[str]],
    points: Callable[[int], Iterable[int]] = lambda count: range(1, count + 1),
    again: Callable[[int], int] = lambda point: 0,
    same: Callable[[Any], Any] = lambda state: state,
) -> Report:
    """Kill a run at its points, one after the other; let another process end it each time, and compare.

    `job` has the `url` of the store and a `folder` for traces, and whatever else the worker wants; the worker also
    gets `lineage`, `kill`, `after` and `trace`. `effects(lineage)`: lines of what was done outside. `points` selects
    among as many points as the undisturbed run has. `again(point)`: the point at which the second process is killed
    as well, 0 for none; a third one then ends the run. `same` makes states comparable. Raises UsageError if the
    undisturbed run doesn't complete.
    """
    campaign = Campaign(server, job, effects, same)
    first = campaign.life(fresh_id())
    expected = campaign.run_of(first, effects(first.lineage))
    if expected.status != "completed":
        raise UsageError(f"the run to compare with must complete, and ended '{expected.reason}'; mend that first")
    chosen = points(first.ended.result["points"])
    return Report(tuple([campaign.trial(point, again(point), expected) for point in chosen]))


@dataclass(frozen=True, slots=True)
class Life:
    """A process that has ended, and the points it passed."""

    lineage: str
    ended: Ended
    trace: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Campaign:
    """What all trials of `every_kill` have in common."""

    server: ForkServer
    job: Job
    effects: Callable[[str], Sequence[str]]
    same: Callable[[Any], Any] = lambda state: state

    def life(self, lineage: str, kill: int = 0, after: float = 0.0) -> Life:
        """One process. `kill`, `after`: see KillPoints."""
        trace = Path(self.job["folder"]) / f"{lineage}.trace"
        trace.unlink(missing_ok=True)
        told = {"lineage": lineage, "kill": kill, "after": after, "trace": str(trace)}
        (ended,) = self.server.run({**self.job, **told})
        lines = trace.read_text().splitlines() if trace.exists() else []
        return Life(lineage, ended, tuple(lines))

    def trial(self, point: int, second: int, expected: Run, after: float = 0.0) -> Trial:
        """Kill one run, perhaps twice, and have it ended."""
        lineage = fresh_id()
        first = self.life(lineage, point, after)
        what = first.trace[-1] if first.trace else "nothing"
        fault = f"killed after {after:.4f} s ({what})" if after else f"killed at point {point} ({what})"
        trace = first.trace
        last = first
        if first.ended.code < 0:
            trace = (*trace, KILLED)
            if second:
                other = self.life(lineage, second)
                fault += f", then at point {second} ({other.trace[-1] if other.trace else 'nothing'})"
                trace = (*trace, *other.trace, KILLED)
            last = self.life(lineage)
            trace = (*trace, *last.trace)
        return judge(fault, self.run_of(last, self.effects(lineage)), expected, trace)

    def run_of(self, life: Life, effects: Sequence[str]) -> Run:
        """How a life ended."""
        result = life.ended.result
        if life.ended.code != 0:
            return Run("killed", f"killed by signal {-life.ended.code}", None, effects)
        return Run(result["status"], result["reason"], self.same(result["state"]), effects)
