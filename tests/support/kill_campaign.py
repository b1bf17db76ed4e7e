"""The kill tests' campaigns: which points of which graphs are tried, and what counts as held."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graphagent.ids import fresh_id
from graphagent.testing.forks import ForkServer
from graphagent.testing.kills import Campaign, every_kill
from graphagent.testing.report import Report
from support.kill_graphs import read_log
from support.kill_oracle import misjudged

WORKER = "support.kill_worker:live"


@dataclass(frozen=True)
class Plan:
    """What is killed: at every point, or with `sample` at so many that are spread over the run."""

    server: ForkServer
    url: str
    folder: str
    graph: str
    engine: str = "superstep"
    sample: int | None = None

    @property
    def job(self) -> dict[str, Any]:
        return {"url": self.url, "folder": self.folder, "graph": self.graph, "engine": self.engine}

    def effects(self, lineage: str) -> list[str]:
        return read_log(self.folder, lineage)

    def same(self, state: dict[str, str]) -> dict[str, Any]:
        """States as they are compared: the eager engine appends in the order of completion."""
        if self.engine == "superstep":
            return state
        return {name: sorted(text) if name == "log" else text for name, text in state.items()}

    def points(self, count: int) -> Iterable[int]:
        if self.sample is None or self.sample >= count:
            return range(1, count + 1)
        rng = random.Random(f"{self.graph} {self.url.partition(':')[0]} {self.engine}")
        return sorted(rng.sample(range(1, count + 1), self.sample))


def killed_once(plan: Plan) -> Report:
    """Every point, or a sample."""
    return every_kill(plan.server, plan.job, effects=plan.effects, points=plan.points, same=plan.same)


def killed_twice(plan: Plan) -> Report:
    """The process that resumes is killed as well, a few points on."""
    rng = random.Random(plan.graph)
    return every_kill(
        plan.server,
        plan.job,
        effects=plan.effects,
        points=plan.points,
        again=lambda point: rng.randint(1, 25),
        same=plan.same,
    )


def killed_at_times(plan: Plan, count: int) -> Report:
    """At moments that are spread over the time a run takes, so also within a write."""
    campaign = Campaign(plan.server, plan.job, plan.effects, plan.same)
    first = campaign.life(fresh_id())
    expected = campaign.run_of(first, plan.effects(first.lineage))
    rng = random.Random(plan.graph)
    took = first.ended.result["seconds"]
    moments = [rng.uniform(0.01, 1.1) * took for _ in range(count)]
    return Report(tuple([campaign.trial(0, 0, expected, after=moment) for moment in moments]))


def problems(report: Report, *, exact: bool = True) -> list[str]:
    """Everything that did not hold. `exact`: the process was killed at a point, so the trace tells what was sent."""
    broken = [f"{trial.fault}: {trial.problem}" for trial in report.by("broken")]
    return broken + ([text for trial in report.trials if (text := misjudged(trial))] if exact else [])
