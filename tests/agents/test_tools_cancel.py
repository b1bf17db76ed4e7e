"""Cancelling a run while its tools work: what is recorded, and what still runs.

C081, C084, C090 and C154 are public fault reports of the kinds `cancel` and `leak`.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.runs import cancelled
from support.tooling import Rounds, asking, call

from graphagent import Executor
from graphagent.agents.function_tool import tool
from graphagent.agents.tool_options import ToolCallbacks, ToolOptions
from graphagent.agents.tool_run import ToolRun
from graphagent.agents.tool_runner import ToolRound
from graphagent.engine.part import PartContext

pytestmark = pytest.mark.anyio

CUT_OFF = "Error: the call was cancelled before it had ended; it may or may not have taken effect"


def quick() -> str:
    """Be quick."""
    return "done"


class Slow:
    """A tool that says when it has begun, and never ends by itself."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        self.begun.set()
        await anyio.sleep_forever()
        return "never"


@pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "parallel"])
async def test_c081_every_call_of_a_cancelled_round_has_a_result(store: Any, lineage: str, parallel: bool) -> None:
    """A run is cancelled in the middle of its second call: the first has its result, the others a `cancelled` one, so
    that the history is valid. A resume goes on with what was recorded and does not repeat the one that was cut off."""
    slow, told = Slow(), list[ToolRound]()

    async def keep(done: ToolRound) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(done)

    tools = [tool(quick), tool(slow, name="slow"), tool(quick, name="last")]
    rounds = Rounds(tools, ToolOptions(parallel=parallel, on_cancelled=keep))
    executor = Executor(rounds.graph, store)
    calls = [call("quick"), call("slow"), call("last")]
    result = await cancelled(executor, lineage, slow.begun, asking(calls))
    assert result.status == "cancelled"
    (round_,) = told
    assert [m.tool_call_id for m in round_.messages] == ["c-quick", "c-slow", "c-last"]
    if not parallel:
        assert [m.text for m in round_.messages] == ["done", CUT_OFF, CUT_OFF]
    result = await executor.resume(lineage)
    assert [m.text for m in result.unwrap().messages[1:]][:2] == ["done", CUT_OFF]
    assert slow.calls == 1


async def test_c081_a_reentrant_call_that_was_cut_off_runs_again(store: Any, lineage: str) -> None:
    """A tool that may be called twice is called again when the run goes on."""
    slow = Slow()

    async def look() -> str:
        if slow.calls:
            return "seen"
        return await slow()

    executor = Executor(Rounds([tool(look, reentrant=True)]).graph, store)
    await cancelled(executor, lineage, slow.begun, asking([call("look")]))
    assert (await executor.resume(lineage)).unwrap().messages[-1].text == "seen"


async def test_c081_cancelled_while_a_callback_decides(store: Any, lineage: str) -> None:
    """Also a round that is cut off before any call of it has begun has a result for each."""
    begun, told = anyio.Event(), list[ToolRound]()

    async def before(*_: Any) -> None:
        begun.set()
        await anyio.sleep_forever()

    async def keep(done: ToolRound) -> None:
        told.append(done)

    options = ToolOptions(callbacks=(ToolCallbacks(before=before),), on_cancelled=keep)
    await cancelled(Executor(Rounds([quick], options).graph, store), lineage, begun, asking([call("quick")]))
    assert [m.text for m in told[0].messages] == [CUT_OFF]


async def test_c081_a_new_turn_after_a_cancelled_one(store: Any, lineage: str) -> None:
    """The next message, without resuming, works as usual: its calls are its own."""
    slow = Slow()
    executor = Executor(Rounds([tool(slow, name="slow"), quick]).graph, store)
    await cancelled(executor, lineage, slow.begun, asking([call("slow")]))
    result = await executor.run(asking([call("quick")]), lineage=lineage, abandon=True)
    assert result.unwrap().messages[-1].text == "done"


async def test_c084_a_reader_that_leaves_stops_the_tool() -> None:
    """A tool writes a line outside again and again; when the reader has left after the first event, none follows."""
    lines, begun = 0, anyio.Event()

    async def writes() -> None:
        nonlocal lines
        while True:
            lines += 1
            begun.set()
            await anyio.sleep(0.001)

    async with Executor(Rounds([writes]).graph).stream(asking([call("writes")]), modes=("tasks",)) as stream:
        async for _ in stream:
            break
        with anyio.fail_after(5):
            await begun.wait()
    written = lines
    await anyio.sleep(0.02)
    assert lines == written


async def test_c090_a_thread_is_waited_for(store: Any, lineage: str) -> None:
    """A sync tool can't be stopped: it sees that it shall end, the cancelled run has ended only when it has, and what
    it came to is recorded. The call behind it is not begun."""
    loop, begun, ended = asyncio.get_running_loop(), anyio.Event(), threading.Event()

    def blocks(ctx) -> str:
        loop.call_soon_threadsafe(begun.set)
        while not ctx.node.cancelled:
            threading.Event().wait(0.001)
        ended.set()
        return "ended"

    executor = Executor(Rounds([blocks, quick]).graph, store)
    result = await cancelled(executor, lineage, begun, asking([call("blocks"), call("quick")]))
    assert ended.is_set()
    if result.status == "cancelled":
        result = await executor.resume(lineage)
    assert [m.text for m in result.unwrap().messages[1:]] == ["ended", "done"]


async def test_c090_a_call_that_waits_for_its_place_is_not_begun(store: Any, lineage: str) -> None:
    """Cancelled while one of two calls holds the only place: the other was never begun, and runs on resume."""
    slow, done = Slow(), 0

    async def counts() -> int:
        nonlocal done
        done += 1
        return done

    rounds = Rounds([tool(slow, name="slow"), counts], ToolOptions(parallel=True, max_concurrency=1))
    executor = Executor(rounds.graph, store)
    await cancelled(executor, lineage, slow.begun, asking([call("slow"), call("counts")]))
    assert done == 0
    result = await executor.resume(lineage)
    assert [m.text for m in result.unwrap().messages[1:]] == [CUT_OFF, "1"]


async def test_c154_rounds_leave_nothing_behind() -> None:
    """After hundreds of rounds, with failures, threads and streams among them, no object of a call is left, no task,
    and no more threads than before."""

    def left() -> int:
        gc.collect()
        return sum(isinstance(one, ToolRun | PartContext) for one in gc.get_objects())

    async def fails() -> None:
        raise ValueError("no")

    async def pieces():
        yield "a"
        yield "b"

    rounds = Rounds([quick, fails, pieces], ToolOptions(parallel=True))
    executor = Executor(rounds.graph)
    calls = asking([call("quick"), call("fails"), call("pieces"), call("unknown")])
    await executor.run(calls)
    rounds.rounds.clear()
    before = (len(asyncio.all_tasks()), threading.active_count(), left())
    for _ in range(300):
        await executor.run(calls)
    rounds.rounds.clear()
    assert len(asyncio.all_tasks()) == before[0]
    assert threading.active_count() <= before[1] + 4
    assert left() <= before[2]
