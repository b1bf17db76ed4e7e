"""What an event says, as a reader of history gets it: by whom, in what words. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from graphagent.ledger import Event
from graphagent.messages import Message

SEARCH, LOAD = "session_search", "session_load"
"""The names of the two tools."""
ROLES = frozenset({"user", "assistant", "tool"})
"""Whose words are history."""


def role_of(event: Event) -> str:
    """`tool` for results of tools, else `user` or `assistant`."""
    if event.is_tool_result:
        return "tool"
    return "user" if event.is_user else "assistant"


def words_of(event: Event, tool_call_id: str = "") -> str:
    """Its visible text; results of tools under the tool's name. `tool_call_id`: only of this one."""
    return "\n".join(text for message in event.messages if (text := told(message)) and _asked(message, tool_call_id))


def told(message: Message) -> str:
    """The visible text of a message; that of a tool after the tool's name."""
    if message.role == "tool" and message.name and message.text:
        return f"{message.name}: {message.text}"
    if message.tool_calls and not message.text:
        return "; ".join(f"calls {c.name}({json.dumps(c.arguments, ensure_ascii=False)})" for c in message.tool_calls)
    return message.text


def is_echo(event: Event) -> bool:
    """Whether it is nothing but what the two tools found: that stands elsewhere in the history already."""
    results = [message for message in event.messages if message.role == "tool"]
    return bool(results) and all(message.name in (SEARCH, LOAD) for message in results)


def moment(seconds: float) -> str:
    """A time as a model reads it, to the minute, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%MZ")


def _asked(message: Message, tool_call_id: str) -> bool:
    return not tool_call_id or message.tool_call_id == tool_call_id
