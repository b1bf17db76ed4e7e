"""How a debugged run ends, what a session refuses, and what others can do with a run that was held."""

from __future__ import annotations

import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.debugged import SHAPES, debugging, steps_to_end
from support.graphs import flow

from graphagent import Budget, Executor, Limits, MemoryCheckpoints, NodeContext, SqlCheckpoints
from graphagent.debug import DebugSession, ExecutorDriver
from graphagent.errors import AnswerError, CheckpointNotFound, LineageBusy, UsageError

pytestmark = pytest.mark.anyio


async def fails(_: Any) -> Any:
    """A node that fails."""
    raise ValueError("no such thing")


def starved() -> Any:
    """A join one of whose sources never runs."""
    built = flow("START -> a -> END", "b -> END", "c -> END")
    return built.add_join_edge(["a", "b"], "c").compile(strict=False)


def endless() -> Any:
    """Two nodes that go round."""
    return flow("START -> a -> b", "b -> a").compile(strict=False)


ENDS = [
    (lambda: flow("START -> a -> b -> END", b=fails).compile(), {}, "failed", "error", "no such thing"),
    (endless, {"limits": Limits(max_steps=5)}, "limit_reached", "error", "5 steps"),
    (starved, {}, "stalled", "step", "'b'"),
]


@pytest.mark.parametrize(("make", "options", "why", "source", "reason"), ENDS)
async def test_how_a_run_ends(
    make: Any, options: dict[str, Any], why: str, source: str, reason: str, store: Any, engine: Any, lineage: str
) -> None:
    """A run that fails, stalls or reaches a limit says so, with its result, and stands at the row of its end."""
    executor = Executor(make(), store, engine, **options)
    async with debugging(executor, lineage) as session:
        await session.start({})
        stopped = await session.run()
        assert (stopped.why, stopped.moment.source) == (why, source)
        assert reason in stopped.reason
        assert stopped.result is not None
        assert stopped.result.status == why
        assert stopped.moment.seq == (await session.timeline())[-1].seq
        assert session.at_newest
        assert not session.running
    async with debugging(executor, lineage, read_only=True) as session:
        stopped = await session.open()
        assert stopped.why == (why if source == "error" else "moved")


async def test_answers_are_checked_at_once(store: Any, engine: Any, lineage: str) -> None:
    """A wrong key or type is refused before anything runs; what is right is used when the run goes on."""
    executor = Executor(SHAPES["asking"].make(), store, engine)
    async with debugging(executor, lineage) as session:
        await session.start({})
        stopped = await session.run()
        assert (stopped.why, stopped.moment.source) == ("interrupted", "interrupt")
        with pytest.raises(AnswerError, match="did you mean 'word'"):
            await session.answer("wrod", "x")
        with pytest.raises(AnswerError):
            await session.answer("word", 5)
        await session.answer("word", "one")
        stopped = await session.step()
        assert (stopped.why, session.live) == ("step", True)
        assert (await session.run()).why == "interrupted"
        await session.answer("word", "two")
        stopped = await session.run()
    assert stopped.why == "completed"
    assert {"one", "two"} <= set(stopped.result.state.log)  # type: ignore[union-attr]


async def test_reading_only(store: Any, lineage: str) -> None:
    """A session that may not write looks, goes back and forth, and refuses the rest with the mend in the message."""
    executor = Executor(SHAPES["asking"].make(), store)
    await executor.run({}, lineage=lineage)
    async with debugging(executor, lineage, read_only=True) as session:
        await session.open()
        rows = len(await session.timeline())
        await session.back()
        await session.step()
        while not session.at_newest:
            await session.step()
        for refused in (
            session.start({}),
            session.step(),
            session.run(),
            session.answer("word", "x"),
            session.edit({"n": 1}),
            session.fork(),
        ):
            with pytest.raises(UsageError, match="read_only=False"):
                await refused
        assert len(await session.timeline()) == rows


async def test_a_lineage_that_another_run_holds(store: Any, lineage: str) -> None:
    """Looking at a run that goes on works, executing it is refused; rows that it writes are seen after a refresh."""
    there, go, over = anyio.Event(), anyio.Event(), anyio.Event()

    async def waits(_: Any) -> None:
        there.set()
        await go.wait()

    executor = Executor(flow("START -> a -> b -> c -> END", b=waits).compile(), store)

    async def run() -> None:
        await executor.run({}, lineage=lineage)
        over.set()

    async with anyio.create_task_group() as group, debugging(executor, lineage) as session:
        group.start_soon(run)
        await there.wait()
        stopped = await session.open()
        assert [one.node for one in stopped.moment.coming] == ["b"]
        with pytest.raises(LineageBusy):
            await session.step()
        assert not await session.refresh()
        go.set()
        await over.wait()
        assert await session.refresh()
        assert not session.at_newest
        assert [(await session.step()).why for _ in range(2)] == ["moved", "completed"]


async def test_edit_and_fork_where_the_cursor_stands(store: Any, engine: Any, lineage: str) -> None:
    """An edit now leaves the run that is held; one in the past, or a fork there, becomes the newest row, from which the
    run goes on. Other branches are reached by goto, and executing on one is refused."""
    executor = Executor(SHAPES["chain"].make(), store, engine)
    async with debugging(executor, lineage) as session:
        await session.start({})
        await session.step()
        edited = await session.edit({"n": 5})
        assert (edited.why, session.live, session.at_newest) == ("edited", False, True)
        assert (await session.values())["n"] == 5
        stopped = await session.step()
        assert stopped.moment.ran == ("b",)
        ended = await session.run()
        assert (ended.result.state.n, ended.result.state.log) == (5, ["a", "b", "c"])  # type: ignore[union-attr]
        await session.goto(f"{lineage}:1")
        await session.edit({"log": ["z"]}, as_node="b")
        assert (await session.run()).result.state.log == ["a", "z", "c"]  # type: ignore[union-attr]
        await session.goto(ended.moment.id)
        await session.back()
        assert (await session.run()).moment.id == ended.moment.id
        with pytest.raises(UsageError, match=r"fork\(\) or edit\(\) here first"):
            await session.run()
        assert (await session.fork()).why == "forked"
        assert session.at_newest


async def test_a_fork_to_a_new_lineage_takes_the_session_along(store: Any, lineage: str) -> None:
    """The session goes over to the new lineage; a driver that is for one only is named in the error."""

    class Bound(ExecutorDriver):
        of = None  # type: ignore[assignment]

    executor = Executor(SHAPES["chain"].make(), store)
    async with DebugSession(Bound(executor, lineage)) as session:
        await session.start({})
        with pytest.raises(UsageError, match="a Bound is for one lineage"):
            await session.fork(f"{lineage}-f")
    async with debugging(executor, lineage) as session:
        await session.open(f"{lineage}:1")
        stopped = await session.fork(f"{lineage}-f")
        assert (stopped.why, session.lineage, stopped.moment.lineage) == ("forked", f"{lineage}-f", f"{lineage}-f")
        assert (await session.run()).result.state.log == ["a", "b", "c"]  # type: ignore[union-attr]
    assert (await executor.interrupts(lineage))[0].kind == "pause"


async def test_deadlines_stand_still_while_a_run_is_held(store: Any, lineage: str) -> None:
    """Timeouts of a step, of the node around a child graph, and a budget of seconds don't count the time at a stop."""
    child = SHAPES["chain"].make()
    built = flow("START -> a -> END").add_subgraph_node("sub", child, timeout=0.5).add_edge("a", "sub")
    built.add_edge("sub", "b").add_node("b", fails).add_error_edge("b", "a")
    executor = Executor(built.compile(strict=False), store, limits=Limits(step_timeout=0.6, max_steps=3))
    driver = ExecutorDriver(executor, lineage, budget=Budget(seconds=0.6))
    async with DebugSession(driver) as session:
        await session.start({})
        await session.step()
        inside = await session.step()
        assert inside.moment.namespace
        await anyio.sleep(0.8)
        assert (await session.next()).why == "step"
        assert (await session.out()).why == "step"


async def test_a_deadline_still_comes_when_the_run_goes_on(store: Any, lineage: str) -> None:
    """What is left of a timeout when the run is held is what it has afterwards."""

    async def slow(_: Any) -> None:
        await anyio.sleep(30)

    built = flow("START -> a -> END").add_subgraph_node("sub", flow("START -> x -> END", x=slow).compile(), timeout=0.2)
    executor = Executor(built.add_edge("a", "sub").compile(strict=False), store)
    async with debugging(executor, lineage) as session:
        await session.start({})
        await session.step()
        await session.step()
        await anyio.sleep(0.3)
        stopped = await session.run()
    assert stopped.why == "failed"
    assert "longer than its 0.2 s" in stopped.reason


async def test_without_a_store_a_run_can_still_be_stepped(engine: Any, lineage: str) -> None:
    """No row is written, so there is no way back; forward works to the end."""
    executor = Executor(SHAPES["chain"].make(), None, engine)
    async with debugging(executor, lineage) as session:
        stops = await steps_to_end(session, SHAPES["chain"], await session.start({}))
        assert [stop.why for stop in stops] == ["started", "step", "step", "completed"]
        assert [stop.moment.ran for stop in stops[1:3]] == [("a",), ("b",)]
    assert stops[-1].result.state.log == ["a", "b", "c"]  # type: ignore[union-attr]


async def test_rows_that_are_not_written_step_by_step(store: Any, lineage: str) -> None:
    """With durability `exit` a live run is stepped as ever; its moments are those of its steps."""
    executor = Executor(SHAPES["chain"].make(), store, durability="exit")
    async with debugging(executor, lineage) as session:
        stops = await steps_to_end(session, SHAPES["chain"], await session.start({}))
        assert [stop.moment.ran for stop in stops[1:3]] == [("a",), ("b",)]
        assert stops[-1].why == "completed"


async def test_what_there_is_nothing_of(store: Any, lineage: str) -> None:
    """Commands without a cursor, unknown lineages and rows that aren't there are named."""
    async with debugging(Executor(SHAPES["chain"].make(), store), lineage) as session:
        with pytest.raises(UsageError, match="call start"):
            await session.step()
        with pytest.raises(CheckpointNotFound, match=f"no lineage '{lineage}'"):
            await session.open()
        await session.start({})
        with pytest.raises(CheckpointNotFound, match="no checkpoint"):
            await session.goto(f"{lineage}:9")
        with pytest.raises(UsageError, match="first row"):
            await session.back()
        with pytest.raises(UsageError, match=r"leave\(\) it first"):
            await session.start({})


async def test_frames_of_other_lineages_pass(store: Any, lineage: str) -> None:
    """A run that a node begins in a lineage of its own isn't held, although it began under the debugger."""
    other = Executor(SHAPES["chain"].make(), store)

    async def calls(_: Any, ctx: NodeContext) -> dict[str, Any]:
        return {"log": (await other.run({}, lineage=f"{lineage}-o")).state.log}

    async with debugging(Executor(flow("START -> a -> END", a=calls).compile(), store), lineage) as session:
        await session.start({})
        with anyio.fail_after(5):
            stopped = await session.step()
    assert stopped.result.state.log == ["a", "b", "c"]  # type: ignore[union-attr]


async def test_the_caller_hears_its_own_errors(store: Any, lineage: str) -> None:
    """An error in the block comes out as it is, and the run that was held is paused."""
    executor = Executor(SHAPES["chain"].make(), store)

    async def block() -> None:
        async with debugging(executor, lineage) as session:
            await session.start({})
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await block()
    assert [one.kind for one in await executor.interrupts(lineage)] == ["pause"]


KILLED = """
    import anyio, sys
    from support.debugged import SHAPES, debugging
    from graphagent import Executor, SqlCheckpoints

    async def main(url, name, steps):
        async with SqlCheckpoints(url) as store, debugging(Executor(SHAPES[name].make(), store), "l") as session:
            await session.start(SHAPES[name].given)
            for _ in range(steps):
                await session.step()
            print("held", flush=True)
            await anyio.sleep(60)

    anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


@pytest.mark.parametrize(("name", "steps"), [("chain", 1), ("nested", 4)])
async def test_a_process_that_is_killed_while_it_holds_a_run(name: str, steps: int, tmp_path: Path) -> None:
    """The lease goes with the process: anybody can resume the run, and nothing that had ended is done again."""
    url = f"sqlite:///{tmp_path}/killed.db"
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    tests = Path(__file__).parents[1]
    command = [sys.executable, str(script), url, name, str(steps)]
    env = {"PYTHONPATH": f"{tests}:{tests.parent}"}
    async with await anyio.open_process(command, env=env, stderr=None) as process:
        assert process.stdout is not None
        assert await process.stdout.receive() == b"held\n"
        process.kill()
    async with SqlCheckpoints(url) as store:
        executor = Executor(SHAPES[name].make(), store)
        plain = await Executor(SHAPES[name].make(), MemoryCheckpoints()).run(SHAPES[name].given)
        result = await executor.resume("l")
    assert sorted(result.unwrap().log) == sorted(plain.unwrap().log)


async def test_a_long_lineage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long lineage is opened in a moment, and a step back or a goto reads a row or two, not the lineage."""
    monkeypatch.setenv("GRAPHAGENT_DEBUG", "0")

    async def counts(state: Any) -> dict[str, Any]:
        return {"n": state.n + 1}

    graph = flow("START -> a -> b", "b -> a", a=counts, b=counts).compile(strict=False)
    async with SqlCheckpoints(f"sqlite:///{tmp_path}/long.db") as store:
        await Executor(graph, store, limits=Limits(max_steps=3000)).run({}, lineage="long")
        async with debugging(Executor(graph, store), "long", read_only=True) as session:
            began = time.process_time()
            await session.open()
            opened = time.process_time() - began
            began = time.process_time()
            await session.goto("long:1500")
            for _ in range(50):
                await session.back()
            moved = time.process_time() - began
    assert opened < 1
    assert moved < 1
