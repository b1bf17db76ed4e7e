"""A lone activation goes its own way, also with a listener: what is told is what the general way tells."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, SecretStr

from graphagent import END, Budget, Executor, RunEvent, StateGraph, add, append
from graphagent.engine import executor as executors
from graphagent.events import MODES
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio
MANY = Budget(steps=10**6)
"""A bound that is never met; a run that has one goes the general way."""


@pytest.fixture(autouse=True)
def no_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way that production takes; pytest turns the debug mode on, which has no lone ways."""
    monkeypatch.setattr(executors, "debug_enabled", lambda: False)


class Count(BaseModel):
    x: int = 0
    total: Annotated[int, add] = 0
    log: Annotated[list[str], append] = []
    secret: SecretStr = SecretStr("")
    bad: bool = False


async def _first(state: Count) -> dict[str, Any]:
    return {"x": state.x + 1, "log": ["first"], "secret": SecretStr("word")}


async def _second(state: Count) -> dict[str, Any]:
    if state.bad and state.x == 3:
        raise ValueError("as planned")
    return {"total": 2, "log": [], "x": state.x}


def loop(rounds: int) -> CompiledGraph:
    """A cycle of two nodes with a route."""
    graph = StateGraph(Count).add_node("first", _first).add_node("second", _second).set_entry_point("first")
    graph.add_edge("first", "second")
    return graph.add_conditional_edges("second", lambda s: "first" if s.x < rounds else END, ["first", END]).compile()


async def told(graph: CompiledGraph, given: dict[str, Any], **options: Any) -> AsyncIterator[tuple[Any, ...]]:
    """The events of a run, without what differs from run to run."""
    async with Executor(graph).stream(given, **options) as events:
        async for one in events:
            assert isinstance(one, RunEvent)
            yield one._replace(lineage="", run_id="")


@pytest.mark.parametrize("given", [{}, {"bad": True}], ids=["well", "failing"])
@pytest.mark.parametrize("buffer", [1, 3, 64])
@pytest.mark.parametrize("modes", [MODES, *((mode,) for mode in MODES)], ids="-".join)
async def test_both_ways_tell_the_same(given: dict[str, Any], buffer: int, modes: tuple[str, ...]) -> None:
    """Numbers, order and data of all events are the same, whatever modes are heard and how far the reader is behind."""
    graph = loop(150 if buffer == 64 else 5)
    lone = [one async for one in told(graph, given, modes=modes, buffer=buffer)]
    general = [one async for one in told(graph, given, modes=modes, buffer=buffer, budget=MANY)]
    assert lone == general
    assert [one.seq for one in lone] == list(range(len(lone)))


async def test_an_end_is_told_before_the_next_node_runs() -> None:
    """What a reader knows when a node begins: the end of the step before, and the start of this one."""
    graph = StateGraph(Count)
    known: list[list[str]] = []
    heard: list[str] = []

    async def look(state: Count) -> dict[str, Any]:
        known.append([f"{one.kind} {one.node}" for one in channel.items])
        return {"x": state.x + 1}

    graph.add_node("a", look).add_node("b", look).set_entry_point("a").add_edge("a", "b").add_edge("b", END)
    async with Executor(graph.compile()).stream({}, modes=("tasks",)) as events:
        channel = events._channel
        async for one in events:
            heard.append(f"{one.kind} {one.node}")
    assert known == [["start a"], ["start a", "end a", "start b"]]
    assert heard == ["start a", "end a", "start b", "end b"]


async def test_a_listener_that_is_asked_for_updates_may_change_them() -> None:
    """The data of an event is the reader's own: what it does to it never reaches the state."""
    async with Executor(loop(3)).stream({}, modes=("updates",)) as events:
        async for one in events:
            one.data.clear()
    assert events.result is not None
    assert events.result.unwrap().x == 3
