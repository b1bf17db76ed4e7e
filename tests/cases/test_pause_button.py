"""The pause button: `pause` stops a run between activations, or by force after a time-out, and a resume goes on."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.graphs import Trail, flow
from support.runs import started

from graphagent import Executor, Send
from graphagent.errors import AnswerError, InterruptedRunError

pytestmark = pytest.mark.anyio


async def test_a_graceful_pause_waits_for_the_step(store: Any, engine: Any, lineage: str) -> None:
    """Both parallel nodes end before the pause counts; `pause` returns when the run has stopped."""
    reached, go = anyio.Event(), anyio.Event()

    async def slow(state: Trail) -> dict[str, Any]:
        reached.set()
        await go.wait()
        return {"log": ["slow"]}

    graph = flow("START -> slow, quick", "last -> END", slow=slow).add_join_edge(["slow", "quick"], "last").compile()
    executor = Executor(graph, store, engine)
    paused = []

    async def press() -> None:
        paused.append(await executor.pause(lineage))

    async with started(executor, lineage, reached) as results, anyio.create_task_group() as group:
        group.start_soon(press)
        group.start_soon(press)
        await anyio.sleep(0.01)
        assert paused == []
        go.set()
    assert paused == [True, True]
    assert (results[0].status, sorted(results[0].state.log)) == ("interrupted", ["quick", "slow"])
    [waiting] = results[0].interrupts
    assert (waiting.kind, waiting.prompt) == ("pause", {"forced": False})
    assert [i.kind for i in await executor.interrupts(lineage)] == ["pause"]
    assert (await executor.resume(lineage)).unwrap().log[-1] == "last"
    assert not await executor.pause(lineage)


async def test_a_forced_pause_keeps_what_had_finished(store: Any, engine: Any, lineage: str) -> None:
    """After the time-out the node that still runs is cancelled; a resume runs only that one again, on its own input."""
    reached, runs = anyio.Event(), []

    async def slow(state: Trail) -> dict[str, Any]:
        runs.append(f"slow {state.item}")
        if len(runs) <= 2:
            reached.set()
            await anyio.sleep_forever()
        return {"log": ["slow"]}

    async def quick(state: Trail) -> dict[str, Any]:
        runs.append("quick")
        return {"log": ["quick"]}

    graph = flow("START -> slow, quick", "last -> END", slow=slow, quick=quick)
    executor = Executor(graph.add_join_edge(["slow", "quick"], "last").compile(), store, engine)
    async with started(executor, lineage, reached, {"item": "x"}) as results:
        assert await executor.pause(lineage, timeout=0.02)
    assert results[0].status == "interrupted"
    assert results[0].interrupts[0].prompt == {"forced": True}
    assert sorted((await executor.resume(lineage)).unwrap().log) == ["last", "quick", "slow"]
    assert sorted(runs) == ["quick", "slow x", "slow x"]


async def test_a_pause_now_is_forced_at_once(store: Any, engine: Any, lineage: str) -> None:
    """`timeout=0` doesn't wait for the node at all."""
    reached = anyio.Event()

    async def slow(state: Trail) -> dict[str, Any]:
        if not reached.is_set():
            reached.set()
            await anyio.sleep_forever()
        return {"log": ["slow"]}

    executor = Executor(flow("START -> slow -> END", slow=slow).compile(), store, engine)
    async with started(executor, lineage, reached) as results:
        await executor.pause(lineage, timeout=0)
    assert results[0].interrupts[0].prompt == {"forced": True}
    assert (await executor.resume(lineage)).unwrap().log == ["slow"]


@pytest.mark.parametrize("forced", [False, True])
async def test_a_pause_inside_a_child_graph(store: Any, engine: Any, lineage: str, forced: bool) -> None:
    """A pause stops a child graph where it stands, and the resume goes on there, not at the child's beginning."""
    reached, go, runs = anyio.Event(), anyio.Event(), []

    async def first(state: Trail) -> dict[str, Any]:
        runs.append("first")
        return {"log": ["first"]}

    async def second(state: Trail) -> dict[str, Any]:
        runs.append("second")
        if not go.is_set():
            reached.set()
            await go.wait()
        return {"log": ["second"]}

    child = flow("START -> first -> second -> third -> END", first=first, second=second).compile()
    outer = flow("START -> before", "after -> END").add_subgraph_node("child", child)
    executor = Executor(outer.add_edge("before", "child").add_edge("child", "after").compile(), store, engine)
    async with started(executor, lineage, reached) as results, anyio.create_task_group() as group:
        if forced:
            await executor.pause(lineage, timeout=0)
            go.set()
        else:
            group.start_soon(executor.pause, lineage)
            await anyio.lowlevel.checkpoint()
            go.set()
    assert results[0].status == "interrupted"
    assert (await executor.resume(lineage)).unwrap().log == ["before", "first", "second", "third", "after"]
    assert runs == ["first", "second", *(["second"] if forced else [])]


async def test_a_pause_keeps_planned_workers(store: Any, engine: Any, lineage: str) -> None:
    """A pause between a fan-out and its workers keeps every worker with its own item."""
    reached, go = anyio.Event(), anyio.Event()

    async def split(state: Trail) -> list[Send]:
        reached.set()
        await go.wait()
        return [Send("work", {"item": name}) for name in ("a", "b", "a")]

    async def work(state: Trail) -> dict[str, Any]:
        return {"log": [state.item]}

    graph = flow("work -> END", work=work).add_node("split", split, destinations=["work"]).set_entry_point("split")
    executor = Executor(graph.compile(), store, engine)
    async with started(executor, lineage, reached) as results, anyio.create_task_group() as group:
        group.start_soon(executor.pause, lineage)
        await anyio.lowlevel.checkpoint()
        go.set()
    assert (results[0].status, results[0].state.log) == ("interrupted", [])
    assert sorted((await executor.resume(lineage)).unwrap().log) == ["a", "a", "b"]


async def test_a_paused_run_takes_no_answer_and_can_be_given_up(store: Any, engine: Any, lineage: str) -> None:
    """A pause is no question: it takes no answer. A new turn says that it gives the paused run up."""
    reached, go = anyio.Event(), anyio.Event()

    async def first(state: Trail) -> dict[str, Any]:
        reached.set()
        await go.wait()
        return {"log": ["first"]}

    executor = Executor(flow("START -> first -> second -> END", first=first).compile(), store, engine)
    async with started(executor, lineage, reached), anyio.create_task_group() as group:
        group.start_soon(executor.pause, lineage)
        await anyio.lowlevel.checkpoint()
        go.set()
    with pytest.raises(AnswerError, match="nothing is pending"):
        await executor.resume(lineage, answer="yes")
    with pytest.raises(InterruptedRunError):
        await executor.run({}, lineage=lineage)
    assert (await executor.run({}, lineage=lineage, abandon=True)).unwrap().log == ["first", "first", "second"]
