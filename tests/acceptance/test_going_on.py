"""Runs that nothing new is said to: a turn that nobody began is begun, and what was asked is known to the end."""

from __future__ import annotations

from typing import Any

import pytest

from graphagent import ChainAgent, LLMAgent, MemoryCheckpoints, tool
from graphagent.agents import RunOptions
from graphagent.errors import CheckpointNotFound
from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message
from graphagent.models import ScriptedModel
from processors import REQUEST_CONTEXT, HistoryLimit, SessionProjector, default_pipeline
from runner import Runner
from runner.outcome import OUTCOME
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio
KEY = SessionKey("app", "ann", "s")


@tool(external=True)
async def ticket(text: str) -> str:
    """Ask the service desk."""
    raise NotImplementedError


class House:
    """Sessions and checkpoints that outlive Runners, and what the model was asked."""

    def __init__(self, *items: Any) -> None:
        self.model = ScriptedModel(items)
        self.sessions = InMemorySessions()
        self.kept = MemoryCheckpoints()

    async def run(self, said: str | None) -> list[Event]:
        """A run in a Runner of its own."""
        agent = LLMAgent("bot", self.model, tools=[ticket])
        async with Runner("app", agent, sessions=self.sessions, checkpoints=self.kept) as runner:
            events = [event async for event in runner.run(KEY.user, KEY.session, said)]
        assert events[-1].extensions[OUTCOME] == "completed"
        return [event for event in events if not event.partial]

    async def say_and_die(self, message: Message, **fields: Any) -> None:
        """A run that came no further than the person's words."""
        ids = {"request_id": "r2", "invocation_id": "i2", "branch": "bot", "filter_key": "app"}
        await self.sessions.append(KEY, Event(messages=(message,), **{"author": "user", **ids, **fields}))

    async def texts(self) -> list[str]:
        """What is stored."""
        session = await self.sessions.get(KEY)
        assert session is not None
        return [event.text for event in session.events]


async def test_words_that_no_run_began_on() -> None:
    """In a session with an ended turn: `message=None` answers the new words, once, under the ids that they have."""
    house = House("one", "two", "three")
    await house.run("first")
    await house.say_and_die(Message.user("second"))
    events = await house.run(None)
    assert [(event.text, event.request_id) for event in events[:-1]] == [("two", "r2")]
    assert [m.text for m in house.model.requests[1].messages] == ["first", "one", "second"]
    await house.run("third")
    assert await house.texts() == ["first", "one", "second", "two", "third", "three"]


async def test_the_result_of_an_external_tool_that_no_run_began_on() -> None:
    """The same where the words were the result of a call that somebody else had answered."""
    house = House({"tool_calls": [{"name": "ticket", "arguments": {"text": "x"}, "id": "c1"}]}, "solved")
    await house.run("first")
    await house.say_and_die(Message.tool("done", "c1"), author="bot", kind="tool_result")
    await house.run(None)
    assert await house.texts() == ["first", "", "done", "solved"]


async def test_going_on_where_all_is_said_changes_nothing() -> None:
    """`message=None` after an ended turn calls no model and stores nothing."""
    house = House("one")
    await house.run("first")
    assert [event.kind for event in await house.run(None)] == ["completion"]
    assert await house.texts() == ["first", "one"]


async def test_going_on_with_nothing_leaves_no_event() -> None:
    """`message=None` where nothing was ever said is refused, and no error is stored that nobody made."""
    house = House("one")
    with pytest.raises(CheckpointNotFound):
        await house.run(None)
    assert await house.texts() == []


PROJECTORS = {
    "all": SessionProjector(),
    "request": SessionProjector(default_pipeline(visibility=REQUEST_CONTEXT)),
    "last": SessionProjector(default_pipeline(limit=HistoryLimit(1))),
}


@pytest.mark.parametrize("seen", PROJECTORS)
async def test_an_agent_that_begins_after_the_answer_knows_the_question(seen: str) -> None:
    """A chain stops for an approval in its first agent; the second one begins in the resumed run, and is asked what the
    person asked, once, however little else of the session it sees."""

    @tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    first = ScriptedModel([{"tool_calls": [{"name": "pay", "arguments": {}}]}, "a is done"])
    second = ScriptedModel(["b is done"])
    chain = ChainAgent("bot", [LLMAgent("a", first, tools=[pay]), LLMAgent("b", second)])
    async with Runner("app", chain, projector=PROJECTORS[seen]) as runner:
        events = [event async for event in runner.run("ann", "s", "the question")]
        answers = {events[-1].interrupts[0]["id"]: True}
        assert await runner.run_text("ann", "s", None, RunOptions(answers=answers)) == "b is done"
        stored = await runner.sessions.get(KEY)
    assert [m.text for m in second.requests[0].messages].count("the question") == 1
    assert stored is not None
    assert len({event.request_id for event in stored.events}) == 1
