"""What the processes of the kill tests do; a fork server imports this once."""

from __future__ import annotations

import importlib
from typing import Any

from graphagent.testing.forks import Job, Meet
from graphagent.testing.kills import KillPoints, one_life
from support.kill_graphs import ANSWERS, PLACE, World, graph_named, make_executor

GRAPHS = ("demo", *map(str, range(10)))

for graph in GRAPHS:
    graph_named(graph)
for module in ("sqlalchemy", "sqlmodel", "alembic.command", "graphagent.checkpoint.sql.postgres"):
    importlib.import_module(module)


def live(job: Job, meet: Meet) -> dict[str, Any]:
    """One life of a run of the graph that the job names."""
    points = KillPoints.of(job)
    PLACE.world = World(f"{job['folder']}/{job['lineage']}.log", points)
    return one_life(
        lambda store: make_executor(job["graph"], job["engine"], store), points, job, input={}, answers=ANSWERS
    )
