"""Two processes that resume the same lineages at the same moments; a fork server imports this."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import anyio

from graphagent import END, Executor, NodeContext, SqlCheckpoints, StateGraph
from graphagent.errors import LineageBusy
from graphagent.graph.compiled import CompiledGraph
from graphagent.testing.forks import Job, Meet
from support.graphs import Trail

PATIENCE = 20.0  # seconds


def graph(folder: Path) -> CompiledGraph:
    """A node that logs outside that it ran, and stays open until the other process was refused."""

    async def hold(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        with (folder / f"{ctx.lineage}.ran").open("a") as log:
            log.write(f"{os.getpid()}\n")
        with anyio.fail_after(PATIENCE):
            while not (folder / f"{ctx.lineage}.refused").exists():  # noqa: ASYNC110 - another process sets it
                await anyio.sleep(0.0005)
        return {"log": ["held"]}

    builder = StateGraph(Trail).add_node("hold", hold, interrupt_before=True)
    return builder.set_entry_point("hold").add_edge("hold", END).compile()


def prepare(job: Job) -> list[str]:
    """Runs that stand before their node."""

    async def runs() -> list[str]:
        async with SqlCheckpoints(job["url"]) as store:
            executor = Executor(graph(Path(job["folder"])), store)
            return [(await executor.run({}, lineage=lineage)).status for lineage in job["lineages"]]

    return anyio.run(runs)


def race(job: Job) -> list[str]:
    """Resume each lineage at the moment at which the other process does; what came of it."""
    folder, who = Path(job["folder"]), job["who"]

    async def resumes() -> list[str]:
        found = []
        async with SqlCheckpoints(job["url"]) as store:
            await store.lineages(limit=1)  # connects
            for lineage in job["lineages"]:
                executor = Executor(graph(folder), store)
                _meet(folder, lineage, who)
                try:
                    found.append((await executor.resume(lineage)).status)
                except LineageBusy:
                    found.append("busy")
                    (folder / f"{lineage}.refused").touch()
        return found

    return anyio.run(resumes)


def _meet(folder: Path, lineage: str, who: int) -> None:
    (folder / f"{lineage}.{who}").touch()
    other, deadline = folder / f"{lineage}.{1 - who}", time.monotonic() + PATIENCE
    while not other.exists():
        assert time.monotonic() < deadline, f"the other process did not come to {lineage}"
        time.sleep(0)


def work(job: Job, meet: Meet) -> Any:
    """`prepare` or `race`, as the job says."""
    if job["what"] == "prepare":
        return prepare(job)
    meet()
    return race(job)
