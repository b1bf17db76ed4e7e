"""Which tools an agent's model nodes are offered in a run, known before a request is made."""

from __future__ import annotations

import logging

from graphagent.agents.invocation import Invocation
from graphagent.agents.tool import Asking
from graphagent.agents.toolset import gather_tools

_log = logging.getLogger(__name__)


async def offered_tools(invocation: Invocation) -> frozenset[str]:
    """The names of the tools that each model node of the agent is offered; none for an agent without such nodes, or
    whose tools can't be listed now."""
    graph = getattr(invocation.agent, "graph", None)
    nodes = [node for node in getattr(graph, "nodes", {}).values() if node.kind == "llm"]
    visible = invocation.options.tool_filter
    found: list[set[str]] = []
    for node in nodes:
        asking = Asking(invocation, node.config["output_schema"] is not None)
        try:
            tools = await gather_tools(node.config["tools"], visible=visible, asking=asking)
        except Exception:  # the node itself lists them again, and says so
            _log.debug("the tools of node '%s' could not be listed", node.id, exc_info=True)
            return frozenset()
        found.append({one.spec.name for one in tools})
    return frozenset(set.intersection(*found)) if found else frozenset()
