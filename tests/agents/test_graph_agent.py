"""GraphAgent: how turns begin, which events a run makes, what is stored when, how runs are cut short."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
import pytest
from pydantic import SecretStr
from support.agent_runs import Talk, complete, words

from graphagent import (
    END,
    Budget,
    ChainAgent,
    CycleAgent,
    GraphAgent,
    LLMAgent,
    MemoryCheckpoints,
    Message,
    MessagesState,
    NodeContext,
    ParallelAgent,
    StateGraph,
    Transient,
    tool,
)
from graphagent.agents import Invocation, RunOptions
from graphagent.agents.model import Delta, ToolCallDelta
from graphagent.errors import AgentError, CheckpointNotFound, ModelError, UndeclaredField
from graphagent.ledger import Event, TokenUsage
from graphagent.models.scripted import ScriptedModel
from graphagent.validation import validate

pytestmark = pytest.mark.anyio


class State(MessagesState):
    seen: int = 0
    lost: int = 0


def agent_of(*nodes: Any, state: type = State, **options: Any) -> GraphAgent:
    """An agent whose graph is a chain of functions."""
    builder = StateGraph(state, name="agent").set_entry_point(nodes[0].__name__)
    for node, following in zip(nodes, [*nodes[1:], None], strict=True):
        builder.add_node(node.__name__, node, inline=True)
        builder.add_edge(node.__name__, END if following is None else following.__name__)
    return GraphAgent("agent", builder.compile(), **options)


def count(state: State) -> dict[str, Any]:
    """Count in both fields."""
    return {"seen": state.seen + 1, "lost": state.lost + 1}


async def test_each_turn_begins_anew_but_for_what_is_carried() -> None:
    """Fields in `carry` keep their value, the others are as at the first turn; `initial` is what they begin with."""
    talk = Talk(agent_of(count, carry=["seen"], initial={"seen": 10, "lost": 10}), MemoryCheckpoints())
    for turn in (1, 2, 3):
        events = await talk.say("go")
        assert [event.kind for event in events] == ["completion"]
        told = events[-1].extensions["state"]
        assert (told["seen"], told["lost"]) == (10 + turn, 11)
    with pytest.raises(UndeclaredField, match="did you mean 'seen'"):
        agent_of(count, carry=["sen"])


async def test_what_is_told_of_the_final_state() -> None:
    """The graph's outputs, without secrets and without what is never stored."""

    class Secretive(State):
        key: SecretStr = SecretStr("")
        client: Transient[Any] = None

    def find(state: Secretive) -> dict[str, Any]:
        return {"key": SecretStr("x"), "client": object(), "seen": 1}

    told = (await Talk(agent_of(find, state=Secretive)).say("go"))[-1].extensions["state"]
    assert told.keys() & {"key", "client", "seen", "messages"} == {"seen"}
    graph = StateGraph(State, outputs=["seen"]).add_node("count", count, inline=True).set_entry_point("count")
    last = (await Talk(GraphAgent("agent", graph.set_finish_point("count").compile())).say("go"))[-1]
    assert last.extensions == {"state": {"seen": 1}}


async def test_options_may_set_fields() -> None:
    """Fields that the state declares are taken from the run's state; they win over `initial`."""
    told = (await Talk(agent_of(count, initial={"seen": 1})).say("go", state={"seen": 5, "other": 1}))[-1]
    assert told.extensions["state"]["seen"] == 6


@pytest.mark.parametrize(
    ("asked", "user_input", "roles"),
    [
        (Message.user("hi"), "hi", ["user"]),
        (Message.user("resume"), "resume", ["user"]),
        (Message.user([{"type": "image_url", "image_url": {"url": "x"}}]), "", ["user"]),
        (Message.tool("42", "c1"), "", ["tool"]),
        (None, "", []),
    ],
    ids=["text", "resume", "image", "tool", "nothing"],
)
async def test_e085_e086_what_a_turn_begins_with(asked: Message | None, user_input: str, roles: list[str]) -> None:
    """Text of the person goes into `user_input`, whatever it says; results of tools and pictures don't. With or without
    a session the message is in `messages`."""
    found: list[Any] = []

    def look(state: State) -> None:
        found.append((state.user_input, [message.role for message in state.messages]))

    agent = agent_of(look)
    await Talk(agent).say(asked)
    assert [event async for event in agent.run(Invocation(agent, asked))]
    assert found == [(user_input, roles)] * 2


async def test_e084_a_projector_makes_the_messages() -> None:
    """What the projector gives is what the state begins with; the agent's own goes before that of the services."""

    class Fixed:
        def __init__(self, text: str) -> None:
            self.text = text

        async def messages(self, invocation: Invocation) -> tuple[Message, ...]:
            assert invocation.message is not None
            return (Message.system(self.text), invocation.message)

    model = ScriptedModel(["a", "b"])
    for own in (None, Fixed("own")):
        agent = LLMAgent("echo", model, "Be brief.", options={"projector": own})
        await Talk(agent, projector=Fixed("theirs")).say("hi")
    assert [[message.text for message in request.messages] for request in model.requests] == [
        ["Be brief.\n\ntheirs", "hi"],
        ["Be brief.\n\nown", "hi"],
    ]


async def test_events_are_stored_before_the_activation_counts() -> None:
    """When the next node runs, what the one before said is in the session; its event is told after its checkpoint."""
    stored: list[int] = []
    talk: Talk

    def say(state: State) -> dict[str, Any]:
        return {"messages": [Message.assistant("one"), Message.user("not an event"), Message.assistant("two")]}

    async def look(state: State) -> None:
        stored.append(len((await talk.session()).events))

    builder = StateGraph(State).add_node("say", say, inline=True).add_node("look", look).set_entry_point("say")
    talk = Talk(GraphAgent("agent", builder.add_edge("say", "look").add_edge("look", END).compile()))
    events = await talk.say("hi")
    assert words(events) == [("agent", "one"), ("agent", "two")]
    assert stored == [3]


async def test_an_event_that_can_not_be_stored_fails_the_run() -> None:
    """The activation doesn't count as finished; when the store is back, a resume tells the answer that was paid for."""
    talk = Talk(LLMAgent("echo", ScriptedModel(["paid for"])), MemoryCheckpoints())
    works = talk.persist

    async def broken(event: Event) -> None:
        raise ConnectionError("the database is gone")

    talk.persist = broken  # type: ignore[method-assign]
    last = (await talk.say("hi"))[-1]
    assert last.error is not None
    assert "the database is gone" in last.error.message
    talk.persist = works  # type: ignore[method-assign]
    assert words(await talk.answer()) == [("echo", "paid for")]
    assert [event.text for event in (await talk.session()).events] == ["hi", "paid for"]


async def test_c036_pieces_carry_their_own_node() -> None:
    """Two models that stream at once: each piece names the node that it came from, and is its own letter."""
    builder = StateGraph(MessagesState).set_entry_point("a", "b").set_finish_point("a", "b")
    for letter in "ab":
        builder.add_llm_node(letter, ScriptedModel([letter * 100], pieces=1))
    talk = Talk(GraphAgent("pair", builder.compile()), MemoryCheckpoints())
    events = await talk.say("go")
    for letter in "ab":
        pieces = [event for event in events if event.partial and event.extensions["node"] == letter]
        assert "".join(event.delta for event in pieces) == letter * 100
        assert {event.branch for event in pieces} == {f"pair/{letter}"}
    state = await talk.state()
    assert (state.last_response[0], state.node_responses.keys()) == ("b", {"a", "b"})


async def test_c067_text_that_was_seen_is_kept_when_a_run_is_cancelled() -> None:
    """Cancelled after twenty pieces: the session has exactly what was said, marked, without half a tool call; what it
    cost is counted; the next turn works."""
    model = ScriptedModel(["x" * 50, "fine"], pieces=1, delay=0.001)
    talk = Talk(LLMAgent("echo", model), MemoryCheckpoints())
    heard = 0
    async with aclosing(talk.agent.run(await talk.invocation("go"))) as events:
        async for event in events:
            heard += len(event.delta)
            if heard == 20:
                break
    stored = (await talk.session()).events[-1]
    assert set(stored.text) == {"x"}
    assert 20 <= len(stored.text) < 50
    assert (stored.finish_reason, stored.error.type if stored.error else None) == ("cancelled", "cancelled")
    assert (await talk.say("again"))[-1].text == "fine"
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "user"]


async def test_c081_a_call_that_is_cancelled_has_a_result() -> None:
    """Cancelled while a tool runs: the session has a result for that call, and the next request is one that every
    provider takes."""
    began = anyio.Event()

    @tool
    async def slow() -> str:
        """Take for ever."""
        began.set()
        await anyio.sleep_forever()
        raise AssertionError

    model = ScriptedModel([{"tool_calls": [{"id": "c1", "name": "slow", "arguments": {}}]}, "fine"])
    talk = Talk(LLMAgent("worker", model, tools=[slow]), MemoryCheckpoints())
    async with anyio.create_task_group() as group:
        group.start_soon(talk.say, "go")
        await began.wait()
        group.cancel_scope.cancel()
    kept = (await talk.session()).events[-1]
    assert (kept.kind, kept.messages[0].tool_call_id) == ("tool_result", "c1")
    assert "cancelled" in kept.text
    assert (await talk.say("again"))[-1].text == "fine"
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "tool", "user"]


async def test_c090_half_a_tool_call_is_never_run() -> None:
    """Cancelled while the arguments of a call come: what the model had said is stored without the call, what it cost
    is told, nothing is run."""

    @tool
    def wipe(disk: str) -> str:
        """Wipe a disk."""
        raise AssertionError(disk)

    half = [
        Delta("Well", usage=TokenUsage(input_tokens=7)),
        *(Delta(tool_calls=(ToolCallDelta(0, "c", "wipe", part),)) for part in ('{"disk"', ': "sda"', "}")),
        Delta("", finish_reason="tool_calls"),
    ]
    talk = Talk(LLMAgent("worker", ScriptedModel([half], delay=0.01), tools=[wipe]), MemoryCheckpoints())
    async with aclosing(talk.agent.run(await talk.invocation("go"))) as events:
        async for event in events:
            if event.delta:
                await anyio.sleep(0.025)
                break
    kept = (await talk.session()).events[-1]
    assert (kept.text, kept.is_tool_call, kept.usage) == ("Well", False, TokenUsage(input_tokens=7))


async def test_cancelled_from_elsewhere_is_an_event() -> None:
    """A run that is cancelled through the executor ends with an event that says so."""
    model = ScriptedModel(["x" * 50], pieces=1, delay=0.001)
    talk = Talk(LLMAgent("echo", model), MemoryCheckpoints())
    events: list[Event] = []
    async with anyio.create_task_group() as group:
        async for event in talk.agent.run(await talk.invocation("go")):
            events.append(event)
            if len(events) == 5:
                group.start_soon(talk.agent.executor(talk.checkpoints).cancel, talk.lineage)
    assert events[-1].error is not None
    assert events[-1].error.type == "cancelled"


async def test_c097_a_budget_spans_children() -> None:
    """A child that spends the budget is stopped inside; the parent's run ends for that reason."""
    model = ScriptedModel(
        lambda request: {"tool_calls": [{"name": "noop", "arguments": {}}]}, usage=TokenUsage(input_tokens=100)
    )

    @tool
    def noop() -> str:
        """Do nothing."""
        return ""

    agent = ChainAgent("chain", [LLMAgent("child", model, tools=[noop])])
    last = (await Talk(agent, MemoryCheckpoints()).say("go", budget=Budget(tokens=250)))[-1]
    assert last.error is not None
    assert (last.error.type, last.error.message) == ("flow_error", "limit_reached: budget: tokens")
    assert len(model.requests) == 3


# -- agents made of agents ------------------------------------------------------------------------


def echo(name: str, *items: Any) -> tuple[LLMAgent, ScriptedModel]:
    """An agent that says these, or that it speaks."""
    model = ScriptedModel(items or [f"{name} speaks"] * 9)
    return LLMAgent(name, model), model


async def test_e089_a_chain_stops_at_the_first_error() -> None:
    """Each sees what those before it said; after a failure none is run any more."""
    (one, first), (two, second), (three, third) = echo("one"), echo("two", ModelError("no")), echo("three")
    chain = ChainAgent("chain", [one, two, three])
    assert validate(chain.graph).at_least("warning") == ()
    events = complete(await Talk(chain).say("go"))
    assert words(events) == [("one", "one speaks")]
    assert events[-1].error is not None
    assert [message.text for message in second.requests[0].messages] == ["go", "one speaks"]
    assert (len(first.requests), len(third.requests)) == (1, 0)


@pytest.mark.parametrize(("laps", "until", "said"), [(2, None, 4), (9, "stop", 2), (None, "stop", 2)])
async def test_e089_a_cycle_ends_by_count_or_by_what_was_said(laps: int | None, until: str | None, said: int) -> None:
    """After so many laps, or as soon as the condition holds after one."""
    writer, critic = echo("writer")[0], echo("critic", "stop", "stop")[0]
    condition = None if until is None else lambda state: state.last_response == until
    cycle = CycleAgent("cycle", [writer, critic], laps=laps, until=condition)
    talk = Talk(cycle, MemoryCheckpoints())
    assert len(words(await talk.say("go"))) == said
    with pytest.raises(AgentError, match="for ever"):
        CycleAgent("cycle", [writer])


async def test_c029_c030_agents_side_by_side_see_their_own_only() -> None:
    """None sees the others' words or tools, each has its own calls with their results; both see what was said
    before."""

    @tool
    async def wait(seconds: float) -> str:
        """Wait."""
        await anyio.sleep(seconds)
        return f"waited {seconds}"

    models = {
        name: ScriptedModel([{"tool_calls": [{"name": "wait", "arguments": {"seconds": s}}]}, f"{name} done", "ok"])
        for name, s in (("a", 0.02), ("b", 0.001))
    }
    both = ParallelAgent("both", [LLMAgent(name, model, tools=[wait]) for name, model in models.items()])
    assert validate(both.graph).at_least("warning") == ()
    talk = Talk(both, MemoryCheckpoints())
    events = complete(await talk.say("go"))
    assert {event.author: event.filter_key for event in events} == {"a": "app/a", "b": "app/b"}
    await talk.say("more")
    for name, waited in (("a", "waited 0.02"), ("b", "waited 0.001")):
        texts = [message.text for message in models[name].requests[2].messages]
        assert texts == ["go", "", waited, f"{name} done", "more"]


async def test_s030_c038_handing_over() -> None:
    """The model hands over by the transfer tool, or by calling the agent's name; the caller's last event precedes the
    first of the one that takes over, whose answer is the turn's."""
    helper, asked = echo("helper", "helped", "helped again")
    for call in (
        {"name": "transfer_to_agent", "arguments": {"agent_name": "helper", "message": "fix it"}},
        {"name": "helper", "arguments": {"message": "fix it"}},
    ):
        boss = LLMAgent("boss", ScriptedModel([{"tool_calls": [call]}]), sub_agents=[helper])
        assert validate(boss.graph).at_least("warning") == ()
        events = complete(await Talk(boss, MemoryCheckpoints()).say("go"))
        assert [event.author for event in events] == ["boss", "boss", "helper"]
        assert events[-1].text.startswith("helped")
        assert events[-1].is_final
    assert [message.text for message in asked.requests[0].messages][-1] == "fix it"


async def test_s030_handing_over_to_nobody() -> None:
    """An unknown agent is a result that the model sees; the turn goes on with the same agent."""
    helper, _ = echo("helper")
    call = {"name": "transfer_to_agent", "arguments": {"agent_name": "helpr"}}
    model = ScriptedModel([{"tool_calls": [call]}, "I do it myself."])
    events = await Talk(LLMAgent("boss", model, sub_agents=[helper])).say("go")
    assert events[-1].text == "I do it myself."


async def test_e083_nodes_reach_the_invocation() -> None:
    """A function node sees whom it acts for, in a child the child's own."""
    found: list[tuple[str, str]] = []

    async def look(state: MessagesState, ctx: NodeContext) -> None:
        found.append((ctx.invocation.agent.name, ctx.services is ctx.invocation.services and ctx.invocation.branch))

    def agent(name: str) -> GraphAgent:
        graph = StateGraph(MessagesState).add_node("look", look).set_entry_point("look").set_finish_point("look")
        return GraphAgent(name, graph.compile())

    await Talk(ChainAgent("chain", [agent("one"), agent("two")])).say("go")
    assert found == [("one", "chain/one"), ("two", "chain/two")]


async def test_a_resume_needs_a_session() -> None:
    """Without a session there is nothing to resume, and that is said."""
    agent, _ = echo("a")
    with pytest.raises(CheckpointNotFound, match="without a session"):
        async for _ in agent.run(Invocation(agent, None, options=RunOptions(answers={}))):
            pass
