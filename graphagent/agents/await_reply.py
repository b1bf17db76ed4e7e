"""Keeping the conversation: a tool with which an agent has the person's next message for itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphagent.agents.model import ToolSpec
from graphagent.agents.tool import ToolContext, ToolResult

AWAIT = "await_user_reply"
"""The name of the tool."""
AWAITING = "await_user_reply"
"""The key of the session's state that says which agent has the person's next message: its `name`, and `within`, the
agent that the run began with. A Runner reads it, and takes it away when that message comes."""


class AwaitReplyTool:
    """`await_user_reply()`: the person's next message comes to the agent that calls it, not to the one a Runner would
    take. It holds for one message; whoever asks again calls it again."""

    external = needs_approval = ends_turn = False
    reentrant = True
    spec = ToolSpec(
        AWAIT,
        "Call this before you ask the user a question: what the user says next comes directly to you. Then ask.",
        {"type": "object", "properties": {}, "additionalProperties": False},
    )

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Keep the next message; an agent that answers another one, not a person, is told that it can't."""
        invocation = context.invocation
        if invocation is None or invocation.as_tool:
            told = "Error: no person talks with you but the agent that called you; put the question into your answer"
            return ToolResult(told, error=True)
        within = invocation.branch.partition("/")[0]
        kept = {"name": invocation.agent.name, "within": within}
        return ToolResult("The next message of the user comes to you. Ask now.", state_delta={AWAITING: kept})


await_user_reply = AwaitReplyTool()
"""The tool, to be put among the tools of an agent."""
