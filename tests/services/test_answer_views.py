"""What a model saw is kept with its answer, in sessions of every kind: what was in, out or changed, and why."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from graphagent import LLMAgent, ParallelAgent, StateGraph, tool
from graphagent.agents.graph_agent import GraphAgent
from graphagent.agents.invocation import Invocation, RunOptions
from graphagent.agents.model import Delta, ModelRequest
from graphagent.graph.schema import MessagesState
from graphagent.ledger import Event, Session, SessionKey
from graphagent.messages import Message, ToolCall
from graphagent.model_view import MOST_SPANS, Fate, joined
from graphagent.models import ScriptedModel
from processors import HistoryLimit, SessionProjector, default_pipeline, explain_projection, seen_by
from runner import Runner

pytestmark = pytest.mark.anyio


@tool
def look(what: str) -> str:
    """Look at something."""
    return f"seen {what}"


LOOK = {"tool_calls": [{"name": "look", "arguments": {"what": "x"}}]}
OpenSessions = Callable[..., Any]
Seen = list[tuple[str, str, tuple[str, ...]]]


async def stored(sessions: Any, key: SessionKey) -> Session:
    """The session, read anew."""
    found: Session | None = await sessions.get(key)
    assert found is not None
    return found


def views(session: Session) -> dict[str, Seen]:
    """By the text of an answer (`>` for one that asks for tools) which events its model saw, as they were said."""
    found = {}
    for event in session.events:
        seen = seen_by(session, event.id)
        if seen is not None:
            found[event.text or ">"] = [(one.event.text or ">", one.verdict, one.reasons) for one in seen]
    return found


def shown(seen: Seen) -> list[str]:
    """The texts of what was in."""
    return [text for text, verdict, _ in seen if verdict != "out"]


async def test_a_stored_answer_tells_what_its_model_saw(open_sessions: OpenSessions, app: str) -> None:
    """A history that is cut, and one with a call that has no result: what the event says is what the request had."""
    key, model = SessionKey(app, "ann", "s1"), ScriptedModel(["a1", LOOK, "a2", "a3", "a4"])
    projector = SessionProjector(default_pipeline(limit=HistoryLimit(4)))
    async with open_sessions() as sessions:
        agent = LLMAgent("bob", model, "Be brief.", [look])
        async with Runner(app, agent, sessions=sessions, projector=projector) as runner:
            for text in ("one", "two", "three"):
                await runner.run_text("ann", "s1", text)
            call = Message.assistant("let me", tool_calls=(ToolCall(id="gone", name="look"),))
            lost = Event(author="bob", messages=(call,), request_id="r0", filter_key=app, branch="bob")
            await sessions.append(key, lost)
            await runner.run_text("ann", "s1", "four")
        session = await stored(sessions, key)
    found = views(session)
    assert list(found) == ["a1", ">", "a2", "a3", "a4"]
    assert found["a1"] == [("one", "in", ("visibility.kept",))]
    assert shown(found[">"]) == ["one", "a1", "two"]
    assert found["a2"][:2] == [("one", "in", ()), ("a1", "in", ())]
    assert found["a2"][3:] == [(">", "in", ("run.in",)), ("seen x", "in", ("run.in",))]
    assert shown(found["a3"]) == [">", "seen x", "a2", "three"]
    assert found["a3"][0] == ("one", "out", ("history.dropped",))
    assert found["a4"][-2:] == [("let me", "changed", ("pairing.added",)), ("four", "in", ("visibility.kept",))]
    for event, request in zip([e for e in session.events if e.view], model.requests, strict=True):
        assert event.view is not None
        assert event.view.messages == len(request.messages)
        assert (event.view.missing, event.view.other) == (0, 0)
        told = [one.event for one in seen_by(session, event.id) or () if one.verdict != "out"]
        assert [m.text for e in told for m in e.messages] == [
            m.text for m in request.messages if m.role != "system" and "[interrupted]" not in m.text
        ]
    explained = explain_projection(session, agent, projector.pipeline, before=session.events[-1].id)
    assert [entry.verdict for entry in explained.entries] == [verdict for _, verdict, _ in found["a4"]]
    assert "history.dropped" not in str(model.requests)


async def test_what_is_kept_is_small(open_sessions: OpenSessions, app: str) -> None:
    """A long session costs each answer no more than a short one does; only the first answer of a run has the spans."""
    projector = SessionProjector(default_pipeline(limit=HistoryLimit(6)))
    async with open_sessions() as sessions:
        agent = LLMAgent("bob", ScriptedModel([LOOK, "ok"] * 40), "", [look])
        async with Runner(app, agent, sessions=sessions, projector=projector) as runner:
            for turn in range(40):
                await runner.run_text("ann", "s1", f"turn {turn}")
        session = await stored(sessions, SessionKey(app, "ann", "s1"))
    sizes = [len(event.view.model_dump_json(exclude_defaults=True)) for event in session.events if event.view]
    assert max(sizes) < 700
    assert [len(event.view.spans) for event in session.events if event.view][-2:] == [3, 0]


def test_spans_are_bounded() -> None:
    """Neighbours of which the same became are one span; of too many spans the oldest are one, and it says so."""
    verdicts: Any = ["in", "out"] * 100
    one = joined(Fate(str(i), verdict) for i, verdict in enumerate(verdicts))
    assert len(one) == MOST_SPANS
    assert (one[0].verdict, one[0].first, one[0].count) == ("mixed", "0", 200 - MOST_SPANS + 1)
    assert sum(span.count for span in one) == 200
    alike = joined(Fate(str(i), "in") for i in range(9))
    assert [(span.first, span.last, span.count) for span in alike] == [("0", "8", 9)]


async def test_siblings_have_views_of_their_own(app: str) -> None:
    """Agents side by side: what the one said is out for the other, whatever was stored first."""
    agents = [LLMAgent(name, ScriptedModel([LOOK, f"{name} says"]), "", [look]) for name in ("ann", "bob")]
    async with Runner(app, ParallelAgent("both", agents)) as runner:
        await runner.run_text("u", "s1", "go")
        session = await stored(runner.sessions, SessionKey(app, "u", "s1"))
    for name in ("ann", "bob"):
        last = next(event for event in session.events if event.text == f"{name} says")
        seen = [one for one in seen_by(session, last.id) or () if one.verdict != "out"]
        assert [(one.event.author, one.event.text) for one in seen] == [("user", "go"), (name, ""), (name, "seen x")]


async def test_a_run_that_goes_on_knows_how_it_began(app: str) -> None:
    """After a question, in another run of the Runner: the answer names the one that has the spans; where no model was
    asked before, the projection is made again, and taken since the same messages come out."""
    early = (
        StateGraph(MessagesState)
        .add_interrupt_node("ask", prompt="sure?", answer_type=bool, key="ask")
        .add_llm_node("model", ScriptedModel(["done"]))
        .set_entry_point("ask")
        .add_edge("ask", "model")
        .set_finish_point("model")
    )
    late = (
        StateGraph(MessagesState)
        .add_llm_node("one", ScriptedModel(["first"]))
        .add_interrupt_node("ask", prompt="sure?", answer_type=bool, key="ask")
        .add_llm_node("two", ScriptedModel(["done"]))
        .set_entry_point("one")
        .add_edge("one", "ask")
        .add_edge("ask", "two")
        .set_finish_point("two")
    )
    for graph, expected in ((early, ["go"]), (late, ["go", "first"])):
        async with Runner(app, GraphAgent("bob", graph.compile())) as runner:
            [event async for event in runner.run("u", "s1", "go")]
            await runner.run_text("u", "s1", None, RunOptions(answers={"ask": True}))
            session = await stored(runner.sessions, SessionKey(app, "u", "s1"))
        assert shown(views(session)["done"]) == expected
        if len(expected) > 1:
            assert session.events[-1].view is not None
            assert session.events[-1].view.base == session.events[-2].id


async def test_one_shot_messages_are_no_events(app: str) -> None:
    """A request that was made of other messages says that none of the projection was in it."""
    graph = StateGraph(MessagesState).add_llm_node("model", ScriptedModel(["ok"])).set_entry_point("model")
    agent = GraphAgent("bob", graph.compile(), initial={"one_shot_messages": [Message.user("only this")]})
    async with Runner(app, agent) as runner:
        await runner.run_text("u", "s1", "go")
        [_, answer] = (await stored(runner.sessions, SessionKey(app, "u", "s1"))).events
    assert answer.view is not None
    assert (answer.view.messages, answer.view.missing, answer.view.other) == (1, 1, 1)


async def test_a_projector_that_does_not_tell(app: str) -> None:
    """One that only makes messages is asked for these; its answers have no view, nor have those outside of a Runner."""

    class Plain:
        async def messages(self, invocation: Invocation) -> tuple[Message, ...]:
            return (Message.user("hello"),)

    model = ScriptedModel(["ok", "ok"])
    async with Runner(app, LLMAgent("bob", model, options={"projector": Plain()})) as runner:
        await runner.run_text("u", "s1", "go")
        session = await stored(runner.sessions, SessionKey(app, "u", "s1"))
    assert model.requests[0].messages[0].text == "hello"
    assert [seen_by(session, event.id) for event in session.events] == [None, None]
    alone = LLMAgent("bob", model)
    invocation = Invocation(alone, Message.user("hi"), Session(app=app, user="u", id="s"))
    assert [event.view async for event in alone.run(invocation) if not event.partial] == [None]


async def test_what_is_kept_of_a_cancelled_answer_tells_too(app: str) -> None:
    """A model that is cut off while it answers: the stored part has the view of its request."""

    class Slow:
        name = "slow"
        context_window = None

        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            yield Delta("so far")
            await anyio.sleep(60)

    async with Runner(app, LLMAgent("bob", Slow())) as runner:
        async with aclosing(runner.run("u", "s1", "go")) as events:
            async for event in events:
                if event.delta:
                    break
        session = await stored(runner.sessions, SessionKey(app, "u", "s1"))
    assert session.events[-1].text == "so far"
    assert shown(views(session)["so far"]) == ["go"]
