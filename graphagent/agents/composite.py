"""Agents made of agents: one after the other, side by side, round and round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any

from graphagent.agents.agent import Agent
from graphagent.agents.graph_agent import GraphAgent
from graphagent.errors import AgentError
from graphagent.graph.builder import StateGraph
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.names import END
from graphagent.graph.reducers import add
from graphagent.graph.schema import MessagesState

LAP = "lap"
"""The node of a cycle that counts its laps and decides whether another one follows."""


class CycleState(MessagesState):
    """The state of a cycle; `laps` are over."""

    laps: Annotated[int, add] = 0


class ChainAgent(GraphAgent):
    """Runs agents one after the other; each sees what those before it said. A failure of one ends the chain.

    `options`: those of GraphAgent.
    """

    def __init__(self, name: str, agents: Sequence[Agent], *, description: str = "", **options: Any) -> None:
        _some(name, agents)
        builder = StateGraph(MessagesState, name=name).set_entry_point(agents[0].name)
        for agent in agents:
            builder.add_agent_node(agent.name, agent, event_scope=None)
        for agent, following in pairwise(agents):
            builder.add_edge(agent.name, following.name)
        builder.set_finish_point(agents[-1].name)
        super().__init__(name, builder.compile(), description=description, sub_agents=agents, **options)


class ParallelAgent(GraphAgent):
    """Runs agents side by side, none of which sees what the others say; their answers are in `node_responses`. A
    failure of one fails the whole when the others have ended.

    `options`: those of GraphAgent.
    """

    def __init__(self, name: str, agents: Sequence[Agent], *, description: str = "", **options: Any) -> None:
        _some(name, agents)
        names = [agent.name for agent in agents]
        builder = StateGraph(MessagesState, name=name).set_entry_point(*names).add_join_edge(names, END)
        for agent in agents:
            builder.add_agent_node(agent.name, agent)
        super().__init__(name, builder.compile(), description=description, sub_agents=agents, **options)


class CycleAgent(GraphAgent):
    """Runs agents one after the other, again and again, until `laps` of them are over, or `until(state)` is true after
    one; the state is a CycleState.

    `options`: those of GraphAgent.
    """

    def __init__(
        self,
        name: str,
        agents: Sequence[Agent],
        *,
        until: Callable[[Any], bool] | None = None,
        laps: int | None = None,
        description: str = "",
        **options: Any,
    ) -> None:
        _some(name, agents)
        if laps is None and until is None:
            raise AgentError(f"agent '{name}' would go round for ever; give it laps=..., or until=...")
        if laps is not None and laps < 1:
            raise AgentError(f"laps of agent '{name}' is {laps}; it has to be 1 or more")
        super().__init__(name, _cycle(name, agents, until, laps), description=description, sub_agents=agents, **options)


def _cycle(name: str, agents: Sequence[Agent], until: Callable[[Any], bool] | None, laps: int | None) -> CompiledGraph:
    def count(state: CycleState) -> dict[str, Any]:
        return {"laps": 1}

    def goes_on(state: CycleState) -> str:
        over = (laps is not None and state.laps >= laps) or (until is not None and until(state))
        return END if over else first

    names = [agent.name for agent in agents]
    first = names[0]
    builder = StateGraph(CycleState, name=name).set_entry_point(first)
    for agent in agents:
        builder.add_agent_node(agent.name, agent, event_scope=None)
    builder.add_node(LAP, count, inline=True, writes=["laps"], description="counts the laps")
    for one, following in zip(names, [*names[1:], LAP], strict=True):
        builder.add_edge(one, following)
    builder.add_conditional_edges(LAP, goes_on, [first, END])
    return builder.compile()


def _some(name: str, agents: Sequence[Agent]) -> None:
    if not agents:
        raise AgentError(f"agent '{name}' has no agents to run")
