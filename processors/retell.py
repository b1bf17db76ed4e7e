"""What another agent said and did, as a message of the user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from graphagent.messages import Message

_PREFIX = "For context:"


def retold(messages: Sequence[Message], author: str, prefix: bool) -> Message | None:
    """One message of the user for all that an event says; None if it says nothing.

    Content goes first: a message with text and calls keeps the text only, a result with content is told as said.
    """
    pieces: list[str] = []
    parts: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message.content, list):
            if prefix:
                parts.append(_text_part(f"[{author}] said:"))
            parts += message.content
        elif message.content:
            pieces.append(f"[{author}] said: {message.content}" if prefix else message.content)
        elif message.tool_calls:
            pieces += [_call(call.name, call.arguments, author, prefix) for call in message.tool_calls]
        elif message.role == "tool":
            name = message.tool_call_id or ""
            pieces.append(f"[{author}] `{name}` tool returned nothing" if prefix else f"Tool `{name}` returned nothing")
    if not pieces and not parts:
        return None
    text = " ".join([_PREFIX, *pieces] if prefix else pieces)
    return Message.user([*([_text_part(text)] if text else []), *parts] if parts else text)


def merged(one: Message, other: Message) -> Message:
    """Both in one message, with a blank line between texts."""
    if isinstance(one.content, str) and isinstance(other.content, str):
        return Message.user(f"{one.content}\n\n{other.content}")
    return Message.user([*as_parts(one), *as_parts(other)])


def as_parts(message: Message) -> list[dict[str, Any]]:
    """The content as parts."""
    return [_text_part(message.content)] if isinstance(message.content, str) else list(message.content)


def _call(name: str, arguments: dict[str, Any], author: str, prefix: bool) -> str:
    told = json.dumps(arguments, ensure_ascii=False, default=str)
    if prefix:
        return f"[{author}] called tool `{name}` with parameters: {told}"
    return f"Tool `{name}` called with parameters: {told}"


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
