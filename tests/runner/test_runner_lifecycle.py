"""From call to completion: edge cases 111 to 118 of spec/context, agents by name, time limits, detached runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.run_agents import APP, KEY, SESSION, USER, Sessions, Told, all_of, outcome, piece, says, stored, texts

from graphagent import Message
from graphagent.agents.function_tool import tool
from graphagent.agents.invocation import Invocation, RunOptions
from graphagent.agents.llm_agent import LLMAgent
from graphagent.errors import (
    AgentError,
    NotFound,
    StopAgent,
    UsageError,
)
from graphagent.ledger import ErrorInfo, Event, TokenUsage
from graphagent.models import ScriptedModel
from runner import Runner, RunnerPolicy
from runner.outcome import OUTCOME, REASON, UNREAD
from runner.user_turn import QUEUED

pytestmark = pytest.mark.anyio


class Held:
    """A run that has said something and then waits until it is let go, or cancelled."""

    def __init__(self, *before: Event) -> None:
        self.before = before or (says("begun"),)
        self.reached = anyio.Event()
        self.go = anyio.Event()
        self.left = anyio.Event()

    async def __call__(self, invocation: Invocation) -> AsyncIterator[Event]:
        """The body of the agent."""
        for event in self.before:
            yield event
        self.reached.set()
        try:
            await self.go.wait()
        finally:
            self.left.set()
        yield says("ended")


async def collect(runner: Runner, into: list[Event], said: Any = "hello", **options: Any) -> None:
    """Read a run to its end."""
    into += await all_of(runner, said, **options)


async def read(runner: Runner, into: list[Event]) -> None:
    """Read a run event by event: what came before an exception is kept."""
    async for event in runner.run(USER, SESSION, "hello"):
        into.append(event)


async def test_c111_a_request_id_is_for_one_run_at_a_time() -> None:
    """The same id is refused while its run goes on, in whatever session, and is free when it has ended."""
    held = Held()
    async with Runner(APP, Told(held)) as runner, anyio.create_task_group() as group:
        group.start_soon(lambda: collect(runner, [], request_id="r1"))
        await held.reached.wait()
        with pytest.raises(UsageError, match="request id 'r1' is in use"):
            await all_of(runner, session="other", request_id="r1")
        held.go.set()
    async with Runner(APP, Told([says("hi")])) as runner:
        for _ in range(2):
            assert outcome(await all_of(runner, request_id="r1")) == "completed"


async def test_c112_an_unknown_agent_is_refused_before_anything_is_stored() -> None:
    """The error names the agent and the nearest known one; of the session there is nothing but itself."""
    async with Runner(APP, Told([says("hi")]), agents=[Told([], name="critic")]) as runner:
        with pytest.raises(AgentError, match="no agent 'kritic': did you mean 'critic'"):
            await all_of(runner, agent="kritic")
        assert await texts(runner) == []


async def test_an_agent_is_found_by_name_also_below_others() -> None:
    """A run names an agent of the Runner, one below it, or brings its own."""
    below = Told([says("below")], name="below")
    root = Told([says("root")], name="root", sub_agents=(below,))
    other = Told([says("other")], name="other")
    async with Runner(APP, root, agents=[other]) as runner:
        assert await runner.run_text(USER, "s", "x") == "root"
        for agent in ("below", "other", Told([says("own")], name="own")):
            name = agent if isinstance(agent, str) else agent.name
            assert await runner.run_text(USER, "s", "x", RunOptions(agent=agent)) == name
    with pytest.raises(AgentError, match="two agents are called 'root'"):
        Runner(APP, root, agents=[Told([], name="root")])


async def test_c113_a_cancelled_run_ends_with_a_completion() -> None:
    """The stream ends, the completion says `cancelled`, nothing of it runs any more; a second cancel is False."""
    held = Held(piece("par"), piece("tial", usage=TokenUsage(output_tokens=2)))
    events: list[Event] = []
    async with Runner(APP, Told(held)) as runner, anyio.create_task_group() as group:
        group.start_soon(lambda: collect(runner, events, request_id="r1"))
        await held.reached.wait()
        assert await runner.cancel("r1")
        assert held.left.is_set()
        assert not await runner.cancel("r1")
        assert not await runner.cancel("nobody")
        await anyio.wait_all_tasks_blocked()
        assert outcome(events) == "cancelled"
        assert events[-1].error is not None
        assert events[-1].error.type == "cancelled"
        assert await texts(runner) == [("user", "hello"), ("agent", "partial")]
        [_, kept] = (await stored(runner)).events
        assert (kept.finish_reason, kept.usage) == ("cancelled", TokenUsage(output_tokens=2))
        assert events[-1].usage == TokenUsage(output_tokens=2)
        assert events[-2].text == "partial"


async def test_c113_partial_text_can_be_left_out() -> None:
    """With `keep_partial=False` the session has no partial text, and the completion says that it was discarded."""
    held = Held(piece("partial"))
    events: list[Event] = []
    policy = RunnerPolicy(keep_partial=False)
    async with Runner(APP, Told(held), policy=policy) as runner, anyio.create_task_group() as group:
        group.start_soon(lambda: collect(runner, events, request_id="r1"))
        await held.reached.wait()
        await runner.cancel("r1")
        await anyio.wait_all_tasks_blocked()
        assert await texts(runner) == [("user", "hello")]
        assert events[-1].extensions == {OUTCOME: "cancelled", REASON: "on request", "discarded": True}


@pytest.mark.parametrize("told", [True, False])
async def test_text_that_was_completed_is_not_kept_twice(told: bool) -> None:
    """A node stores its answer while pieces of it are on their way; after a cancel there is the answer alone."""
    reached = anyio.Event()

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        assert invocation.persist is not None
        answer = says("whole")
        await invocation.persist(answer)
        yield piece("wh")
        yield piece("ole")
        if told:
            yield answer
        reached.set()
        await anyio.sleep_forever()

    events: list[Event] = []
    async with Runner(APP, Told(body)) as runner, anyio.create_task_group() as group:
        group.start_soon(lambda: collect(runner, events, request_id="r1"))
        await reached.wait()
        await runner.cancel("r1")
        assert await texts(runner) == [("user", "hello"), ("agent", "whole")]
    assert [event.text for event in events] == ["wh", "ole", "whole", ""]


async def breaks_at_once(invocation: Invocation) -> AsyncIterator[Event]:
    """Raises before its first event."""
    raise RuntimeError("no model")
    yield


async def breaks_later(invocation: Invocation) -> AsyncIterator[Event]:
    """Raises in the middle of an answer."""
    yield piece("half")
    raise RuntimeError("no model")


@pytest.mark.parametrize(("body", "kept"), [(breaks_at_once, []), (breaks_later, ["half"])])
async def test_c114_an_agent_that_raises(body: Any, kept: list[str]) -> None:
    """There is a stored error event, a completion, and then the exception itself; the session is usable afterwards."""
    events: list[Event] = []
    async with Runner(APP, Told(body), agents=[Told([says("fine")], name="other")]) as runner:
        with pytest.raises(RuntimeError, match="no model"):
            await read(runner, events)
        assert outcome(events) == "failed"
        failed = [event for event in (await stored(runner)).events if event.error is not None]
        assert [event.error for event in failed] == [
            ErrorInfo(type="run_error", message="no model", code="RuntimeError")
        ]
        assert [event.text for event in (await stored(runner)).events if event.finish_reason == "cancelled"] == kept
        assert outcome(await all_of(runner, agent="other")) == "completed"


async def test_stop_agent_has_an_error_type_of_its_own() -> None:
    """An agent that is stopped by StopAgent is told apart from one that broke."""

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        raise StopAgent("enough")
        yield

    async with Runner(APP, Told(body)) as runner:
        events: list[Event] = []
        with pytest.raises(StopAgent):
            await read(runner, events)
        assert events[-1].error is not None
        assert events[-1].error.type == "stop_agent_error"


async def test_c116_what_is_said_while_a_run_goes_on() -> None:
    """It is stored and shown when the agent takes it, before a model call; what nobody took is told at the end."""
    reached, go = anyio.Event(), anyio.Event()
    taken: list[Message] = []

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        assert invocation.queued is not None
        yield says("first")
        reached.set()
        await go.wait()
        taken.extend(await invocation.queued())
        yield says("second")
        runner.say("r1", "too late")

    events: list[Event] = []
    async with Runner(APP, Told(body)) as runner:
        with pytest.raises(NotFound, match="'r1'"):
            runner.say("r1", "hello?")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: collect(runner, events, request_id="r1"))
            await reached.wait()
            for wrong in ("", Message.assistant("x"), Message.tool("x", "c1")):
                with pytest.raises(UsageError, match=r"role|empty"):
                    runner.say("r1", wrong)
            runner.say("r1", "wait")
            go.set()
        assert [event.text for event in events] == ["first", "wait", "second", ""]
        assert taken == [Message.user("wait")]
        assert [event.text for event in (await stored(runner)).events] == ["hello", "first", "wait", "second"]
        assert (await stored(runner)).events[2].extensions == {QUEUED: "consumed"}
        assert events[-1].extensions[UNREAD] == ["too late"]


async def test_c116_it_is_in_the_next_request_of_the_model() -> None:
    """What a user says while a tool runs stands before the model's next step, in the request and in the session."""

    @tool
    async def look() -> str:
        """Looks."""
        runner.say("r1", "look closer")
        return "seen"

    model = ScriptedModel([{"tool_calls": [{"name": "look", "arguments": {}}]}, "fine"])
    async with Runner(APP, LLMAgent("agent", model, tools=[look])) as runner:
        events = await all_of(runner, request_id="r1")
        assert outcome(events) == "completed"
        assert [message.text for message in model.requests[1].messages] == ["hello", "", "seen", "look closer"]
        assert [text for _, text in await texts(runner)] == ["hello", "", "seen", "look closer", "fine"]


async def test_c118_close_twice_and_a_service_that_was_given() -> None:
    """A second close does nothing; what was handed to the Runner stays open, what it made is closed."""
    closed = []

    class Watched(Sessions):
        async def aclose(self) -> None:
            closed.append(self)

    runner = Runner(APP, Told([says("hi")]), sessions=Watched())
    await runner.close()
    await runner.close()
    assert closed == []
    with pytest.raises(UsageError, match="closed"):
        await all_of(runner)


async def test_close_ends_the_runs_that_go_on() -> None:
    """Every run is cancelled in an orderly way, and has ended when close returns."""
    held = Held()
    events: list[Event] = []
    async with anyio.create_task_group() as group:
        runner = Runner(APP, Told(held))
        group.start_soon(lambda: collect(runner, events))
        await held.reached.wait()
        await runner.close()
        assert held.left.is_set()
    assert outcome(events) == "cancelled"


async def test_status_follows_a_run() -> None:
    """It says who runs where since when and how much it has told, and nothing once the run has ended."""
    held = Held(says("a"), piece("b"))
    async with Runner(APP, Told(held)) as runner, anyio.create_task_group() as group:
        group.start_soon(lambda: collect(runner, [], request_id="r1"))
        await held.reached.wait()
        status = runner.status("r1")
        assert status is not None
        assert (status.session, status.phase, status.agent, status.event_count) == (KEY, "running", "agent", 2)
        assert status.last_event_at is not None
        assert status.started_at <= status.last_event_at
        held.go.set()
    assert runner.status("r1") is None


async def test_a_run_has_a_time_limit() -> None:
    """When `max_seconds` are over the run ends as at a limit, with its reason, and keeps what it had said."""
    held = Held(piece("part"))
    async with Runner(APP, Told(held)) as runner:
        events = await all_of(runner, max_seconds=0.02)
        assert outcome(events) == "limit_reached"
        assert events[-1].extensions[REASON] == "time"
        assert await texts(runner) == [("user", "hello"), ("agent", "part")]


async def test_a_detached_run_goes_on_without_its_reader() -> None:
    """The reader leaves after the first event; the run is still there, ends by itself, and is in the session."""
    held = Held()
    async with Runner(APP, Told(held)) as runner:
        async with aclosing(runner.run(USER, SESSION, "hello", RunOptions(request_id="r1", detached=True))) as events:
            async for _event in events:
                break
        await held.reached.wait()
        assert runner.status("r1") is not None
        held.go.set()
        while runner.status("r1") is not None:
            await anyio.lowlevel.checkpoint()
        assert [text for _, text in await texts(runner)] == ["hello", "begun", "ended"]


async def test_a_detached_run_can_be_cancelled() -> None:
    """`cancel` reaches it by its request id."""
    held = Held()
    async with Runner(APP, Told(held)) as runner:
        async with aclosing(runner.run(USER, SESSION, "hello", RunOptions(request_id="r1", detached=True))) as events:
            async for _event in events:
                break
        assert await runner.cancel("r1")
        assert runner.status("r1") is None
