"""Handing the conversation over to another agent, as a tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from graphagent.agents.model import ToolSpec
from graphagent.agents.tool import ToolContext, ToolResult
from graphagent.errors import alternatives
from graphagent.messages import ToolCall

TRANSFER = "transfer_to_agent"
"""The name of the tool; a call of an agent by its name is taken as one of this tool."""
DEFAULT_MESSAGE = "Take over from here."
MESSAGE_KEYS = ("message", "request", "input")
"""Arguments in which a model that calls an agent by its name puts what the agent shall do."""


class Named(Protocol):
    """What has to be known of an agent that can take over."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def description(self) -> str:
        """What it is good at."""
        ...


class TransferTool:
    """`transfer_to_agent(agent_name, message)`: its result names the agent that takes over.

    `agents`: those below the caller; `elsewhere`: those around it, which have no node in its graph. An agent that isn't
    there, or the one that calls, is an unsuccessful result, and the turn goes on.
    """

    external = needs_approval = ends_turn = False
    reentrant = True

    def __init__(self, agents: Iterable[Named], *, caller: str = "", elsewhere: Iterable[Named] = ()) -> None:
        below = {agent.name: agent.description for agent in agents}
        around = {agent.name: agent.description for agent in elsewhere if agent.name not in below}
        self.elsewhere = frozenset(around)
        self._agents = below | around
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
        texts = (call.arguments.get(key) for key in MESSAGE_KEYS)
        message = next((text for text in texts if isinstance(text, str) and text), None)
        told = {} if message is None else {"message": message}
        return call.model_copy(update={"name": TRANSFER, "arguments": {"agent_name": call.name, **told}})

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """The handover, or why there is none."""
        name = str(arguments.get("agent_name", ""))
        if name == self._caller:
            return _refused(name, f"'{name}' is the agent that speaks already")
        if name not in self._agents:
            return _refused(name, f"there is no agent '{name}': {alternatives(name, self._agents)}")
        asked = str(arguments.get("message") or "")
        return ToolResult(_told(name, asked or DEFAULT_MESSAGE, success=True), transfer=name, asked=asked)


def _refused(name: str, why: str) -> ToolResult:
    return ToolResult(_told(name, why, success=False), error=True)


def _told(name: str, message: str, *, success: bool) -> dict[str, Any]:
    kind = "agent_handoff" if success else "error"
    return {"success": success, "message": message, "target_agent": name, "transfer_type": kind}
