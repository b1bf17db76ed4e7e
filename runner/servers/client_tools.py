"""Tools that a client of a server runs: it names them in its request, and gets the calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from graphagent.agents.agent import Agent
from graphagent.agents.external import ExternalTool
from graphagent.agents.tool import Tool
from graphagent.agents.toolset import ToolLike, gather_tools

_offered: ContextVar[tuple[ExternalTool, ...]] = ContextVar("client_tools", default=())
# a tools node asks a set for its tools without saying for which run, so they come with the context of the run's task


class ClientTools:
    """The place of a client's tools in an agent's list of tools: `LLMAgent(..., tools=[look, ClientTools()])`. An agent
    without it takes none. In a run that no server began it is empty."""

    name = ""

    async def tools(self) -> Sequence[Tool]:
        """The tools of the client whose request this run is."""
        return _offered.get()

    async def aclose(self) -> None:
        """Nothing is open."""


@contextmanager
def offering(tools: Sequence[ExternalTool]) -> Iterator[None]:
    """A block in which a run that begins is offered these tools."""
    token = _offered.set(tuple(tools))
    try:
        yield
    finally:
        _offered.reset(token)


def takes_client_tools(agent: Agent) -> bool:
    """True if a model of the agent, or of one below it, is offered a client's tools."""
    if any(isinstance(one, ClientTools) for tools in _lists_of(agent) for one in tools):
        return True
    return any(takes_client_tools(sub) for sub in agent.sub_agents)


async def own_names(agent: Agent) -> frozenset[str]:
    """The names of the tools that the agent and those below it have already. Raises what a set raises that can't list
    its tools."""
    names: set[str] = set()
    with offering(()):
        for tools in _lists_of(agent):
            names |= {one.spec.name for one in await gather_tools(tools)}
    for sub in agent.sub_agents:
        names |= await own_names(sub)
    return frozenset(names)


def _lists_of(agent: Agent) -> list[tuple[ToolLike, ...]]:
    """What each model node of an agent's graph is given; nothing for an agent without a graph."""
    graph = getattr(agent, "graph", None)
    return [node.config["tools"] for node in getattr(graph, "nodes", {}).values() if node.kind == "llm"]
