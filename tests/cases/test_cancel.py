"""Public fault reports about cancelling (kind `cancel`), and what cancelling means at each stage of a run.

A model stream is a node that calls `ctx.stream_text`, a tool is a node that calls `ctx.step`; the agents that will be
built of such nodes are tested with the agents.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.graphs import Trail, flow
from support.runs import cancelled, started

from graphagent import Executor, Message, MessagesState, NodeContext, StateGraph, ToolCall
from graphagent.errors import EffectUnknown, InterruptedRunError, RunCancelled

pytestmark = pytest.mark.anyio


# -- C080: what the reader has seen ------------------------------------------------------------------


async def test_c080_partial_text_is_kept(store: Any, engine: Any, lineage: str) -> None:
    """A model that is cancelled after 20 of 50 pieces has sent all 20, and the ledger keeps what it said until then.

    The node records its partial text as an effect, which a run that is being cancelled may still do.
    """
    reached = anyio.Event()

    async def model(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        said: list[str] = []
        try:
            for piece in range(50):
                await ctx.stream_text(f"{piece} ")
                said.append(f"{piece} ")
                ctx.usage(output_tokens=1)
                if piece == 19:
                    reached.set()
                    await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await ctx.step("said", "".join, said)
        return {"log": said}

    executor = Executor(flow("START -> model -> END", model=model).compile(), store, engine)
    seen = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                await reached.wait()
                await executor.cancel(lineage)

            group.start_soon(cancel)
            async with executor.stream({}, lineage=lineage, modes=["messages"]) as events:
                seen = [event.data async for event in events]
    assert seen == [f"{piece} " for piece in range(20)]
    assert events.result is not None
    assert events.result.status == "cancelled"
    assert events.result.usage.output_tokens == 20
    [effect] = await store.effects(lineage, "", 0)
    assert (effect.name, effect.committed, effect.result) == ("said", True, {"value": "".join(seen)})


# -- C081: a cancelled tool --------------------------------------------------------------------------


async def test_c081_a_cancelled_tool_call_gets_a_result(store: Any, engine: Any, lineage: str) -> None:
    """After a cancel inside a tool the call is closed by an edit as the tool's node, and the next turn is well formed.

    The agents will do this edit by themselves; here it is the engine's part of it.
    """
    reached = anyio.Event()
    call = ToolCall(id="call-1", name="slow", arguments={})

    def model(state: MessagesState) -> dict[str, Any]:
        if state.messages[-1].role == "user" and len(state.messages) == 1:
            return {"messages": [Message.assistant("", tool_calls=[call])]}
        return {"messages": [Message.assistant(f"after {len(state.messages)}")]}

    async def tool(state: MessagesState, ctx: NodeContext) -> dict[str, Any]:
        async def slow() -> str:
            reached.set()
            await anyio.sleep_forever()
            return "never"

        return {"messages": [Message.tool(await ctx.step("call-1", slow), tool_call_id="call-1")]}

    graph = StateGraph(MessagesState).add_node("model", model, inline=True).add_node("tool", tool)
    graph.set_entry_point("model").add_edge("tool", "model").set_finish_point("model")
    graph.add_conditional_edges("model", lambda s: "tool" if s.messages[-1].tool_calls else "__end__", ["tool"])
    executor = Executor(graph.compile(), store, engine)
    async with started(executor, lineage, reached, {"messages": [Message.user("hi")]}) as results:
        await executor.cancel(lineage)
    assert results[0].status == "cancelled"

    refused = await executor.resume(lineage)
    assert isinstance(refused.error, EffectUnknown)
    await executor.edit(lineage, None, {"messages": [Message.tool("cancelled", tool_call_id="call-1")]}, as_node="tool")
    closed = await executor.resume(lineage)
    assert closed.status == "completed"
    later = await executor.run({"messages": [Message.user("and now?")]}, lineage=lineage)
    assert [m.role for m in later.unwrap().messages] == ["user", "assistant", "tool", "assistant", "user", "assistant"]


# -- C083: nothing leaks -----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["superstep", "eager"])
async def test_c083_two_hundred_cancelled_runs(store: Any, engine: Any) -> None:
    """200 streams left after their first piece give back every connection of a pool of ten; run 201 works.

    On PostgreSQL 20 do: twice the pool.
    """
    pool = anyio.CapacityLimiter(10)
    forever = True

    async def model(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        async with pool:
            ctx.usage(output_tokens=3)
            await ctx.stream_text("piece")
            if forever:
                await anyio.sleep_forever()
        return {"log": ["done"]}

    executor = Executor(flow("START -> model -> END", model=model).compile(), store, engine)
    before = len(asyncio.all_tasks())
    used, rounds = 0, 20 if getattr(store, "remote", False) else 200
    with anyio.fail_after(20):
        for _ in range(rounds):
            async with executor.stream({}, modes=["messages"]) as events:
                async for _event in events:
                    break
            assert events.result is not None
            assert events.result.status == "cancelled"
            used += events.result.usage.tokens
    assert (pool.borrowed_tokens, used) == (0, 3 * rounds)
    assert len(asyncio.all_tasks()) == before
    forever = False
    assert (await executor.run({})).unwrap().log == ["done"]


async def test_c083_finish_the_step_then_stop(store: Any, engine: Any, lineage: str) -> None:
    """The pause button is the gentle way: the step that runs ends, its result is kept, the next doesn't start."""
    reached, go = anyio.Event(), anyio.Event()

    async def first(state: Trail) -> dict[str, Any]:
        reached.set()
        await go.wait()
        return {"log": ["first"]}

    executor = Executor(flow("START -> first -> second -> END", first=first).compile(), store, engine)
    async with started(executor, lineage, reached) as results, anyio.create_task_group() as group:
        group.start_soon(executor.pause, lineage)
        await anyio.lowlevel.checkpoint()
        go.set()
    assert (results[0].status, results[0].state.log) == ("interrupted", ["first"])
    assert (await executor.resume(lineage)).unwrap().log == ["first", "second"]


# -- C084: leaving a stream early --------------------------------------------------------------------


@pytest.mark.parametrize("buffer", [1, 16])
@pytest.mark.parametrize("way", ["break", "raise"])
async def test_c084_leaving_stops_the_run(store: Any, engine: Any, lineage: str, buffer: int, way: str) -> None:
    """When the reader leaves, the run has stopped by the end of the block, also if it was waiting for the reader."""
    lines = []

    async def tool(state: Trail, ctx: NodeContext) -> None:
        for number in range(1000):
            lines.append(number)
            await ctx.stream_text(str(number))
            await anyio.sleep(0.001)

    executor = Executor(flow("START -> tool -> END", tool=tool).compile(), store, engine)

    async def read() -> None:
        async with executor.stream({}, lineage=lineage, modes=["messages"], buffer=buffer) as events:
            async for _ in events:
                await anyio.sleep(0.005)
                if way == "raise":
                    raise LookupError("the reader's own")
                break

    if way == "raise":
        with pytest.raises(LookupError, match="own"):
            await read()
    else:
        await read()
    written = len(lines)
    await anyio.sleep(0.02)
    assert len(lines) == written < 1000
    assert [header.source for header in await executor.history(lineage)] == ["input"]
    with pytest.raises(InterruptedRunError, match="abandon=True"):
        await executor.run({}, lineage=lineage)


async def test_c084_leaving_reaches_a_thread(store: Any, engine: Any, lineage: str) -> None:
    """A sync node in its thread sees `ctx.cancelled` when the reader leaves; the block ends when the thread has."""
    ended = threading.Event()
    bound = threading.Event()

    def tool(state: Trail, ctx: NodeContext) -> None:
        ctx.stream_text("begun")
        for _ in range(400):
            if ctx.cancelled:
                break
            bound.wait(0.005)
        else:
            return
        ended.set()

    executor = Executor(flow("START -> tool -> END", tool=tool).compile(), store, engine)
    async with executor.stream({}, lineage=lineage, modes=["messages"]) as events:
        async for _ in events:
            break
    assert ended.is_set()


# -- C090: the stages --------------------------------------------------------------------------------

STAGES = {
    # stage: (rows that are left, log at the cancel, tokens counted, effects committed, log after the resume)
    "text": (["input"], [], 1, 0, ["text", "ran tool"]),
    "arguments": (["input"], [], 2, 0, ["text", "ran tool"]),
    "tool": (["step", "input"], ["text"], 2, 0, None),
    "between": (["step", "step", "input"], ["text", "ran tool"], 2, 1, ["text", "ran tool"]),
}
"""What is left of a run that is cancelled at a stage; the table of the documentation must agree."""


@pytest.mark.parametrize("stage", list(STAGES))
async def test_c090_cancel_at_each_stage(store: Any, engine: Any, lineage: str, stage: str) -> None:
    """Cancelling while text streams, while arguments stream, inside a tool and between nodes leaves what STAGES says.

    A resume runs the cut-off node again, except where a side effect has begun, whose outcome nobody knows.
    """
    rows, log, tokens, committed, resumed = STAGES[stage]
    reached, again = anyio.Event(), False
    executed = []

    async def wait(at: str) -> None:
        if at == stage and not again:
            reached.set()
            await anyio.sleep_forever()

    async def model(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        ctx.usage(output_tokens=1)
        await ctx.stream_text("I will ")
        await wait("text")
        ctx.usage(output_tokens=1)
        await wait("arguments")
        return {"log": ["text"], "item": "all arguments"}

    async def tool(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        async def effect() -> str:
            executed.append(state.item)
            await wait("tool")
            return "ran tool"

        return {"log": [await ctx.step("effect", effect)]}

    async def after(state: Trail) -> None:
        await wait("between")

    graph = flow("START -> model -> tool -> after -> END", model=model, tool=tool, after=after)
    executor = Executor(graph.compile(), store, engine)
    result = await cancelled(executor, lineage, reached)
    assert (result.status, result.reason, result.state.log) == ("cancelled", "cancelled", log)
    assert result.usage.tokens == tokens
    assert [header.source for header in await executor.history(lineage)] == rows
    effects = [e for base in range(3) for e in await store.effects(lineage, "", base)]
    assert sum(effect.committed for effect in effects) == committed
    with pytest.raises(RunCancelled, match="cancelled"):
        result.unwrap()

    again = True
    continued = await executor.resume(lineage)
    assert set(executed) <= {"all arguments"}
    if resumed is None:
        assert isinstance(continued.error, EffectUnknown)
        assert executed == ["all arguments"]
    else:
        assert continued.unwrap().log == resumed
        assert executed == ["all arguments"]


# -- the neighbours ----------------------------------------------------------------------------------


async def test_c090_what_had_finished_in_the_step_is_kept(store: Any, engine: Any, lineage: str) -> None:
    """A cancel while one of two parallel nodes runs keeps the result of the other: a resume runs only the first."""
    reached, runs = anyio.Event(), []

    async def quick(state: Trail) -> dict[str, Any]:
        runs.append("quick")
        return {"log": ["quick"]}

    async def slow(state: Trail) -> dict[str, Any]:
        runs.append("slow")
        if runs.count("slow") == 1:
            await anyio.sleep(0.01)
            reached.set()
            await anyio.sleep_forever()
        return {"log": ["slow"]}

    graph = flow("START -> quick, slow", "last -> END", quick=quick, slow=slow).add_join_edge(["quick", "slow"], "last")
    executor = Executor(graph.compile(), store, engine)
    result = await cancelled(executor, lineage, reached)
    assert result.status == "cancelled"
    assert (await executor.resume(lineage)).unwrap().log == ["quick", "slow", "last"]
    assert sorted(runs) == ["quick", "slow", "slow"]
