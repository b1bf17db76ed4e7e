"""What came of one tool call: as the model reads it, as the effect ledger keeps it, as a message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError, to_jsonable_python

from graphagent.agents.tool import ToolResult
from graphagent.errors import ToolError
from graphagent.messages import Message, ToolCall

_ENCODER = json.JSONEncoder(ensure_ascii=False)  # made once, where json.dumps makes one for every call
Content = str | list[dict[str, Any]]


class Parts(list[dict[str, Any]]):
    """Content of a `ToolResult` that goes to the model as message parts (dicts with a `type`), not as JSON text."""


class ToolOutcome(NamedTuple):
    """One finished call. `content`: what the model reads; `error`: it says what went wrong; `ends_turn`: the tool asked
    for no summary; `stop`: the call ended the run, with this text; `asked`: what the agent that takes over is to do."""

    content: Content = ""
    state_delta: Mapping[str, Any] = {}
    transfer: str | None = None
    error: bool = False
    ends_turn: bool = False
    stop: str | None = None
    asked: str = ""

    def record(self) -> dict[str, Any]:
        """Plain data for the ledger; what is empty is left out."""
        return {name: value for name, value in zip(self._fields, self, strict=True) if value or name == "content"}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> ToolOutcome:
        """The outcome that was recorded."""
        return cls(**record)

    def message(self, call: ToolCall) -> Message:
        """The result as a chat message."""
        return Message(role="tool", content=self.content, tool_call_id=call.id, name=call.name)


def outcome_of(result: Any, state_delta: Mapping[str, Any]) -> ToolOutcome:
    """The outcome of what a tool returned; `state_delta` is what it put into its context. Raises ToolError for a value
    that JSON can't hold."""
    told = result if isinstance(result, ToolResult) else None
    content = encoded(result if told is None else told.content)
    if told is not None and told.state_delta:
        state_delta = {**state_delta, **told.state_delta}
    delta = plain(state_delta, "state delta") if state_delta else {}
    if told is None:
        return ToolOutcome(content, delta)
    return ToolOutcome(content, delta, told.transfer, told.error, told.skip_summarization, asked=told.asked)


def failure(text: str) -> ToolOutcome:
    """The outcome of a call that went wrong."""
    return ToolOutcome(f"Error: {text}", error=True)


def refusal(status: str, tool: str, reason: str) -> ToolOutcome:
    """The outcome of a call that was not allowed; `status`: `denied` or `approval_required`."""
    return ToolOutcome(encoded({"status": status, "tool": tool, "reason": reason}), error=True)


def encoded(content: Any) -> Content:
    """Text as it is, message parts as they are, anything else as JSON text. Raises ToolError."""
    if isinstance(content, str):
        return content
    value = plain(content, "result")
    return value if isinstance(content, Parts) else _ENCODER.encode(value)


def plain(value: Any, what: str) -> Any:
    """A value as JSON data. Raises ToolError."""
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError) as error:
        text = str(error).removeprefix("Error calling function ")
        raise ToolError(f"its {what} is no JSON value ({text}); return plain data, or a pydantic model") from error
