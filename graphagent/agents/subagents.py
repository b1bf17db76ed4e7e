"""Gives each agent node that names a sub-agent the agent itself, so that its graph is a part of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphagent.agents.agent import Agent
from graphagent.errors import AgentError, alternatives
from graphagent.graph.compile import build
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef
from graphagent.graph.kinds import function_of


def bound(name: str, graph: CompiledGraph, agents: Sequence[Agent]) -> CompiledGraph:
    """The graph with an agent in every agent node. Raises AgentError for one that isn't among `agents`, or if two of
    these have one name."""
    known = {agent.name: agent for agent in agents}
    if len(known) < len(agents):
        twice = next(one for one in known if sum(agent.name == one for agent in agents) > 1)
        raise AgentError(f"agent '{name}' has two sub-agents called '{twice}'; give one of them another name")
    open_nodes = [node for node in graph.defs if node.kind == "agent" and node.config.get("agent") is None]
    if not open_nodes:
        return graph
    definition = graph.definition.snapshot()
    for node in open_nodes:
        if node.id not in known:
            raise AgentError(
                f"agent node '{node.id}' of agent '{name}' has no agent, and there is no sub-agent of that name: "
                f"{alternatives(node.id, known)}; pass agent=... to add_agent_node, or the agent in sub_agents"
            )
        definition.nodes[definition.nodes.index(node)] = _with_agent(graph, node, known[node.id])
    return build(definition, graph.schema, graph.warnings, strict=graph.strict)


def _with_agent(graph: CompiledGraph, node: NodeDef, agent: Agent) -> NodeDef:
    config = {**node.config, "agent": agent}
    fn = function_of("agent", node.id, {**config, "declared": frozenset(graph.schema.fields)})
    inner = getattr(agent, "graph", None)
    return replace(node, config=config, fn=fn, child=inner if isinstance(inner, CompiledGraph) else None)
