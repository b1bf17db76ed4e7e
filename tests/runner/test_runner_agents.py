"""Which agent a run is of: named, made by a factory, or the one that asked; spec/services 3.10, spec/context 4.2."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.run_agents import APP, SESSION, USER, Told, all_of, outcome, says, stored, texts

from graphagent import LLMAgent, MemoryCheckpoints, tool
from graphagent.agents import AgentTool
from graphagent.agents.agent_tool import TRIGGER
from graphagent.agents.await_reply import AWAITING, await_user_reply
from graphagent.agents.invocation import Invocation
from graphagent.errors import AgentError
from graphagent.ledger import Event
from graphagent.models import ScriptedModel
from runner import AgentRequest, Runner
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio
KEEP = {"tool_calls": [{"name": "await_user_reply", "arguments": {}}]}
TO_CLERK = {"tool_calls": [{"name": "clerk", "arguments": {"message": "ask for the order"}}]}


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


def desk(*clerk_says: Any, boss_says: Any = (TO_CLERK, "The boss again.")) -> tuple[LLMAgent, ScriptedModel]:
    """A boss that hands over to a clerk, who may keep the conversation."""
    model = ScriptedModel(list(clerk_says))
    clerk = LLMAgent("clerk", model, tools=[await_user_reply, pay])
    return LLMAgent("boss", ScriptedModel(list(boss_says)), sub_agents=[clerk]), model


# -- who asked gets the answer -----------------------------------------------------------------------


async def test_the_next_message_comes_to_the_agent_that_asked() -> None:
    """It holds for one message, sees the whole conversation, and is over then; the event says how it came there."""
    boss, model = desk(KEEP, "Which order?", "Thanks.")
    async with Runner(APP, boss) as runner:
        await all_of(runner, "hello")
        events = await all_of(runner, "number 7")
        assert [event.author for event in events if event.is_final] == ["clerk"]
        assert {"hello", "Which order?", "number 7"} <= {message.text for message in model.requests[2].messages}
        session = await stored(runner)
        assert session.state.get(AWAITING) is None
        assert [event.extensions.get("routed") for event in session.events if event.is_user] == [
            None,
            {"name": "clerk", "within": "boss"},
        ]
        assert (await all_of(runner, "bye"))[-2].text == "The boss again."


async def test_an_agent_that_asks_again_keeps_on() -> None:
    """Each call of the tool holds for one message more, also over another Runner on the same services."""
    sessions, checkpoints = InMemorySessions(), MemoryCheckpoints()
    boss, _ = desk(KEEP, "Which order?", KEEP, "Which year?", "Thanks.")
    answers = []
    for said in ("hello", "7", "2024"):
        async with Runner(APP, boss, sessions=sessions, checkpoints=checkpoints) as runner:
            answers.append(await runner.run_text(USER, SESSION, said))
    assert answers == ["Which order?", "Which year?", "Thanks."]


async def test_a_caller_who_names_an_agent_decides() -> None:
    """A named agent gets the message all the same, and what was kept is used up."""
    boss, _ = desk(KEEP, "Which order?")
    async with Runner(APP, boss, agents=[Told([says("other")], "other")]) as runner:
        await all_of(runner, "hello")
        assert (await all_of(runner, "7", agent="other"))[0].text == "other"
        assert (await all_of(runner, "7"))[-2].text == "The boss again."


async def test_a_question_of_the_agent_that_was_come_back_to() -> None:
    """Its run that is interrupted goes on by answers, without anybody naming the agent."""
    boss, _ = desk(KEEP, "Which order?", {"tool_calls": [{"name": "pay", "arguments": {}}]}, "Paid.")
    async with Runner(APP, boss) as runner:
        await all_of(runner, "hello")
        assert outcome(await all_of(runner, "7")) == "interrupted"
        events = await all_of(runner, None, answers={"approve:pay": True})
        assert outcome(events) == "completed"
        assert events[-2].text == "Paid."


async def test_an_agent_that_is_gone_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """After a deploy without it the message comes to the Runner's own agent, and the log says so."""
    sessions = InMemorySessions()
    boss, _ = desk(KEEP, "Which order?")
    async with Runner(APP, boss, sessions=sessions) as runner:
        await all_of(runner, "hello")
    async with Runner(APP, Told([says("new")], "new"), sessions=sessions) as runner:
        with caplog.at_level(logging.WARNING):
            assert await runner.run_text(USER, SESSION, "7") == "new"
    assert "agent 'clerk', which waits for a message" in caplog.text


async def test_an_agent_that_is_a_tool_keeps_nothing() -> None:
    """It talks with the agent that called it, is told so, and its words are not the run's."""
    model = ScriptedModel([KEEP, "Which order?"])
    inner = LLMAgent("inner", model, tools=[await_user_reply])
    ask = {"tool_calls": [{"name": "inner", "arguments": {"request": "?"}}]}
    async with Runner(APP, LLMAgent("outer", ScriptedModel([ask, "Out."]), tools=[AgentTool(inner)])) as runner:
        events = await all_of(runner, "hello")
        assert {event.author for event in events[:-1]} == {"outer"}
        session = await stored(runner)
        assert AWAITING not in session.state
        kept = [event for event in session.events if event.author == "inner"]
        assert {event.extensions[TRIGGER]["name"] for event in kept} == {"inner"}
    assert "no person talks with you" in model.requests[1].messages[-1].text


# -- factories ---------------------------------------------------------------------------------------


class Closing(Told):
    """An agent that writes down when it is closed."""

    def __init__(self, log: list[str], name: str = "made", **fields: Any) -> None:
        super().__init__([says("made for it")], name, **fields)
        self.log = log

    async def aclose(self) -> None:
        self.log.append("closed")


def _plain(log: list[str]) -> Any:
    return lambda request: Closing(log)


def _waiting(log: list[str]) -> Any:
    async def make(request: AgentRequest) -> Closing:
        await anyio.lowlevel.checkpoint()
        return Closing(log)

    return make


def _opened(log: list[str]) -> Any:
    @asynccontextmanager
    async def make(request: AgentRequest) -> AsyncIterator[Told]:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            yield Told([says("made for it")], "made")
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        log.append("closed")

    return make


@pytest.mark.parametrize("kind", [_plain, _waiting, _opened])
async def test_a_factory_makes_an_agent_for_each_run(kind: Any) -> None:
    """A function, an async one, or a context manager; what it made is closed before the run's completion goes out."""
    log: list[str] = []
    async with Runner(APP, Told([says("own")]), factories={"made": kind(log)}) as runner:
        for number in (1, 2):
            async for event in runner.run(USER, SESSION, "hello", _options("made")):
                if event.kind == "completion":
                    assert len(log) == number
        assert log == ["closed"] * 2
        assert (await all_of(runner, "hello"))[0].text == "own"
    assert [author for author, _ in await texts(runner)] == ["user", "made", "user", "made", "user", "agent"]


def _options(agent: str) -> Any:
    from graphagent.agents import RunOptions

    return RunOptions(agent=agent)


async def test_a_factory_knows_the_run() -> None:
    """It gets the session, the request id and the options, and may be the Runner's own agent."""
    asked: list[AgentRequest] = []

    def make(request: AgentRequest) -> Told:
        asked.append(request)
        return Told([says(f"hello {request.options.extra['who']}")], "made")

    async with Runner(APP, "made", factories={"made": make}) as runner:
        events = await all_of(runner, "hello", request_id="r1", extra={"who": "Ann"})
    assert events[0].text == "hello Ann"
    assert (asked[0].name, asked[0].request_id, asked[0].session.id) == ("made", "r1", SESSION)


@pytest.mark.parametrize("kind", [_plain, _opened])
async def test_a_run_that_is_cancelled_closes_its_agent(kind: Any) -> None:
    """Whole: closing is not cut short by the cancellation."""
    log: list[str] = []
    begun = anyio.Event()

    async def wait(invocation: Invocation) -> AsyncIterator[Event]:
        begun.set()
        await anyio.sleep_forever()
        yield says("never")

    made = kind(log)

    @asynccontextmanager
    async def make(request: AgentRequest) -> AsyncIterator[Told]:
        given = made(request)
        if hasattr(given, "__aenter__"):
            async with given:
                yield Told(wait, "made")
        else:
            yield Told(wait, "made")
            await given.aclose()

    async with Runner(APP, "made", factories={"made": make}) as runner, anyio.create_task_group() as group:

        async def stop() -> None:
            await begun.wait()
            await runner.cancel("r1")

        group.start_soon(stop)
        assert outcome(await all_of(runner, "hello", request_id="r1")) == "cancelled"
        assert log == ["closed"]


def _fails(request: AgentRequest) -> Any:
    raise ValueError("no key")


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        (_fails, "factory 'made' failed: ValueError: no key"),
        (lambda request: 7, "factory 'made' made 7, which is no agent"),
        (lambda request: Told([], "else"), "factory 'made' made an agent called 'else'"),
    ],
)
async def test_a_factory_that_makes_nothing_keeps_the_run_from_beginning(factory: Any, told: str) -> None:
    """It is raised as an AgentError that names the factory; nothing is stored, and the next run can begin."""
    async with Runner(APP, Told([says("own")]), factories={"made": factory}) as runner:
        with pytest.raises(AgentError, match=told):
            await all_of(runner, "hello", agent="made")
        assert (await stored(runner)).events == []
        assert outcome(await all_of(runner, "hello")) == "completed"


async def test_closing_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The run has ended as it has; what closing raised is in the log, with the factory's name."""

    class Broken(Told):
        async def aclose(self) -> None:
            raise ValueError("stuck")

    async with Runner(APP, "made", factories={"made": lambda request: Broken([says("hi")], "made")}) as runner:
        with caplog.at_level(logging.ERROR):
            assert outcome(await all_of(runner, "hello")) == "completed"
    assert "closing the agent of factory 'made' failed" in caplog.text


async def test_an_agent_below_one_that_is_made_keeps_the_conversation() -> None:
    """The next message makes the whole again and finds the agent in it."""
    boss, model = desk(KEEP, "Which order?", "Thanks.")
    async with Runner(APP, "boss", factories={"boss": lambda request: boss}) as runner:
        await all_of(runner, "hello")
        assert await runner.run_text(USER, SESSION, "7") == "Thanks."
    assert len(model.requests) == 3


def test_names_of_agents() -> None:
    """Two of one name, and a default that is not there, are refused with what there is."""
    with pytest.raises(AgentError, match="'agent' is an agent and a factory"):
        Runner(APP, Told([]), factories={"agent": lambda request: Told([])})
    with pytest.raises(AgentError, match=r"there is no agent 'nobody'.*'made'"):
        Runner(APP, "nobody", factories={"made": lambda request: Told([])})
