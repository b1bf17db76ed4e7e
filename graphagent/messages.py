"""Chat messages as values: what models say and hear, and what message histories hold."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(BaseModel):
    """A model's request to run a tool; `arguments` is the parsed JSON object."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Message(BaseModel):
    """One chat message. `content` is text, or a list of parts (dicts with a `type`) for multimodal input.

    `id` is optional: a message with the id of one in a history replaces it there (see the `messages` reducer).
    `reasoning` is the model's own thinking where a provider sends it apart.
    """

    model_config = ConfigDict(frozen=True)

    role: Role
    content: str | list[dict[str, Any]] = ""
    id: str | None = None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    reasoning: str | None = None

    @classmethod
    def user(cls, content: str | list[dict[str, Any]], **fields: Any) -> Message:
        """A message of the person."""
        return cls(role="user", content=content, **fields)

    @classmethod
    def assistant(cls, content: str = "", **fields: Any) -> Message:
        """A message of the model."""
        return cls(role="assistant", content=content, **fields)

    @classmethod
    def system(cls, content: str, **fields: Any) -> Message:
        """Instructions for the model."""
        return cls(role="system", content=content, **fields)

    @classmethod
    def tool(cls, content: str, tool_call_id: str, **fields: Any) -> Message:
        """The result of a tool call."""
        return cls(role="tool", content=content, tool_call_id=tool_call_id, **fields)

    @property
    def text(self) -> str:
        """The plain text: the content itself, or its text parts joined by line breaks."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")


class RemoveMessage(BaseModel):
    """An update of a message history that takes out the message with this id; `"*"` takes out all."""

    model_config = ConfigDict(frozen=True)

    remove: str

    @classmethod
    def all(cls) -> RemoveMessage:
        """Take out every message that is there so far."""
        return cls(remove="*")


class ReplaceLastUser(BaseModel):
    """An update of a message history that gives the last user message a new text, or appends one if there is none."""

    model_config = ConfigDict(frozen=True)

    last_user: str


MessageUpdate = Message | RemoveMessage | ReplaceLastUser
"""What the `messages` reducer takes, alone or in a list."""
