"""A deploy while an agent that is a tool waits: its graph is judged as that of any child."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from support.agent_runs import Talk

from graphagent import GraphAgent, LLMAgent, MemoryCheckpoints, MessagesState, NodeContext, StateGraph
from graphagent.agents import AgentTool
from graphagent.errors import IncompatibleCheckpoint
from graphagent.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio
CALL = {"tool_calls": [{"name": "inner", "arguments": {"request": "?"}}]}


def inner(*nodes: str, formerly: dict[str, tuple[str, ...]] | None = None) -> GraphAgent:
    """An agent that goes through nodes in turn, the second of which asks."""

    async def asks(state: MessagesState, ctx: NodeContext) -> dict[str, Any]:
        return {"last_response": str(await ctx.interrupt("sure?", "Sure?", str))}

    def passes(state: MessagesState) -> None:
        return None

    builder = StateGraph(MessagesState, name="inner").set_entry_point(nodes[0])
    for number, node in enumerate(nodes):
        builder.add_node(node, asks if number == 1 else passes, formerly=(formerly or {}).get(node, ()))
    for one, other in pairwise(nodes):
        builder.add_edge(one, other)
    return GraphAgent("inner", builder.set_finish_point(nodes[-1]).compile())


def outer(agent: GraphAgent, depth: int) -> LLMAgent:
    """An agent with that one as a tool, or with an agent that has it."""
    for level in range(depth):
        name = f"middle{level}" if level < depth - 1 else "outer"
        says = [CALL if level == 0 else _call(f"middle{level - 1}"), "Done."]
        agent = LLMAgent(name, ScriptedModel(says), tools=[AgentTool(agent)])
    assert isinstance(agent, LLMAgent)
    return agent


def _call(name: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": {"request": "?"}}]}


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("below", [False, True], ids=["at the root", "of a sub-agent"])
async def test_a_tool_whose_agent_has_lost_the_node_that_waits_is_refused(depth: int, below: bool) -> None:
    """Before anything runs, with what has changed and whose graph it is; the survey of stored runs tells it too. With
    the old version back the run goes on."""
    store = MemoryCheckpoints()

    def talk(*nodes: str, **options: Any) -> Talk:
        root = outer(inner(*nodes, **options), depth)
        if below:
            hand = {"tool_calls": [{"name": "outer", "arguments": {}}]}
            root = LLMAgent("root", ScriptedModel([hand]), sub_agents=[root])
        return Talk(root, store, sessions=first.sessions) if first is not None else Talk(root, store)

    first: Talk | None = None
    first = talk("a", "b", "c")
    assert (await first.say("go"))[-1].interrupts
    changed = talk("a", "x", "c")
    verdicts = await changed.agent.executor(store).stranded()
    assert any("inner" in name and verdict.findings for name, verdict in verdicts.items())
    with pytest.raises(IncompatibleCheckpoint, match="'inner'") as refused:
        await changed.answer(**{"sure?": "yes"})
    assert "'b'" in str(refused.value)
    assert (await first.answer(**{"sure?": "yes"}))[-1].text == "Done."


async def test_a_tool_whose_agent_can_go_on_goes_on() -> None:
    """A node that is added, or renamed with its former name, is no obstacle; the answer arrives."""
    store = MemoryCheckpoints()
    first = Talk(outer(inner("a", "b", "c"), 1), store)
    await first.say("go")
    agent = inner("a", "y", "c", "d", formerly={"y": ("b",)})
    model = ScriptedModel(["Done."])
    again = Talk(LLMAgent("outer", model, tools=[AgentTool(agent)]), store, sessions=first.sessions)
    assert (await again.answer(**{"sure?": "yes"}))[-1].text == "Done."
    assert model.requests[0].messages[-1].text == "yes"


async def test_a_tool_that_has_ended_is_not_judged() -> None:
    """An agent whose run is over may have changed in whatever way."""
    store = MemoryCheckpoints()
    first = Talk(outer(inner("a", "b"), 1), store)
    await first.say("go")
    await first.answer(**{"sure?": "yes"})
    model = ScriptedModel(["Hello."])
    later = Talk(LLMAgent("outer", model, tools=[AgentTool(inner("z", "y"))]), store, sessions=first.sessions)
    assert (await later.say("hi"))[-1].text == "Hello."
