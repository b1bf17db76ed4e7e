"""Commands that are cut short, and runs that end or are left while nobody waits for them."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.debugged import SHAPES, debugging, inner
from support.graphs import Trail, flow, says

from graphagent import END, START, Executor, StateGraph
from graphagent.errors import LineageBusy, UsageError

pytestmark = pytest.mark.anyio


async def test_a_command_that_is_cancelled_can_be_given_again(store: Any, engine: Any, lineage: str) -> None:
    """The run goes on without its caller; the next command finds it where it is, also at its end."""
    go = anyio.Event()

    async def waits(_: Any) -> None:
        await go.wait()

    executor = Executor(flow("START -> a -> b -> c -> END", b=waits).compile(), store, engine)
    async with debugging(executor, lineage) as session:
        await session.start({})
        await session.step()
        with anyio.move_on_after(0.02):
            await session.step()
        assert (session.running, session.live) == (True, False)
        go.set()
        with anyio.fail_after(5):
            assert (await session.step()).moment.ran == ("b",)
        with anyio.move_on_after(0) as scope:
            await session.run()
        assert scope.cancelled_caught
        with anyio.fail_after(5):
            while (await executor.history(lineage))[0].source != "end":  # noqa: ASYNC110 -- the run tells nobody here
                await anyio.sleep(0.005)
            assert (await session.run()).why == "completed"


async def test_left_while_a_frame_comes_to_the_gate(store: Any, lineage: str) -> None:
    """A run that is left while the row of an arriving frame is being read is paused there."""
    built = StateGraph(Trail).add_node("a", says("a")).add_subgraph_node("sub", inner())
    graph = built.add_edge(START, "a").add_edge("a", "sub").add_edge("sub", END).compile()
    executor = Executor(graph, store)
    async with debugging(executor, lineage) as session:
        await session.start({})
        for _ in range(3):
            await session.step()
    reading, go = anyio.Event(), anyio.Event()
    async with debugging(executor, lineage) as session:
        await session.open()
        moment = session.stored.moment

        async def slow(*args: Any) -> Any:
            if args[0]:
                reading.set()
                await go.wait()
            return await moment(*args)

        session.stored.moment = slow  # type: ignore[method-assign]
        async with anyio.create_task_group() as group:
            group.start_soon(session.step)
            await reading.wait()
            group.start_soon(session.leave)
            await anyio.lowlevel.checkpoint()
            go.set()
            with anyio.fail_after(5):
                while session.running:  # noqa: ASYNC110 -- both commands see the end
                    await anyio.sleep(0.005)
    assert (await executor.resume(lineage)).unwrap().log == ["a", "x", "y"]


async def test_answers_stay_when_the_run_can_not_begin(store: Any, lineage: str) -> None:
    """What was answered while another run holds the lineage is used once it is free."""
    executor = Executor(SHAPES["asking"].make(), store)
    await executor.run({}, lineage=lineage)
    async with debugging(executor, lineage) as session:
        await session.open()
        await session.answer("word", "one")
        lease = await store.acquire(lineage, "another")
        with pytest.raises(LineageBusy):
            await session.step()
        await store.release(lease)
        assert (await session.run()).why == "interrupted"
        assert "one" in (await session.values())["log"]


async def test_a_held_child_that_a_failure_cancels(store: Any, lineage: str) -> None:
    """With on_failure="cancel" a sibling's failure takes a child away that is held; the session goes on without it."""
    go = anyio.Event()

    async def fails(_: Any) -> None:
        await go.wait()
        raise ValueError("no")

    built = StateGraph(Trail).add_node("a", says("a")).add_subgraph_node("sub", inner()).add_node("bad", fails)
    built.add_edge(START, "a").add_edge("a", "sub").add_edge("a", "bad").add_edge("sub", END).add_edge("bad", END)
    executor = Executor(built.compile(), store, on_failure="cancel")
    async with debugging(executor, lineage) as session:
        await session.start({})
        await session.step()
        assert (await session.step()).moment.namespace
        go.set()
        with anyio.fail_after(5):
            while session.live:  # noqa: ASYNC110 -- it is the failure that ends it
                await anyio.sleep(0.005)
            stopped = await session.run()
        assert stopped.why == "failed"


async def test_a_run_left_and_taken_up_in_one_session(store: Any, engine: Any, lineage: str) -> None:
    """After `leave` the pause is the newest row: a command goes to it, the next one lets the run go on."""
    async with debugging(Executor(SHAPES["chain"].make(), store, engine), lineage) as session:
        await session.start({})
        await session.step()
        await session.leave()
        assert (session.running, session.at_newest) == (False, False)
        assert (await session.step()).why == "paused"
        assert session.at_newest
        assert (await session.step()).moment.ran == ("b",)
        assert (await session.run()).result.state.log == ["a", "b", "c"]  # type: ignore[union-attr]


async def test_a_session_that_was_not_entered_says_so(store: Any, lineage: str) -> None:
    """A run needs the session's own tasks."""
    session = debugging(Executor(SHAPES["chain"].make(), store), lineage)
    with pytest.raises(UsageError, match="async with"):
        await session.start({})
    assert not session.running
