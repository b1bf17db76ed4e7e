"""Public fault reports about runs of agents: kinds cancel (C080, C081, C083, C084, C090), stream (C038) and
agui (C218), each through the Runner with agents that are graphs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
from support.run_agents import APP, SESSION, USER, Told, all_of, outcome, piece, says, stored, texts

from graphagent import MemoryCheckpoints, Message
from graphagent.agents.function_tool import tool
from graphagent.agents.invocation import Invocation, RunOptions
from graphagent.agents.llm_agent import LLMAgent
from graphagent.agents.model import Delta, ModelRequest, ToolCallDelta
from graphagent.errors import InterruptedRunError
from graphagent.ledger import Event, TokenUsage
from graphagent.models import ScriptedModel
from runner import Runner, RunnerPolicy
from runner.sessions import SqlSessions

pytestmark = pytest.mark.anyio


class Stuck:
    """A model whose n-th answer stops in the middle, until the run is cancelled; the others are scripted."""

    name = "stuck"
    context_window = None

    def __init__(self, *answers: list[Delta] | str, stops: int = 0) -> None:
        self.reached = anyio.Event()
        self.requests: list[ModelRequest] = []
        self.open = 0
        self._answers = answers
        self._stops = stops

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The next answer."""
        number = len(self.requests)
        self.requests.append(request)
        answer = self._answers[number]
        self.open += 1
        try:
            for delta in [Delta(answer)] if isinstance(answer, str) else answer:
                yield delta
            if number == self._stops:
                self.reached.set()
                await anyio.sleep_forever()
        finally:
            self.open -= 1
        yield Delta(finish_reason="stop")


async def cancelled_at(runner: Runner, reached: anyio.Event, said: str = "hello") -> list[Event]:
    """The events of a run that is cancelled when it has reached a point."""
    events: list[Event] = []

    async def read() -> None:
        events.extend(await all_of(runner, said, request_id="r1"))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await reached.wait()
            assert await runner.cancel("r1")
    assert outcome(events) == "cancelled"
    return events


def roles(request: ModelRequest) -> list[str]:
    """Who says what in a request, as a provider checks it."""
    return [
        f"{m.role}:{','.join(call.id for call in m.tool_calls) or m.tool_call_id or m.text}" for m in request.messages
    ]


PIECES = [Delta(f"{number} ") for number in range(20)]


@pytest.mark.parametrize("keep", [True, False])
async def test_c080_text_that_the_user_saw_is_kept(keep: bool, tmp_path: Path) -> None:
    """A model is cancelled after 20 pieces: the session, read anew, has them, marked; or by policy none, and the
    completion says so."""
    model = Stuck([*PIECES, Delta(usage=TokenUsage(output_tokens=20))])
    url = f"sqlite:///{tmp_path}/a.db"
    policy = RunnerPolicy(keep_partial=keep)
    async with Runner(APP, LLMAgent("bob", model), sessions=SqlSessions(url), policy=policy) as runner:
        events = await cancelled_at(runner, model.reached)
        await runner.sessions.aclose()
    said = "".join(event.delta for event in events)
    assert said == "".join(delta.text for delta in PIECES)
    async with Runner(APP, LLMAgent("bob", model), sessions=SqlSessions(url)) as runner:
        kept = (await stored(runner)).events[1:]
        await runner.sessions.aclose()
    assert [(event.text, event.finish_reason) for event in kept] == ([(said, "cancelled")] if keep else [])
    assert events[-1].extensions.get("discarded", False) is not keep
    assert events[-1].usage == TokenUsage(output_tokens=20)


async def test_c081_a_cancelled_tool_call_gets_a_result() -> None:
    """Cancelled inside a tool, the history has a result for the call, and the next request is well formed."""
    reached = anyio.Event()

    @tool
    async def slow() -> str:
        """Takes for ever."""
        reached.set()
        await anyio.sleep_forever()
        return "never"

    model = ScriptedModel([{"tool_calls": [{"name": "slow", "arguments": {}, "id": "c1"}]}, "fine"])
    async with Runner(APP, LLMAgent("bob", model, tools=[slow])) as runner:
        await cancelled_at(runner, reached)
        assert await runner.run_text(USER, SESSION, "and now?") == "fine"
    assert roles(model.requests[1]) == ["user:hello", "assistant:c1", "tool:c1", "user:and now?"]
    assert "cancelled" in model.requests[1].messages[2].text


class OverSockets:
    """A model behind a real server, over at most ten connections at a time."""

    name = "sockets"
    context_window = None

    def __init__(self, port: int) -> None:
        self._port = port
        self._pool = anyio.CapacityLimiter(10)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """What the server sends, byte by byte; with each byte a token."""
        async with self._pool, await anyio.connect_tcp("127.0.0.1", self._port) as connection:
            await connection.send(request.messages[-1].text.encode() + b"\n")
            async for data in connection:
                for letter in data.decode():
                    yield Delta(letter, usage=TokenUsage(output_tokens=1))
        yield Delta(finish_reason="stop")


async def test_c083_two_hundred_cancelled_runs_leave_no_connection() -> None:
    """Run 201 works over a pool of ten, the server has no connection left, and the usage of each run was counted."""
    opened = 0

    async def serve(connection: anyio.abc.SocketStream) -> None:
        nonlocal opened
        opened += 1
        try:
            async with connection:
                asked = await connection.receive()
                await connection.send(b"x")
                if asked != b"end\n":
                    await connection.receive()  # ends when the client has gone
        except anyio.EndOfStream:
            pass
        finally:
            opened -= 1

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    model = OverSockets(listener.extra(anyio.abc.SocketAttribute.local_port))
    async with anyio.create_task_group() as group, Runner(APP, LLMAgent("bob", model)) as runner:
        group.start_soon(listener.serve, serve)

        async def one(number: int) -> None:
            options = RunOptions(request_id=str(number))
            last = Event()
            async for event in runner.run(USER, f"s{number}", "talk", options):
                last = event
                if event.partial:
                    canceller.start_soon(runner.cancel, str(number))
            assert last.usage == TokenUsage(output_tokens=1)

        for batch in range(10):
            async with anyio.create_task_group() as canceller:
                for number in range(20):
                    canceller.start_soon(one, batch * 20 + number)
        assert await runner.run_text(USER, "last", "end") == "x"
        with anyio.fail_after(5):
            while opened:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    await listener.aclose()


async def test_c083_finish_this_step_then_stop() -> None:
    """`when='after_step'`: a round of tools that has begun is finished and stored, and no model is called after it."""
    reached, go = anyio.Event(), anyio.Event()

    @tool
    async def work() -> str:
        """Works."""
        reached.set()
        await go.wait()
        return "done"

    model = ScriptedModel([{"tool_calls": [{"name": "work", "arguments": {}, "id": "c1"}]}, "never", "next"])
    events: list[Event] = []
    async with Runner(APP, LLMAgent("bob", model, tools=[work])) as runner, anyio.create_task_group() as group:

        async def read() -> None:
            events.extend(await all_of(runner, request_id="r1"))

        async def stop() -> None:
            assert await runner.cancel("r1", when="after_step")

        group.start_soon(read)
        await reached.wait()
        group.start_soon(stop)
        await anyio.wait_all_tasks_blocked()
        go.set()
    assert outcome(events) == "cancelled"
    assert [event.text for event in (await stored(runner)).events] == ["hello", "", "done"]
    assert len(model.requests) == 1


async def test_c083_any_agent_can_be_stopped_after_a_step() -> None:
    """Also one that stores nothing itself: the event that it is about to tell is the last one."""
    reached, go = anyio.Event(), anyio.Event()

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        yield piece("one")
        reached.set()
        await go.wait()
        yield says("one")
        yield says("two")

    async with Runner(APP, Told(body)) as runner, anyio.create_task_group() as group:
        group.start_soon(lambda: all_of(runner, request_id="r1"))
        await reached.wait()
        group.start_soon(lambda: runner.cancel("r1", when="after_step"))
        await anyio.wait_all_tasks_blocked()
        go.set()
    assert [text for _, text in await texts(runner)] == ["hello", "one"]


@pytest.mark.parametrize("closes", [True, False])
async def test_c084_a_reader_that_leaves_stops_the_agent(closes: bool) -> None:
    """The reader stops after the first event, with or without closing the stream: no more lines are written."""
    lines: list[int] = []

    @tool
    async def write() -> str:
        """Writes a line each turn of the event loop."""
        while True:
            lines.append(1)
            await anyio.lowlevel.checkpoint()

    model = ScriptedModel([{"tool_calls": [{"name": "write", "arguments": {}}]}])
    async with Runner(APP, LLMAgent("bob", model, tools=[write])) as runner:
        options = RunOptions(request_id="r1")
        if closes:
            async with aclosing(runner.run(USER, SESSION, "go", options)) as events:
                async for _event in events:
                    break
        else:
            async for _event in runner.run(USER, SESSION, "go", options):
                break
            with anyio.fail_after(5):
                while runner.status("r1") is not None:
                    await anyio.lowlevel.checkpoint()
        written = len(lines)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert len(lines) == written
        assert [author for author, _ in await texts(runner)] == ["user", "bob", "bob"]


CALL = ToolCallDelta(0, "c1", "add", '{"n": 1}')
HALF = ToolCallDelta(0, "c1", "add", '{"n": ')
STAGES = {
    "text": ([[Delta("some ")]], 0, ["user:hello", "assistant:some ", "user:more"]),
    "arguments": ([[Delta("some "), Delta(tool_calls=(HALF,))]], 0, ["user:hello", "assistant:some ", "user:more"]),
    "tool": ([[Delta(tool_calls=(CALL,))]], -1, ["user:hello", "assistant:c1", "tool:c1", "user:more"]),
    "next model": (
        [[Delta(tool_calls=(CALL,))], []],
        1,
        ["user:hello", "assistant:c1", "tool:c1", "user:more"],
    ),
}
"""Stage -> what the model says until then, which answer gets stuck, and the next request."""


@pytest.mark.parametrize("stage", STAGES)
async def test_c090_what_cancelling_means_at_each_stage(stage: str) -> None:
    """The table of docs/runner.md: the history is well formed, half arguments are never run, nothing stays open, and
    the next turn works."""
    answers, stops, following = STAGES[stage]
    ran: list[int] = []
    model = Stuck(*answers, "fine", stops=stops)

    @tool
    async def add(n: int) -> str:
        """Adds."""
        ran.append(n)
        if stage == "tool":
            model.reached.set()
            await anyio.sleep_forever()
        return "added"

    async with Runner(APP, LLMAgent("bob", model, tools=[add]), checkpoints=MemoryCheckpoints()) as runner:
        await cancelled_at(runner, model.reached)
        assert model.open == 0
        assert ran == ([1] if stage in ("tool", "next model") else [])
        assert await runner.run_text(USER, SESSION, "more") == "fine"
        assert roles(model.requests[-1]) == following


async def test_c038_the_parent_s_last_words_come_before_the_child_s_first() -> None:
    """A slow reader of a handover sees all of the parent, then all of the child, as it is in the session."""
    child = LLMAgent("child", ScriptedModel(["my turn"], pieces=2), description="helps")
    words = {
        "content": "over to you",
        "tool_calls": [{"name": "transfer_to_agent", "arguments": {"agent_name": "child"}}],
    }
    parent = LLMAgent("parent", ScriptedModel([words], pieces=3), sub_agents=[child])
    authors: list[str] = []
    async with Runner(APP, parent) as runner:
        async for event in runner.run(USER, SESSION, "hello"):
            await anyio.sleep(0.001)
            authors.append(event.author)
        assert authors == sorted(authors, key=["parent", "child", APP].index)
        assert {"parent", "child"} < set(authors)
        kept = [author for author, _ in (await texts(runner))[1:]]
        assert kept == sorted(kept, key=["parent", "child"].index)


async def test_c218_outcomes_can_be_told_apart() -> None:
    """Cancelled, failed, waiting, and completed runs have different completions."""
    model = ScriptedModel([RuntimeError("boom"), {"tool_calls": [{"name": "ask", "arguments": {}}]}, "ok"])

    @tool(needs_approval=True)
    async def ask() -> str:
        """Asks first."""
        return "done"

    async with Runner(APP, LLMAgent("bob", model, tools=[ask])) as runner:
        seen = [outcome(await all_of(runner))]
        waits = await all_of(runner)
        seen.append(outcome(waits))
        with pytest.raises(InterruptedRunError, match="waits for 'approve:ask'"):
            await all_of(runner, "something else")
        answers = {waits[-1].interrupts[0]["id"]: True}
        seen.append(outcome(await all_of(runner, None, answers=answers)))
        assert "something else" not in [text for _, text in await texts(runner)]
    stuck = Stuck("x")
    async with Runner(APP, LLMAgent("bob", stuck)) as runner:
        seen.append(outcome(await cancelled_at(runner, stuck.reached)))
    assert seen == ["failed", "interrupted", "completed", "cancelled"]


async def test_an_abandoned_question_leaves_a_well_formed_history() -> None:
    """With `abandon` the question is given up; the next request has no call without a result."""

    @tool(needs_approval=True)
    async def ask() -> str:
        """Asks first."""
        return "done"

    model = ScriptedModel([{"tool_calls": [{"name": "ask", "arguments": {}, "id": "c1"}]}, "fine"])
    async with Runner(APP, LLMAgent("bob", model, tools=[ask])) as runner:
        await all_of(runner)
        assert await runner.run_text(USER, SESSION, "never mind", RunOptions(abandon=True)) == "fine"
    asked = [call.id for message in model.requests[1].messages for call in message.tool_calls]
    answered = [message.tool_call_id for message in model.requests[1].messages if message.role == "tool"]
    assert asked == answered
    assert model.requests[1].messages[-1] == Message.user("never mind")
