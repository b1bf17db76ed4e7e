"""Handing the conversation over to sub-agents, peers and the agent above: spec/services 3.7, 3.10 and 14."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.agent_runs import Talk, complete, words
from support.run_agents import APP, SESSION, USER, Told, all_of, outcome, says

from graphagent import GraphAgent, LLMAgent, MemoryCheckpoints, tool
from graphagent.agents import HandOver
from graphagent.agents.external import external_tool
from graphagent.errors import AgentError
from graphagent.models.scripted import ScriptedModel
from graphagent.validation import validate
from runner import Runner

pytestmark = pytest.mark.anyio
NOTHING: Mapping[str, HandOver] = {}


def to(name: str, message: str = "") -> dict[str, Any]:
    """A model's hand-over by the tool."""
    arguments = {"agent_name": name, **({"message": message} if message else {})}
    return {"tool_calls": [{"name": "transfer_to_agent", "arguments": arguments}]}


def by_name(name: str, **arguments: str) -> dict[str, Any]:
    """A model that calls an agent as if it were a tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def offered(model: ScriptedModel, request: int = 0) -> list[str]:
    """To whom a model was told it can hand over."""
    for spec in model.requests[request].tools:
        if spec.name == "transfer_to_agent":
            return list(spec.parameters["properties"]["agent_name"]["enum"])
    return []


class Family:
    """A boss with the sub-agents `a` and `b`, and what their models say."""

    def __init__(self, boss: list[Any], a: list[Any], b: list[Any], may: Mapping[str, HandOver] = NOTHING) -> None:
        self.models = {"boss": ScriptedModel(boss), "a": ScriptedModel(a), "b": ScriptedModel(b)}
        self.a = LLMAgent("a", self.models["a"], description="Bills.", hand_over=may.get("a", HandOver()))
        self.b = LLMAgent("b", self.models["b"], description="Parcels.")
        self.boss = LLMAgent(
            "boss",
            self.models["boss"],
            description="Knows whom to ask.",
            sub_agents=[self.a, self.b],
            hand_over=may.get("boss", HandOver()),
        )

    def asked(self, name: str, request: int = 0) -> str:
        """The last message of a request."""
        return self.models[name].requests[request].messages[-1].text


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (to("a", "fix it"), "fix it"),
        (to("a"), "go"),
        (by_name("a", message="fix it"), "fix it"),
        (by_name("a", request="fix it"), "fix it"),
        (by_name("a"), "go"),
    ],
    ids=["tool", "tool, without words", "by name", "by name, as a request", "by name, without words"],
)
async def test_s030_what_the_agent_that_takes_over_is_asked(said: Any, asked: str) -> None:
    """The message of the hand-over, however it was made; without one what the person asked."""
    family = Family([said], ["done"], [])
    async with Runner(APP, family.boss) as runner:
        assert await runner.run_text(USER, SESSION, "go") == "done"
    texts = [message.text for message in family.models["a"].requests[0].messages]
    assert asked in texts
    assert (texts[-1] == asked) is (asked == "fix it")


async def test_handing_over_to_a_peer_and_on() -> None:
    """An agent hands over to another one of its parent's, with a message, by the tool or by name; the last one's answer
    is the turn's."""
    family = Family([to("a", "look")], [to("b", "it is a parcel"), "paid"], [by_name("a", message="no, yours")])
    talk = Talk(family.boss, MemoryCheckpoints())
    events = complete(await talk.say("go"))
    assert [event.author for event in events] == ["boss", "boss", "a", "a", "b", "b", "a"]
    assert events[-1].text == "paid"
    assert (family.asked("b"), family.asked("a", 1)) == ("it is a parcel", "no, yours")
    assert offered(family.models["a"]) == ["b", "boss"]
    assert offered(family.models["b"]) == ["a", "boss"]


async def test_handing_back_to_the_agent_above() -> None:
    """The agent above goes on, with all that was said meanwhile before its eyes, and what it is asked at the end."""
    family = Family([to("a", "look"), "All done."], [to("boss", "I have looked")], [])
    async with Runner(APP, family.boss) as runner:
        assert await runner.run_text(USER, SESSION, "go") == "All done."
    request = family.models["boss"].requests[1]
    assert request.messages[-1].text == "I have looked"
    assert next(message.text for message in request.messages if message.role == "user") == "go"
    pairs = [message for message in request.messages if message.role == "tool"]
    assert len(pairs) == sum(len(message.tool_calls) for message in request.messages)


async def test_without_a_session_the_answer_goes_back() -> None:
    """An agent that runs alone sees the message of the one that hands back."""
    family = Family([to("a"), "All done."], [to("boss", "I have looked")], [])
    invocation = await Talk(family.boss).invocation("go")
    events = [event async for event in family.boss.run(replace(invocation, session=None, persist=None))]
    assert words(events)[-1] == ("boss", "All done.")
    assert family.asked("boss", 1) == "I have looked"


@pytest.mark.parametrize(
    ("switches", "boss", "a", "b"),
    [
        ({}, ["a", "b"], ["b", "boss"], ["a", "boss"]),
        ({"a": HandOver(peers=False)}, ["a", "b"], ["boss"], ["a", "boss"]),
        ({"a": HandOver(parent=False)}, ["a", "b"], ["b"], ["a", "boss"]),
        ({"a": HandOver(peers=False, parent=False)}, ["a", "b"], [], ["a", "boss"]),
        ({"boss": HandOver(sub_agents=False)}, [], [], []),
    ],
    ids=["all", "no peers", "no parent", "nobody around", "no sub-agents"],
)
async def test_each_way_can_be_forbidden(switches: Any, boss: list[str], a: list[str], b: list[str]) -> None:
    """A forbidden way is not offered, and the graph has no edge for it; what is left is clean."""
    family = Family(["x"], ["x"], ["x"], switches)
    graph = family.boss.graph
    ways = {name: set(node.destinations or ()) - {"__end__"} for name, node in graph.nodes.items() if name in "ab"}
    assert ways == ({} if not boss else {"a": {n if n != "boss" else "model" for n in a}, "b": {"a", "model"}})
    assert validate(graph).at_least("warning") == ()
    await Talk(family.boss).say("go")
    assert offered(family.models["boss"]) == boss
    if boss and not a:
        assert family.boss.graph.nodes["a"].child is family.a.graph


async def test_a_forbidden_way_is_told_to_the_model() -> None:
    """A call of it is an unsuccessful result, and the agent goes on itself."""
    family = Family([to("a")], [to("boss"), "I do it."], [], {"a": HandOver(parent=False)})
    async with Runner(APP, family.boss) as runner:
        assert await runner.run_text(USER, SESSION, "go") == "I do it."
    assert "there is no agent 'boss'" in family.asked("a", 1)


async def test_an_agent_by_itself_has_nobody_around_it() -> None:
    """A sub-agent that a run names runs as it is: no peers, no agent above, the graph of one node."""
    family = Family([], ["alone"], [])
    async with Runner(APP, family.boss) as runner:
        assert outcome(await all_of(runner, "go", agent="a")) == "completed"
    assert offered(family.models["a"]) == []
    assert family.a.graph.names == ("model",)


async def test_agents_that_only_hand_over_are_stopped() -> None:
    """One hand-over more than allowed in a turn is the limit that ends it, with its name."""
    a, b = (ScriptedModel(lambda request, name=name: to(name)) for name in ("b", "a"))
    boss = LLMAgent(
        "boss",
        ScriptedModel([to("a")]),
        sub_agents=[LLMAgent("a", a), LLMAgent("b", b)],
        hand_over=HandOver(most=3),
    )
    async with Runner(APP, boss) as runner:
        events = await all_of(runner, "go")
    assert outcome(events) == "limit_reached"
    assert events[-1].error is not None
    assert "max handoffs exceeded: 3" in events[-1].error.message
    assert len(a.requests) + len(b.requests) == 4
    with pytest.raises(AgentError, match="it has to be a count"):
        HandOver(most=-1)


async def test_three_generations() -> None:
    """An agent in the middle hands over both ways; one below it reaches it and its peers there, not those above."""
    low = ScriptedModel([to("middle", "up")])
    middle = ScriptedModel([to("low", "down"), to("other", "across")])
    other = ScriptedModel(["across done"])
    agent = LLMAgent("middle", middle, sub_agents=[LLMAgent("low", low), LLMAgent("low2", ScriptedModel([]))])
    boss = LLMAgent("boss", ScriptedModel([to("middle")]), sub_agents=[agent, LLMAgent("other", other)])
    async with Runner(APP, boss) as runner:
        assert await runner.run_text(USER, SESSION, "go") == "across done"
    assert offered(low) == ["low2", "middle"]
    assert offered(middle) == ["low", "low2", "other", "boss"]
    assert [model.requests[-1].messages[-1].text for model in (low, middle, other)] == ["down", "up", "across"]


async def test_an_agent_of_another_kind_takes_over_and_stays() -> None:
    """One that is no LLMAgent can be handed to by peers; it has no way back."""
    told = Told([says("from elsewhere")], "told")
    boss = LLMAgent("boss", ScriptedModel([to("a")]), sub_agents=[LLMAgent("a", ScriptedModel([to("told")])), told])
    async with Runner(APP, boss) as runner:
        assert await runner.run_text(USER, SESSION, "go") == "from elsewhere"
    assert boss.graph.nodes["told"].destinations in (None, {})


async def test_a_handover_waits_for_an_external_call() -> None:
    """Beside a call that somebody else answers a hand-over is not made, and the model is told so; the run ends."""
    calls = [*to("a")["tool_calls"], {"name": "open_door", "arguments": {}}]
    model = ScriptedModel([{"tool_calls": calls}, "later"])
    door = external_tool("open_door", "Open the door.")
    boss = LLMAgent("boss", model, tools=[door], sub_agents=[LLMAgent("a", ScriptedModel([]))])
    events = complete(await Talk(boss, MemoryCheckpoints()).say("go"))
    assert "waits for its result from elsewhere" in events[1].text
    assert [event.author for event in events if event.text] == ["boss"]


async def test_a_handover_to_a_peer_is_approved_and_resumed() -> None:
    """A question below stops the whole; with its answer the one that was handed to goes on."""

    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    b = LLMAgent("b", ScriptedModel([{"tool_calls": [{"name": "pay", "arguments": {}}]}, "done"]), tools=[pay])
    boss = LLMAgent("boss", ScriptedModel([to("a")]), sub_agents=[LLMAgent("a", ScriptedModel([to("b")])), b])
    assert isinstance(boss, GraphAgent)
    async with Runner(APP, boss) as runner:
        assert outcome(await all_of(runner, "go")) == "interrupted"
        events = await all_of(runner, None, answers={"approve:pay": True})
        assert [event.text for event in events if event.kind == "message"][-1] == "done"
