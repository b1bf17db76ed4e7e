"""Summaries in a Runner: when they are asked for, and what the next request then holds."""

from __future__ import annotations

from typing import Any

import pytest
from support.rolling import Steered

from graphagent import LLMAgent, Message, ParallelAgent, tool
from graphagent.ledger import WHOLE, ErrorInfo, Event, SessionKey
from graphagent.models import ScriptedModel
from graphagent.services import SessionService
from graphagent.testing.service_help import asks, says
from runner import Runner
from runner.summary.upkeep import calls_for_summary

pytestmark = pytest.mark.anyio
Sessions = SessionService
CALL = {"tool_calls": [{"name": "look", "arguments": {}}]}


@tool
async def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize(
    ("event", "called_for"),
    [
        (asks("q"), False),
        (Event(messages=(Message.assistant("", tool_calls=({"id": "1", "name": "x"},)),)), False),  # type: ignore[arg-type]
        (says("a", error=ErrorInfo(type="api_error", message="m")), False),
        (says("a", skip_summarization=True), False),
        (Event(state_delta={"k": 1}), False),
        (says("a", partial=True), False),
        (Event(kind="tool_result", messages=(Message.tool("r", "1"),)), True),
        (says("a"), True),
    ],
    ids=["user", "tool call", "error", "skipped", "state", "partial", "tool result", "answer"],
)
def test_c021_what_calls_for_a_summary(event: Event, called_for: bool) -> None:
    """Results of tools and answers do; what a person said, calls, errors and what says so itself don't."""
    assert calls_for_summary(event) is called_for


def test_c022_between_calls() -> None:
    """If summaries are made between the calls of a turn, a tool's result calls for none in the background."""
    result = Event(kind="tool_result", messages=(Message.tool("r", "1"),))
    assert not calls_for_summary(result, between_calls=True)
    assert calls_for_summary(says("a"), between_calls=True)


async def test_the_next_turn_has_the_summary_instead(sessions: Sessions) -> None:
    """After a turn its summary is made in the background; the next turn's request holds it, and none of what it
    covers, while the session still has every event."""
    model = ScriptedModel(["first answer", "second answer"])
    steered = Steered(lambda given: "They spoke of Oslo.")
    async with Runner("app", LLMAgent("bot", model), sessions=sessions, summaries=steered) as runner:
        await runner.run_text("ann", "s1", "first question")
    async with Runner("app", LLMAgent("bot", model), sessions=sessions, summaries=steered) as runner:
        await runner.run_text("ann", "s1", "second question")
    told = " ".join(message.text for message in model.requests[1].messages)
    assert "They spoke of Oslo." in told
    assert "first" not in told
    assert "second question" in told
    session = await sessions.get(SessionKey("app", "ann", "s1"))
    assert session is not None
    assert [event.text for event in session.events][:2] == ["first question", "first answer"]
    assert set(session.summaries) == {"app", WHOLE}
    await sessions.delete(SessionKey("app", "ann", "s1"))


async def test_a_failing_summariser_costs_no_turn(sessions: Sessions) -> None:
    """The turns go on with the whole history."""
    model = ScriptedModel([CALL, "one", "two"])
    steered = Steered(lambda given: RuntimeError("down"))
    async with Runner("app", LLMAgent("bot", model, tools=[look]), sessions=sessions, summaries=steered) as runner:
        assert await runner.run_text("ann", "s2", "q") == "one"
        assert await runner.run_text("ann", "s2", "r") == "two"
    assert "seen" in [message.text for message in model.requests[2].messages]
    await sessions.delete(SessionKey("app", "ann", "s2"))


async def test_branches_have_their_own(sessions: Sessions) -> None:
    """Two branches of a parallel agent in one session: in the second turn each model sees the summary of its own branch
    and none of the other's words; the whole session's summary has advanced as well."""
    models = {name: ScriptedModel([f"{name} one", f"{name} two"]) for name in ("a", "b")}
    both = ParallelAgent("both", [LLMAgent(name, models[name]) for name in models])

    def text(given: Any) -> str:
        said = " ".join(event.text for event in given.events if not event.is_user)
        return f"{given.previous.text if given.previous else ''}<{given.filter_key or 'all'}: {said}>"

    for question in ("first", "second"):
        async with Runner("app", both, sessions=sessions, summaries=Steered(text)) as runner:
            async for _ in runner.run("ann", "s3", question):
                pass
    for name, other in (("a", "b"), ("b", "a")):
        told = " ".join(message.text for message in models[name].requests[1].messages)
        assert f"<app/{name}: {name} one>" in told
        assert f"{other} one" not in told
        assert "second" in told
    session = await sessions.get(SessionKey("app", "ann", "s3"))
    assert session is not None
    assert [word for word in ("a one", "b one", "a two", "b two") if word not in session.summaries[WHOLE].text] == []
    await sessions.delete(SessionKey("app", "ann", "s3"))
