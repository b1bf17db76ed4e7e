"""What finished first leaves no mark: state, event order and checkpoint content are the same in every run."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Annotated, Any

import anyio
import pytest
from pydantic import BaseModel
from support.databases import postgres_schema

from graphagent import (
    END,
    Executor,
    MemoryCheckpoints,
    NodeContext,
    RunEvent,
    Send,
    SqlCheckpoints,
    StateGraph,
    add,
    append,
    merge,
    union,
)
from graphagent.graph.compiled import CompiledGraph
from graphagent.ids import fresh_id
from graphagent.testing.compare import LINEAGE, content, differences

pytestmark = pytest.mark.anyio
BRANCHES = 50
LONGEST = 0.003  # seconds that a branch sleeps at most
MODES = ("updates", "tasks", "checkpoints", "debug")
RUNS = {"memory": 20, "sqlite": 200, "postgres": 20}


class Gathered(BaseModel):
    log: Annotated[list[str], append] = []
    seen: Annotated[set[int], union] = set()
    by_name: Annotated[dict[str, int], merge] = {}
    total: Annotated[int, add] = 0
    item: int = 0
    last: str = ""


def graph() -> CompiledGraph:
    """25 plain branches and 25 Sends side by side, every tenth with an effect, and a join of all."""
    plain = [f"branch{i}" for i in range(BRANCHES // 2)]

    def branch(name: str, at: int) -> Any:
        async def node(state: Gathered, ctx: NodeContext) -> dict[str, Any]:
            number = at or state.item
            await anyio.sleep(random.random() * LONGEST)
            if number % 10 == 0:
                await ctx.step("look", lambda: number)
                await anyio.sleep(random.random() * LONGEST)
            drawn = ctx.random.random()  # differs by activation, not by run
            text = f"{name} {number} {drawn if at < 0 else ''}"
            return {"log": [text], "seen": {number}, "by_name": {"last": number}, "total": number}

        return node

    async def split(state: Gathered) -> list[Send]:
        return [Send("worker", {"item": i + 1}) for i in range(BRANCHES // 2)]

    builder = StateGraph(Gathered).add_node("start", lambda s: None, inline=True).set_entry_point("start", "split")
    builder.add_node("split", split, destinations=["worker"])
    for i, name in enumerate(plain):
        builder.add_node(name, branch(name, 100 + i)).add_edge("start", name)
    builder.add_node("worker", branch("worker", 0))
    builder.add_node("end", lambda s: {"last": s.log[-1]}, inline=True).add_join_edge([*plain, "worker"], "end")
    return builder.add_edge("end", END).compile()


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def kept(request: pytest.FixtureRequest, tmp_path: Any, anyio_backend: str) -> AsyncIterator[tuple[str, Any]]:
    """A store of each kind with its name."""
    if request.param == "memory":
        yield "memory", MemoryCheckpoints()
    elif request.param == "sqlite":
        async with SqlCheckpoints(f"{tmp_path}/determinism.db") as store:
            yield "sqlite", store
    else:
        with postgres_schema() as url:
            async with SqlCheckpoints(url) as store:
                yield "postgres", store


def told(event: RunEvent) -> tuple[Any, ...]:
    """An event without what names the run."""
    data = event.data
    if isinstance(data, dict) and str(data.get("id", "")).startswith(event.lineage):
        data = {**data, "id": data["id"].replace(event.lineage, LINEAGE)}
    place = (event.namespace, event.step, event.node, event.branch, event.activation)
    return (event.seq, event.mode, event.kind, *place, repr(data))


async def one_run(executor: Executor, store: Any) -> tuple[Gathered, list[tuple[Any, ...]], dict[str, Any]]:
    """State, events and stored content of one run."""
    lineage = fresh_id()
    async with executor.stream({}, lineage=lineage, modes=MODES, buffer=1000) as stream:
        events = [told(event) async for event in stream]
    assert stream.result is not None
    return stream.result.unwrap(), events, await content(store, lineage)


async def test_c073_c078_runs_differ_in_nothing(kept: tuple[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """200 runs of 50 branches that end in random order: same state, same events in the same order, same rows."""
    monkeypatch.setenv("GRAPHAGENT_DEBUG", "0")
    name, store = kept
    executor = Executor(graph(), store)
    state, events, rows = await one_run(executor, store)
    assert len(state.log) == BRANCHES
    assert state.last.startswith("worker 25")
    for _ in range(RUNS[name] - 1):
        again = await one_run(executor, store)
        assert again[0] == state
        assert again[1] == events
        assert differences(again[2], rows) == []
