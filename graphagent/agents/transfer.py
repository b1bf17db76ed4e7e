"""Handing the conversation over to another agent, as a tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphagent.agents.agent import Agent
from graphagent.agents.model import ToolSpec
from graphagent.agents.tool import ToolContext, ToolResult
from graphagent.errors import alternatives
from graphagent.messages import ToolCall

TRANSFER = "transfer_to_agent"
"""The name of the tool; a call of an agent by its name is taken as one of this tool."""
DEFAULT_MESSAGE = "Take over from here."


class TransferTool:
    """`transfer_to_agent(agent_name, message)`: its result names the agent that takes over.

    An agent that isn't there, or the one that calls, is an unsuccessful result, and the turn goes on.
    """

    external = needs_approval = ends_turn = False
    reentrant = True

    def __init__(self, agents: Iterable[Agent], *, caller: str = "") -> None:
        self._agents = {agent.name: agent.description for agent in agents}
        self._caller = caller
        listed = "".join(f"\n- {name}: {text}" for name, text in self._agents.items())
        self.spec = ToolSpec(
            TRANSFER,
            f"Hand the conversation over to another agent that fits the request better. The agents are:{listed}",
            {
                "type": "object",
                "properties": {
                    "agent_name": {"type": "string", "enum": list(self._agents), "description": "who takes over"},
                    "message": {"type": "string", "description": "what the agent shall do"},
                },
                "required": ["agent_name"],
                "additionalProperties": False,
            },
        )

    def knows(self, name: str) -> bool:
        """True if it can hand over to that agent."""
        return name in self._agents

    def rewritten(self, call: ToolCall) -> ToolCall:
        """A call of an agent by its name, as a call of this tool."""
        texts = (call.arguments.get(key) for key in ("message", "request", "input"))
        message = next((text for text in texts if isinstance(text, str) and text), DEFAULT_MESSAGE)
        return call.model_copy(update={"name": TRANSFER, "arguments": {"agent_name": call.name, "message": message}})

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """The handover, or why there is none."""
        name = str(arguments.get("agent_name", ""))
        if name == self._caller:
            return _told(name, f"'{name}' is the agent that speaks already", success=False)
        if name not in self._agents:
            return _told(name, f"there is no agent '{name}': {alternatives(name, self._agents)}", success=False)
        return _told(name, str(arguments.get("message") or DEFAULT_MESSAGE), success=True)


def _told(name: str, message: str, *, success: bool) -> ToolResult:
    kind = "agent_handoff" if success else "error"
    content = {"success": success, "message": message, "target_agent": name, "transfer_type": kind}
    return ToolResult(content, transfer=name if success else None, error=not success)
