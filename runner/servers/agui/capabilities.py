"""What a client may expect of the agent that is served."""

from __future__ import annotations

from ag_ui.core import (
    AgentCapabilities,
    ExecutionCapabilities,
    HumanInTheLoopCapabilities,
    IdentityCapabilities,
    MultimodalCapabilities,
    MultimodalInputCapabilities,
    ReasoningCapabilities,
    StateCapabilities,
    ToolsCapabilities,
    TransportCapabilities,
)

from graphagent.agents.graph_agent import GraphAgent
from runner.servers.agui.prepare import Shared
from runner.servers.app import ServerContext
from runner.servers.client_tools import takes_client_tools


def capabilities(context: ServerContext, shared: Shared) -> AgentCapabilities:
    """Of the Runner's own agent. Whether its model reads pictures is not known, so that is left open."""
    agent = context.runner.agent
    takes = not isinstance(agent, str) and takes_client_tools(agent)
    asks = isinstance(agent, GraphAgent)
    described = "" if isinstance(agent, str) else agent.description
    return AgentCapabilities(
        identity=IdentityCapabilities(name=context.agent_name, type="graphagent", description=described or None),
        transport=TransportCapabilities(
            streaming=True, websocket=False, http_binary=False, push_notifications=False, resumable=True
        ),
        tools=ToolsCapabilities(supported=True, client_provided=takes, parallel_calls=True),
        state=StateCapabilities(
            snapshots=bool(shared.shown), deltas=bool(shared.shown), persistent_state=bool(shared.shown)
        ),
        reasoning=ReasoningCapabilities(supported=True, streaming=True, encrypted=False),
        multimodal=MultimodalCapabilities(input=MultimodalInputCapabilities(video=False)),
        execution=ExecutionCapabilities(max_execution_time=None if shared.seconds is None else int(shared.seconds)),
        human_in_the_loop=HumanInTheLoopCapabilities(supported=asks, approvals=asks, interrupts=asks),
    )
