"""What an agent says when a limit cuts its turn off: C094 for agents."""

from __future__ import annotations

from typing import Any

import pytest
from support.agent_runs import Talk
from support.run_agents import APP, all_of, outcome, stored

from graphagent import Budget, ChainAgent, GraphAgent, Limits, LLMAgent, MemoryCheckpoints, MessagesState, StateGraph
from graphagent import tool as tool_
from graphagent.errors import AgentError
from graphagent.ledger import TokenUsage
from graphagent.models.scripted import ScriptedModel
from graphagent.validation import validate
from runner import Runner

pytestmark = pytest.mark.anyio
CALL = {"tool_calls": [{"name": "look", "arguments": {}}]}
LAST = "Say what you have found so far."


@tool_
def look() -> str:
    """Look."""
    return "rain"


def answering(request: Any) -> Any:
    """Always asks for the tool, but where none is offered."""
    return CALL if request.tools else "It rains."


@pytest.mark.parametrize(
    ("limits", "budget", "requests"),
    [(Limits(max_steps=6), None, 4), (None, Budget(tokens=40), 3)],
    ids=["steps", "tokens"],
)
async def test_c094_an_agent_answers_at_its_limit(limits: Any, budget: Any, requests: int) -> None:
    """The model is asked once more, without tools; its answer is stored and handed out, no apology follows, and the
    outcome is the limit. The next message begins a new turn."""
    model = ScriptedModel(answering, usage=TokenUsage(input_tokens=10, output_tokens=10))
    agent = LLMAgent("w", model, "Be brief.", [look], landing=LAST, options={"limits": limits})
    async with Runner(APP, agent) as runner:
        events = await all_of(runner, budget=budget)
        assert outcome(events) == "limit_reached"
        said = [event.text for event in events if event.kind == "message" and not event.partial and event.text]
        assert said == ["It rains."]
        assert events[-1].error is not None
        assert "landed at 'landing'" in events[-1].error.message
        session = await stored(runner)
        assert session.events[-1].text == "It rains."
        asked = model.requests[-1]
        assert (asked.tools, asked.messages[-1].text, asked.messages[0].text) == ((), LAST, "Be brief.")
        assert len(model.requests) == requests
        again = await all_of(runner, "and now?", budget=budget)
        assert outcome(again) == "limit_reached"


async def test_c094_a_run_that_landed_can_be_resumed() -> None:
    """The work that was left goes on where the limit cut in."""
    says = iter([CALL, CALL, "It rains, so far.", "It rains."])
    model = ScriptedModel(lambda request: next(says))
    agent = LLMAgent("w", model, tools=[look], landing=LAST, options={"limits": Limits(max_steps=5)})
    talk = Talk(agent, MemoryCheckpoints())
    events = await talk.say("go")
    assert events[-1].error is not None
    assert (events[-1].error.code, events[-2].text) == ("limit_reached", "It rains, so far.")
    assert (await talk.say(None, answers={}))[-1].text == "It rains."


async def test_c094_a_landing_node_of_a_graph_that_is_an_agent() -> None:
    """GraphAgent takes the limits of an executor, landing and all; a node that isn't there is refused."""

    def step(state: MessagesState) -> None:
        return None

    def land(state: MessagesState) -> dict[str, str]:
        return {"last_response": "so far"}

    graph = StateGraph(MessagesState).add_node("step", step).set_entry_point("step").add_edge("step", "step")
    agent = GraphAgent("g", graph.add_node("land", land).compile(), limits=Limits(max_steps=4, landing="land"))
    talk = Talk(agent, MemoryCheckpoints())
    last = (await talk.say("go"))[-1]
    assert last.error is not None
    assert "landed at 'land'" in last.error.message
    assert last.extensions == {"landed": "land"}
    assert (await talk.state()).last_response == "so far"


async def test_c094_a_child_does_not_land_for_itself() -> None:
    """Under a budget the whole run is cut off: the agent at its root answers, if it can, and no child does."""
    model = ScriptedModel(answering, usage=TokenUsage(input_tokens=10))
    child = LLMAgent("w", model, tools=[look], landing=LAST)
    events = await Talk(ChainAgent("chain", [child]), MemoryCheckpoints()).say("go", budget=Budget(tokens=30))
    assert events[-1].error is not None
    assert events[-1].error.code == "limit_reached"
    assert all(request.tools for request in model.requests)


async def test_an_agent_that_lands_is_a_clean_graph() -> None:
    """The node is in the picture, and the check takes it for what it is."""
    agent = LLMAgent("w", ScriptedModel([]), tools=[look], landing=LAST)
    assert agent.graph.names == ("model", "tools", "landing")
    assert validate(agent.graph).at_least("warning") == ()
    with pytest.raises(AgentError, match="a name without '/' and '@'"):
        LLMAgent("w@home", ScriptedModel([]))
