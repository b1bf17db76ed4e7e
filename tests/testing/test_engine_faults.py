"""The engine under faults of its store: nothing is lost, done twice, or reported as something else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.graphs import Trail, flow
from support.kill_graphs import ANSWERS, PLACE, World, make_executor, read_log

from graphagent import Executor, MemoryCheckpoints, NodeContext, RetryPolicy
from graphagent.errors import EffectUnknown, InterruptedRunError, NodeError, SaveError
from graphagent.testing.faults import KINDS, FaultyStore, every_write
from graphagent.testing.kills import KillPoints
from graphagent.testing.lives import unknown_effects

pytestmark = pytest.mark.anyio


@pytest.fixture
def effects(tmp_path: Path) -> Iterator[Any]:
    """The log of a world outside, in which the nodes of the kill graphs act."""
    PLACE.world = World(f"{tmp_path}/all.log", KillPoints())
    yield lambda: read_log(str(tmp_path), "all")
    PLACE.world = None


def unordered(state: dict[str, Any]) -> dict[str, Any]:
    """The eager engine appends in the order of completion."""
    return {**state, "log": sorted(state["log"])}


@pytest.mark.parametrize("graph", ["demo", "7"])
@pytest.mark.parametrize("kind", KINDS)
async def test_c067_every_kind_of_fault_at_every_write(graph: str, kind: Any, engine: Any, effects: Any) -> None:
    """Crashes, failed writes, lost replies and delays change neither the final state nor what was done outside."""
    report = await every_write(
        lambda store: make_executor(graph, engine, store),
        {},
        answers=ANSWERS,
        kinds=[kind],
        effects=effects,
        same=unordered if engine == "eager" else dict,
    )
    report.check(unknown=True)
    assert kind != "delay" or not report.by("unknown")


def last_release(writes: list[str]) -> int:
    """The number of the write that gives the lineage back."""
    return max(number for number, what in enumerate(writes, 1) if what == "release")


async def failing(state: Trail) -> None:
    """A node that fails."""
    raise ValueError("no")


async def test_a_release_that_fails_does_not_hide_how_the_run_ended(engine: Any) -> None:
    """The result is that of the run; the lineage that could not be given back is a warning."""
    graph = flow("START -> a -> b -> END", b=failing).compile()
    counting = FaultyStore(MemoryCheckpoints())
    await Executor(graph, counting, engine).run({}, lineage="a")
    store = FaultyStore(MemoryCheckpoints(), at=last_release(counting.writes), kind="fail")
    result = await Executor(graph, store, engine).run({}, lineage="a")
    assert result.status == "failed"
    assert isinstance(result.error, NodeError)
    assert "could not be given back" in " ".join(result.warnings)


async def test_a_release_that_fails_does_not_hide_misuse(engine: Any) -> None:
    """The error of a refused run is not replaced by that of the release."""
    inner = MemoryCheckpoints()
    graph = flow("START -> a -> END", a=failing).compile()
    await Executor(graph, inner, engine).run({}, lineage="a")
    store = FaultyStore(inner, at=2, kind="fail")
    with pytest.raises(InterruptedRunError):
        await Executor(graph, store, engine).run({}, lineage="a")
    assert store.writes == ["acquire", "release"]


@pytest.mark.parametrize(("kind", "status"), [("fail", "failed"), ("lost", "completed")])
async def test_c071_a_retry_after_a_failed_commit_looks_at_the_ledger(kind: Any, status: str, engine: Any) -> None:
    """A commit whose reply was lost counts as made; one that was not made leaves the outcome unknown, never twice."""
    sent: list[str] = []

    async def send(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        await ctx.step("mail", lambda: sent.append("parcel"))
        return {"log": ["sent"]}

    graph = flow("START -> send -> END", send=send).compile()
    counting = FaultyStore(MemoryCheckpoints())
    await Executor(graph, counting, engine).run({}, lineage="a")
    at = next(number for number, what in enumerate(counting.writes, 1) if what.startswith("commit_effect"))
    sent.clear()
    retry = RetryPolicy(max_attempts=3, initial=0.001, retry_on=(SaveError,))
    store = FaultyStore(MemoryCheckpoints(), at=at, kind=kind)
    result = await Executor(graph, store, engine, default_retry=retry).run({}, lineage="a")
    assert result.status == status
    assert sent == ["parcel"]
    assert [type(error) for error in unknown_effects(result.error)] == ([EffectUnknown] if kind == "fail" else [])
