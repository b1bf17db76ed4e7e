"""Tools that somebody else runs: the model asks, the run ends, the result comes as a tool message of the next run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphagent.agents.model import ToolSpec
from graphagent.agents.tool import ToolContext
from graphagent.errors import ToolError

NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class ExternalTool:
    """A tool that is shown to the model and never run here, such as one of a client that calls the agent."""

    spec: ToolSpec
    external: bool = True
    needs_approval: bool = False
    ends_turn: bool = False

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Raises ToolError: it can't be run here."""
        raise ToolError(f"tool '{self.spec.name}' is run by whoever calls the agent")


def external_tool(name: str, description: str, parameters: Mapping[str, Any] = NO_PARAMETERS) -> ExternalTool:
    """An external tool from its name, what it does, and the JSON schema of its arguments (an object)."""
    return ExternalTool(ToolSpec(name, description, parameters))
