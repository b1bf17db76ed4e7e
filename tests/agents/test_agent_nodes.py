"""Agent nodes: what a child is given, what comes back, whose events they are, what its failure means."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.agent_runs import Talk, complete, words

from graphagent import (
    END,
    Executor,
    GraphAgent,
    LLMAgent,
    MemoryCheckpoints,
    Message,
    MessagesState,
    StateGraph,
    tool,
)
from graphagent.agents import AgentAnswer, Invocation, ModelRequest
from graphagent.errors import AgentError, GraphDefinitionError, ModelError
from graphagent.ledger import ErrorInfo, Event
from graphagent.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


class State(MessagesState):
    topic: str = ""
    question: str = ""
    found: str = ""


def echo(name: str = "child", **options: Any) -> tuple[LLMAgent, ScriptedModel]:
    """An agent that says what it was asked."""

    def say(request: ModelRequest) -> str:
        return f"{name}: {[message.text for message in request.messages if message.role == 'user'][-1]}"

    model = ScriptedModel(say)
    return LLMAgent(name, model, **options), model


def parent(child: Any, node: str = "child", before: Any = None, **options: Any) -> GraphAgent:
    """An agent whose graph sets fields by `before`, then runs the child."""
    builder = StateGraph(State, name="parent").add_node("before", before or (lambda state: None), inline=True)
    builder.set_entry_point("before").add_agent_node(node, child, **options)
    builder.add_edge("before", node).add_edge(node, END)
    return GraphAgent("parent", builder.compile())


async def test_a_child_gets_what_its_parent_was_asked() -> None:
    """By default it is asked what the parent was, in the same session, under a key and a branch below the parent's."""
    child, model = echo()
    talk = Talk(parent(child), MemoryCheckpoints())
    events = await talk.say("hi")
    assert words(events) == [("child", "child: hi")]
    last = complete(events)[-1]
    assert (last.branch, last.filter_key) == ("parent/child", "app/child")
    assert [message.text for message in model.requests[0].messages] == ["hi"]
    state = await talk.state()
    assert (state.last_response, state.node_responses, state.user_input) == ("child: hi", {"child": "child: hi"}, "")
    assert [event.text for event in (await talk.session()).events] == ["hi", "child: hi"]


@pytest.mark.parametrize(("response", "asked"), [("found it", "found it"), ("", "hi")])
async def test_e079_input_from_the_last_response(response: str, asked: str) -> None:
    """The child is asked the last response, or the input if there is none."""
    child, model = echo()
    agent = parent(child, before=lambda state: {"last_response": response}, input_from_last_response=True)
    await Talk(agent).say("hi")
    assert model.requests[0].messages[-1].text == asked


async def test_e080_an_input_key_of_its_own() -> None:
    """The child is asked the text in that field, which is cleared; the usual one stays."""
    child, model = echo()
    agent = parent(child, before=lambda state: {"question": "why?"}, user_input_key="question")
    talk = Talk(agent, MemoryCheckpoints())
    await talk.say("hi")
    assert model.requests[0].messages[-1].text == "why?"
    state = await talk.state()
    assert (state.question, state.user_input) == ("", "hi")


async def test_e081_what_a_child_begins_with() -> None:
    """It gets the fields that both declare, none of the parent's conversation; with a mapper exactly what that says.
    The output mapper gets the child's answer and its final state."""
    seen: list[dict[str, Any]] = []

    def look(state: State) -> dict[str, Any]:
        seen.append({"topic": state.topic, "last_response": state.last_response, "found": state.found})
        return {"last_response": "done", "found": "gold"}

    inner = StateGraph(State, name="inner").add_node("look", look, inline=True).set_entry_point("look")
    child = GraphAgent("child", inner.set_finish_point("look").compile())
    before: Any = {"topic": "ore", "last_response": "old", "found": "mud"}
    await Talk(parent(child, before=lambda state: before)).say("hi")
    answers: list[AgentAnswer] = []

    def back(answer: AgentAnswer) -> dict[str, Any]:
        answers.append(answer)
        return {"found": answer.state.found}

    mapped = parent(child, before=lambda s: before, input_mapper=lambda s: {"topic": "tin"}, output_mapper=back)
    talk = Talk(mapped, MemoryCheckpoints())
    await talk.say("hi")
    assert seen == [
        {"topic": "ore", "last_response": "", "found": "mud"},
        {"topic": "tin", "last_response": "", "found": ""},
    ]
    assert answers[0].text == "done"
    state = await talk.state()
    assert (state.found, state.last_response, state.user_input) == ("gold", "old", "")


async def test_e081_a_mapper_that_writes_nothing_leaves_the_input() -> None:
    """Without an update the input is not used up either."""
    child, _ = echo()
    talk = Talk(parent(child, output_mapper=lambda answer: None), MemoryCheckpoints())
    await talk.say("hi")
    state = await talk.state()
    assert (state.user_input, state.last_response, state.node_responses) == ("hi", "", {})


@pytest.mark.parametrize("recorded", [False, True])
async def test_e082_a_child_that_fails(recorded: bool) -> None:
    """Its failure fails the node; with `record` it is told and kept, and the run goes on."""
    child = LLMAgent("child", ScriptedModel([ModelError("no key", kind="auth")]))
    talk = Talk(parent(child, on_child_error="record" if recorded else "fail"), MemoryCheckpoints())
    events = complete(await talk.say("hi"))
    told = [(event.author, event.error.code) for event in events if event.error]
    if recorded:
        assert told == [("child", "auth")]
        assert events[-1].kind == "completion"
        error = {"type": "api_error", "message": "no key"}
        assert (await talk.state()).node_responses == {"child": {"error": error}}
    else:
        assert told == [("parent", "auth")]


async def test_isolated_messages() -> None:
    """The child sees nothing of the conversation but what it is asked; its own tool results stay."""

    @tool
    def look() -> str:
        """Look."""
        return "rain"

    model = ScriptedModel([{"tool_calls": [{"name": "look", "arguments": {}}]}, "wet", "wet"])
    talk = Talk(parent(LLMAgent("child", model, tools=[look]), isolated_messages=True))
    await talk.say("one")
    await talk.say("two")
    assert [[message.role for message in request.messages] for request in model.requests] == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user"],
    ]
    assert model.requests[2].messages[0].text == "two"


@pytest.mark.parametrize(("scope", "key"), [("", "app/child"), ("lab", "app/lab"), (None, "app")])
async def test_the_scope_of_a_childs_events(scope: str | None, key: str) -> None:
    """Its name, another segment, or none."""
    child, _ = echo()
    events = await Talk(parent(child, event_scope=scope)).say("hi")
    assert {event.filter_key for event in events if event.author == "child"} == {key}


async def test_a_node_named_like_a_sub_agent() -> None:
    """Without an agent of its own a node runs the sub-agent of its name; one that isn't there is refused at once."""
    child, _ = echo()
    graph = StateGraph(State).add_agent_node("child").set_entry_point("child").set_finish_point("child").compile()
    agent = GraphAgent("parent", graph, sub_agents=[child])
    assert agent.graph.nodes["child"].child is child.graph
    assert words(await Talk(agent).say("hi")) == [("child", "child: hi")]
    with pytest.raises(AgentError, match="did you mean 'chil'"):
        GraphAgent("parent", graph, sub_agents=[echo("chil")[0]])
    with pytest.raises(AgentError, match="two sub-agents called 'child'"):
        GraphAgent("parent", graph, sub_agents=[child, echo()[0]])


async def test_an_agent_node_without_an_agent_around() -> None:
    """The executor alone runs agent nodes too: the child sees the messages of the state."""
    child, model = echo()
    graph = StateGraph(State).add_agent_node("child", child).set_entry_point("child").set_finish_point("child")
    result = await Executor(graph.compile()).run(
        {"messages": [Message.user("a"), Message.assistant("b")], "user_input": "c"}
    )
    assert result.unwrap().last_response == "child: c"
    assert [message.text for message in model.requests[0].messages] == ["a", "b", "c"]


class Custom:
    """An agent that is no graph, and runs another one."""

    description = ""

    def __init__(self, name: str, *inner: Any) -> None:
        self.name = name
        self.sub_agents = inner

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        yield Event(author=self.name, partial=True, delta="...")
        yield Event(author=self.name, messages=(Message.assistant("begin"),), filter_key=invocation.filter_key)
        for agent in self.sub_agents:
            async for event in agent.run(invocation.child(agent, invocation.message)):
                yield event


async def test_an_agent_that_is_no_graph() -> None:
    """Its events are heard, stored and answered with; agents that it runs are part of the same run."""
    child, _ = echo()
    talk = Talk(parent(Custom("custom", child), node="custom"), MemoryCheckpoints())
    events = await talk.say("hi")
    assert words(events) == [("custom", "begin"), ("child", "child: hi")]
    assert events[0].delta == "..."
    assert [event.text for event in (await talk.session()).events] == ["hi", "begin", "child: hi"]
    assert (await talk.state()).last_response == "child: hi"


async def test_an_agent_that_is_no_graph_and_fails() -> None:
    """The error that ends its run fails the node, as the error that it is."""

    class Broken(Custom):
        async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
            yield Event(author=self.name, error=ErrorInfo(type="api_error", message="no key", code="auth"))

    last = (await Talk(parent(Broken("child"))).say("hi"))[-1]
    assert last.error is not None
    assert (last.error.type, last.error.code, last.error.message) == ("api_error", "auth", "no key")


async def test_the_same_child_twice_in_a_loop() -> None:
    """A child that runs again begins anew, and sees what it said the first time."""
    child, model = echo()

    class Laps(State):
        laps: int = 0

    def again(state: Laps) -> str:
        return "child" if state.laps < 2 else END

    builder = StateGraph(Laps).add_agent_node("child", child).set_entry_point("child")
    builder.add_node("count", lambda state: {"laps": state.laps + 1}, inline=True).add_edge("child", "count")
    builder.add_conditional_edges("count", again, ["child", END])
    talk = Talk(GraphAgent("parent", builder.compile()), MemoryCheckpoints())
    assert len(words(await talk.say("hi"))) == 2
    assert [[message.role for message in request.messages] for request in model.requests] == [
        ["user"],
        ["user", "assistant"],
    ]


def test_nodes_that_can_not_be() -> None:
    """Something that is no agent, and an unknown way to treat failures, are problems of the graph."""
    builder = StateGraph(State).add_agent_node("a", "x").add_agent_node("b", echo()[0], on_child_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(GraphDefinitionError, match=r"(?s)has no 'run'.*on_child_error"):
        builder.set_entry_point("a", "b").compile()
