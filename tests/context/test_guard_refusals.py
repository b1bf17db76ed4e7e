"""Where a history is not made anew, since that would lose what is in it, or bring back what was taken out."""

from __future__ import annotations

from typing import Any

import pytest
from support.guarding import KEY, AtCalls, calls, read, said

from graphagent import END, START, GraphAgent, LLMAgent, Message, MessagesState, StateGraph, tool
from graphagent.agents.invocation import RunOptions
from graphagent.messages import RemoveMessage
from graphagent.models import ScriptedModel
from runner import Runner
from runner.summary.upkeep import SummaryOptions

pytestmark = pytest.mark.anyio


def graph_of(model: ScriptedModel, before: Any) -> GraphAgent:
    """An agent whose graph has a node before its model."""
    graph = (
        StateGraph(MessagesState)
        .add_node("before", before)
        .add_llm_node("model", model, tools=[read])
        .add_tools_node("tools", [read])
        .add_edge(START, "before")
        .add_edge("before", "model")
        .add_tools_conditional_edges("model", "tools")
        .add_edge("tools", "model")
    )
    return GraphAgent("bot", graph.compile())


def guarded(agent: Any, steered: AtCalls) -> Runner:
    """A Runner for it."""
    return Runner("app", agent, summaries=SummaryOptions(summarizer=steered))


async def test_what_a_node_put_in_is_not_lost() -> None:
    """A node adds what it has looked up, which no session has: no summary is paid for, and the request keeps it."""

    def look_up(state: Any) -> dict[str, Any]:
        return {"messages": [Message.system("FOUND: 42")]}

    model = ScriptedModel([calls(6000), "done"], context_window=5000)
    steered = AtCalls()
    async with guarded(graph_of(model, look_up), steered) as runner:
        assert await runner.run_text("ann", "s", "go") == "done"
        session = await runner.sessions.get(KEY)
    assert steered.inputs == []
    assert "FOUND: 42" in said(model, 1)
    assert session is not None
    [note] = session.events[-1].extensions["context"]
    assert (note["stage"], note["outcome"], note["updated"]) == ("rescue", "kept", False)


async def test_what_a_node_took_out_stays_out() -> None:
    """A node removes what the model must not see: it doesn't come back with another projection."""

    def take_out(state: Any) -> dict[str, Any]:
        kept = [message for message in state.messages if "SECRET" not in message.text]
        return {"messages": [RemoveMessage.all(), *kept]}

    model = ScriptedModel(["one", calls(6000), "done"], context_window=5000)
    steered = AtCalls()
    async with guarded(graph_of(model, take_out), steered) as runner:
        await runner.run_text("ann", "s", "SECRET")
        await runner.run_text("ann", "s", "go")
    assert steered.inputs == []
    assert "SECRET" not in said(model, 2)
    assert "one" in said(model, 2)


async def test_models_side_by_side_keep_each_others_answers() -> None:
    """Two models of one graph answer in one step: neither replaces the history that the other adds to."""
    one, two = (ScriptedModel(["filler", name], context_window=5000) for name in ("answer A", "answer B"))
    graph = (
        StateGraph(MessagesState)
        .add_node("fork", lambda state: None)
        .add_llm_node("a", one, user_input_key="none")
        .add_llm_node("b", two, user_input_key="none")
        .add_edge(START, "fork")
        .add_edge("fork", "a")
        .add_edge("fork", "b")
        .add_join_edge(["a", "b"], END)
    )
    steered = AtCalls(lambda given: "THE SUMMARY")
    async with guarded(GraphAgent("bot", graph.compile()), steered) as runner:
        await runner.run_text("ann", "s", "word " * 6000)
        events = [event async for event in runner.run("ann", "s", "go")]
    assert steered.inputs == []
    assert {event.text for event in events if not event.partial} >= {"answer A", "answer B"}


async def test_what_a_person_says_meanwhile_is_no_hindrance() -> None:
    """The session has it, so a history with it is made anew, and it is in the request once."""
    model = ScriptedModel([calls(1), calls(6000), "done"], context_window=5000)
    steered = AtCalls(lambda given: "THE SUMMARY")

    @tool(name="read")
    async def interrupted(size: int) -> str:
        """A text, while which is read the person says something."""
        if size == 1:
            runner.say("r1", "and be quick")
        return "word " * size

    runner = guarded(LLMAgent("bot", model, tools=[interrupted]), steered)
    async with runner:
        await runner.run_text("ann", "s", "go", RunOptions(request_id="r1"))
    assert len(steered.inputs) == 1
    assert "THE SUMMARY" in said(model, 2)
    assert said(model, 2).count("and be quick") == 1


@pytest.mark.parametrize("change", ["none", "put in", "taken out"])
async def test_a_run_that_goes_on_after_a_question(change: str) -> None:
    """After an answered question the history is made anew as before, unless it has what the session hasn't, or lacks
    what the session has."""

    def after(state: Any) -> dict[str, Any]:
        if change == "taken out":
            kept = [message for message in state.messages if "between" not in message.text]
            return {"messages": [RemoveMessage.all(), *kept]}
        return {"messages": [Message.system("FOUND: 42")] if change == "put in" else []}

    model = ScriptedModel([calls(6000), "between", "done"], context_window=20_000)
    last = ScriptedModel(["done"], context_window=5000)
    graph = (
        StateGraph(MessagesState)
        .add_llm_node("model", model, tools=[read])
        .add_tools_node("tools", [read])
        .add_interrupt_node("ask", prompt="go on?", key="go on", answer_type=bool)
        .add_node("after", after)
        .add_llm_node("last", last)
        .add_edge(START, "model")
        .add_tools_conditional_edges("model", "tools", fallback="ask")
        .add_edge("tools", "model")
        .add_edge("ask", "after")
        .add_edge("after", "last")
        .add_edge("last", END)
    )
    steered = AtCalls(lambda given: "THE SUMMARY")
    async with guarded(GraphAgent("bot", graph.compile()), steered) as runner:
        async for _ in runner.run("ann", "s", "the question"):
            pass
        async for _ in runner.run("ann", "s", None, RunOptions(answers={"go on": True})):
            pass
    shown = said(last, 0)
    assert ("THE SUMMARY" in shown) is (change == "none")
    assert ("FOUND: 42" in shown) is (change == "put in")
    assert "the question" in shown
