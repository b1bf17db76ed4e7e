"""What of a run goes into its session: edge cases 6, 7, 17 to 20, 73, 115 and 117 of spec/context."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from support.run_agents import APP, KEY, SESSION, USER, Sessions, Told, all_of, outcome, piece, says, stored, texts

from graphagent import Message
from graphagent.agents.function_tool import tool
from graphagent.agents.invocation import Invocation
from graphagent.agents.llm_agent import LLMAgent
from graphagent.ledger import ErrorInfo, Event
from graphagent.messages import ToolCall
from graphagent.models import ScriptedModel
from runner import Plugin, Runner
from runner.persistence import APOLOGY

pytestmark = pytest.mark.anyio


async def test_c006_partial_events_are_handed_out_and_not_stored() -> None:
    """Pieces of text reach the reader; the session has the complete answer only."""
    async with Runner(APP, Told([piece("h"), piece("i"), says("hi")])) as runner:
        events = await all_of(runner)
        assert [event.text for event in events[:-1]] == ["h", "i", "hi"]
        assert await texts(runner) == [("user", "hello"), ("agent", "hi")]


async def test_c007_a_state_delta_without_content_changes_the_state_only() -> None:
    """An event with nothing but a state delta is no event of the history, but moves the session."""
    async with Runner(APP, Told([Event(kind="state", state_delta={"n": 1}), says("done")])) as runner:
        await all_of(runner)
        session = await stored(runner)
        assert [event.text for event in session.events] == ["hello", "done"]
        assert session.state == {"n": 1}
        assert session.updated_at > session.created_at


def fails_for(text: str, times: int) -> Any:
    """Appends of events with that text fail so many times."""
    return lambda event, attempt: event.text == text and attempt <= times


async def test_c017_an_append_that_fails_once_is_tried_again() -> None:
    """One failure of the store is not seen at all: the second attempt stores the event, once."""
    async with Runner(APP, Told([says("hi")]), sessions=Sessions(fails_for("hi", 1))) as runner:
        events = await all_of(runner)
        assert outcome(events) == "completed"
        assert events[-1].error is None
        assert await texts(runner) == [("user", "hello"), ("agent", "hi")]


async def test_c017_the_run_goes_on_if_the_agent_says_so() -> None:
    """With `on_append_failure='continue'` the event still goes out, the run goes on, the completion tells of it."""
    told = Told([says("lost"), says("kept")], on_append_failure="continue")
    async with Runner(APP, told, sessions=Sessions(fails_for("lost", 99))) as runner:
        events = await all_of(runner)
        assert [event.text for event in events] == ["lost", "kept", ""]
        assert outcome(events) == "completed"
        assert events[-1].error is not None
        assert "the database is gone" in events[-1].error.message
        assert await texts(runner) == [("user", "hello"), ("agent", "kept")]


async def test_c017_else_the_run_ends_and_says_so() -> None:
    """By default an event that can't be stored ends the run; the reader gets the event, an error and a completion."""
    async with Runner(APP, Told([says("lost"), says("never")]), sessions=Sessions(fails_for("lost", 99))) as runner:
        events = await all_of(runner)
        assert [event.text for event in events] == ["lost", APOLOGY, ""]
        assert outcome(events) == "failed"
        assert events[-1].error is not None
        assert "the database is gone" in events[-1].error.message


async def test_c017_what_could_not_be_stored_is_tried_again_at_the_end() -> None:
    """The store fails while a tool's result is stored, and is back soon after: the run fails, nothing is missing."""

    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    model = ScriptedModel([{"tool_calls": [{"name": "look", "arguments": {}}]}, "never", "fine"])
    sessions = Sessions(fails_for("seen", 2))
    async with Runner(APP, LLMAgent("agent", model, tools=[look]), sessions=sessions) as runner:
        events = await all_of(runner)
        assert outcome(events) == "failed"
        said = [("user", "hello"), ("agent", ""), ("agent", "seen"), ("agent", APOLOGY)]
        assert sorted(await texts(runner)) == sorted(said)
        assert await runner.run_text(USER, SESSION, "again") == "never"
        assert [message.role for message in model.requests[1].messages][:3] == ["user", "assistant", "tool"]


async def test_c018_an_event_that_comes_twice_is_stored_once() -> None:
    """The same event, from a node and then twice in the stream, also from two at once, is stored and shown once."""
    event = says("hi")

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        assert invocation.persist is not None
        async with anyio.create_task_group() as group:
            group.start_soon(invocation.persist, event)
            group.start_soon(invocation.persist, event)
        yield event
        yield event

    sessions = Sessions()
    async with Runner(APP, Told(body), sessions=sessions) as runner:
        assert [one.text for one in await all_of(runner)] == ["hi", ""]
        assert [one.text for one in sessions.attempts] == ["hello", "hi"]


async def test_c018_a_failed_append_is_made_up_for_when_the_event_comes_again() -> None:
    """The first append fails for good; when the event comes a second time it is stored, once."""
    event = says("hi")

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        assert invocation.persist is not None
        with pytest.raises(ConnectionError):
            await invocation.persist(event)
        yield event

    async with Runner(APP, Told(body), sessions=Sessions(fails_for("hi", 2))) as runner:
        events = await all_of(runner)
        assert outcome(events) == "completed"
        assert await texts(runner) == [("user", "hello"), ("agent", "hi")]


async def test_what_a_node_stored_and_the_agent_did_not_tell_is_handed_out() -> None:
    """An event that only `persist` has seen reaches the reader before the completion."""

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        assert invocation.persist is not None
        await invocation.persist(says("quiet"))
        yield says("loud")

    async with Runner(APP, Told(body)) as runner:
        assert [event.text for event in await all_of(runner)] == ["loud", "quiet", ""]


async def test_c019_an_error_without_content_is_stored_with_a_text() -> None:
    """It gets a general text and the finish reason `error`, on a copy; the agent's own event stays as it was."""
    failed = Event(kind="error", error=ErrorInfo(type="api_error", message="no route to the model"))
    async with Runner(APP, Told([failed])) as runner:
        events = await all_of(runner)
        assert outcome(events) == "failed"
        [_, kept] = (await stored(runner)).events
        assert (kept.text, kept.finish_reason, kept.error) == (APOLOGY, "error", failed.error)
        assert failed.messages == ()


async def test_c019_an_error_with_content_keeps_it() -> None:
    """An error that says something itself is stored as it is."""
    failed = says("sorry", error=ErrorInfo(type="api_error", message="no"))
    async with Runner(APP, Told([failed])) as runner:
        await all_of(runner)
        assert await texts(runner) == [("user", "hello"), ("agent", "sorry")]


class Censor(Plugin):
    """Keeps answers with a word out of sessions, and edits others."""

    name = "censor"

    async def before_append(self, invocation: Invocation, event: Event) -> Event | None:
        """None for secrets; whispers are stored aloud."""
        if "secret" in event.text:
            return None
        changed = tuple(message.model_copy(update={"content": message.text.upper()}) for message in event.messages)
        return event.model_copy(update={"messages": changed})


async def test_c020_a_hook_decides_what_is_stored() -> None:
    """What it holds back is not stored, what it edits is stored edited; the reader gets both as they were."""
    async with Runner(APP, Told([says("a secret"), says("hi")]), plugins=[Censor()]) as runner:
        assert [event.text for event in await all_of(runner)] == ["a secret", "hi", ""]
        assert await texts(runner) == [("user", "HELLO"), ("agent", "HI")]


async def test_c020_the_hook_sees_what_a_user_says_too() -> None:
    """A user's message is stored as the hook gives it back; the agent is asked what was said."""
    told = Told([])
    async with Runner(APP, told, plugins=[Censor()]) as runner:
        await all_of(runner, "hi")
        await all_of(runner, "my secret")
        assert await texts(runner) == [("user", "HI")]
        assert told.invocations[1].message == Message.user("my secret")


HISTORY = (Message.user("first"), Message.assistant("second"))


async def test_c073_seed_history_is_for_new_sessions_only() -> None:
    """It is stored before the user's message; a session with events doesn't want it."""
    async with Runner(APP, Told([says("hi")])) as runner:
        await all_of(runner, history=HISTORY)
        first = [("user", "first"), ("agent", "second"), ("user", "hello"), ("agent", "hi")]
        assert await texts(runner) == first
        await all_of(runner, "again", history=HISTORY)
        assert await texts(runner) == [*first, ("user", "again"), ("agent", "hi")]


async def test_c073_a_seed_that_is_said_now_is_not_stored_twice() -> None:
    """History whose last message is what the user says now: that one is the current turn."""
    told = Told([says("hi")])
    async with Runner(APP, told) as runner:
        await all_of(runner, history=(*HISTORY, Message.user("hello")))
        events = (await stored(runner)).events
        assert [event.text for event in events] == ["first", "second", "hello", "hi"]
        assert [bool(event.extensions) for event in events] == [True, True, False, False]
        assert told.invocations[0].message == Message.user("hello")


async def test_c115_a_user_message_that_cannot_be_stored_ends_the_run() -> None:
    """The reader gets the store's error, the agent never runs, and the request id is free again."""
    told = Told([says("hi")])
    async with Runner(APP, told, sessions=Sessions(lambda event, attempt: event.author == "user")) as runner:
        with pytest.raises(ConnectionError):
            await all_of(runner, request_id="r1")
        assert told.invocations == []
        assert runner.status("r1") is None
        runner.sessions.fails = lambda event, attempt: False  # type: ignore[attr-defined]
        assert outcome(await all_of(runner, request_id="r1")) == "completed"


async def test_c117_what_a_node_persists_is_stored_when_it_goes_on() -> None:
    """`persist` returns when the event is in the session, so that every later projection sees it."""
    seen = []

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        assert invocation.persist is not None
        event = says("one")
        await invocation.persist(event)
        session = await runner.sessions.get(KEY)
        assert session is not None
        seen.extend(one.text for one in session.events)
        yield event

    async with Runner(APP, Told(body)) as runner:
        await all_of(runner)
    assert seen == ["hello", "one"]


async def test_blanks_of_an_event_are_filled_and_the_rest_is_kept() -> None:
    """Ids, author, branch and filter key that an agent leaves open come from the invocation."""
    own = Event(messages=(Message.assistant("b"),), author="other", branch="agent/other", filter_key="app/other")
    async with Runner(APP, Told([says("a"), own])) as runner:
        events = await all_of(runner, request_id="r1")
        assert {event.request_id for event in events} == {"r1"}
        assert len({event.invocation_id for event in events}) == 1
        places = [(event.author, event.branch, event.filter_key) for event in events]
        assert places == [("agent", "agent", APP), ("other", "agent/other", "app/other"), (APP, "agent", APP)]


async def test_results_of_external_tools_are_one_event_of_the_agent() -> None:
    """Trailing tool messages go in together, under the agent's name; the last one is what the agent is asked."""
    results = [Message.tool("1", "c1"), Message.tool("2", "c2")]
    told = Told([says("thanks")])
    async with Runner(APP, told) as runner:
        await all_of(runner)
        await all_of(runner, results)
        event = (await stored(runner)).events[2]
        assert (event.author, event.kind, event.messages) == ("agent", "tool_result", tuple(results))
        assert told.invocations[1].message == results[-1]


async def test_the_snapshot_has_the_current_turn() -> None:
    """`invocation.session` is a copy of the session with what the user says now; changing it changes nothing."""
    told = Told([says("hi")])
    async with Runner(APP, told) as runner:
        await all_of(runner, "one")
        await all_of(runner, "two")
        session = told.invocations[1].session
        assert session is not None
        assert [event.text for event in session.events] == ["one", "hi", "two"]
        session.events.clear()
        assert len(await texts(runner)) == 4


@pytest.mark.parametrize(
    "said", ["", Message.user(""), Message.assistant("x"), Message.system("x"), [Message.user("")]]
)
async def test_what_nobody_can_say_is_refused(said: Any) -> None:
    """An empty message, or one of a role that no person has, never reaches the session."""
    async with Runner(APP, Told([says("hi")])) as runner:
        with pytest.raises(Exception, match="asked with"):
            await all_of(runner, said)
        assert await runner.sessions.list(APP, USER) == []


async def test_open_calls_of_a_finished_run_stay_open() -> None:
    """A call of an external tool has no result at the end of the run; nobody makes one up."""
    call = Message.assistant("", tool_calls=(ToolCall(id="c1", name="far", arguments={}),))
    asked = Event(messages=(call,), long_running_tool_ids=frozenset({"c1"}))
    async with Runner(APP, Told([asked])) as runner:
        assert outcome(await all_of(runner)) == "completed"
        assert len((await stored(runner)).events) == 2
