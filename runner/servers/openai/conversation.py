"""The messages of a request: what is said now, and what was said before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from graphagent.errors import alternatives
from graphagent.ledger import Event
from graphagent.messages import Message, ToolCall
from runner.servers.openai.errors import ApiError
from runner.servers.openai.request import Said, arguments_of

_PARTS = {"text": "text", "image_url": "image_url", "input_audio": "input_audio", "file": "file"}
"""Type of a part of a message -> the field with its payload."""


class Conversation(NamedTuple):
    """`said`: the input of the run: the last message, or all results of tools at the end. `history`: what came before,
    for a session without events. `instruction`: what system messages say, for the run."""

    said: tuple[Message, ...]
    history: tuple[Message, ...]
    instruction: str


def conversation(messages: Sequence[Said]) -> Conversation:
    """The messages as those of a run. Raises ApiError for one that doesn't fit, with its place."""
    found = [_message(one, f"messages.{place}") for place, one in enumerate(messages)]
    last = found[-1]
    if last.role not in ("user", "tool"):
        role = messages[-1].role
        raise ApiError(
            f"the last message is of role '{role}'; it has to be what the agent is asked: 'user', or results of tools",
            param=f"messages.{len(found) - 1}.role",
        )
    first = len(found) - 1
    while last.role == "tool" and first > 0 and found[first - 1].role == "tool":
        first -= 1
    before = found[:first]
    told = "\n\n".join(message.text for message in before if message.role == "system")
    return Conversation(tuple(found[first:]), tuple(one for one in before if one.role != "system"), told)


def check_results(said: Sequence[Message], open_calls: Iterable[str]) -> None:
    """Raises ApiError unless results of tools answer each of the calls that are open, once, and no other."""
    if not said or said[0].role != "tool":
        return
    known = list(open_calls)
    given = [str(message.tool_call_id) for message in said]
    for number, one in enumerate(given):
        if one in given[:number]:
            raise ApiError(f"two messages answer the call '{one}'", param="messages")
        if one not in known:
            raise ApiError(
                f"no call '{one}' waits for a result: {alternatives(one, known) if known else 'none does'}",
                param="messages",
                code="unknown_tool_call",
            )
    if missing := [one for one in known if one not in given]:
        names = ", ".join(f"'{one}'" for one in missing)
        raise ApiError(f"there is no message with the result of {names}", param="messages", code="missing_tool_result")


def open_in_history(history: Sequence[Message]) -> list[str]:
    """The ids of the calls that the last message of a history asks for."""
    return [call.id for call in history[-1].tool_calls] if history else []


def open_in_session(events: Sequence[Event]) -> list[str]:
    """The ids of the calls that were handed to the client and have no result, if nobody said anything since."""
    answered: set[str | None] = set()
    for event in reversed(events):
        if event.is_user:
            return []
        if event.long_running_tool_ids:
            calls = [call.id for message in event.messages for call in message.tool_calls]
            return [one for one in calls if one in event.long_running_tool_ids and one not in answered]
        answered |= {message.tool_call_id for message in event.messages}
    return []


def _message(said: Said, param: str) -> Message:
    if said.role != "assistant" and said.tool_calls:
        raise ApiError(f"a '{said.role}' message has no tool calls", param=f"{param}.tool_calls")
    if said.role in ("system", "developer"):
        return Message.system(_text(said, param), name=said.name)
    if said.role == "assistant":
        calls = [
            ToolCall(id=call.id, name=call.function.name, arguments=arguments_of(call, f"{param}.tool_calls.{place}"))
            for place, call in enumerate(said.tool_calls or ())
        ]
        if len({call.id for call in calls}) < len(calls):
            raise ApiError("two tool calls have one id", param=f"{param}.tool_calls")
        text = "" if said.content is None else _text(said, param)
        if not text and not calls:
            raise ApiError("an 'assistant' message has neither content nor tool calls", param=param)
        return Message.assistant(text, tool_calls=tuple(calls), name=said.name)
    if said.role == "tool":
        if not said.tool_call_id:
            raise ApiError("a 'tool' message says which call it answers", param=f"{param}.tool_call_id")
        return Message.tool(_text(said, param), said.tool_call_id, name=said.name)
    return Message.user(_content(said, param), name=said.name)


def _text(said: Said, param: str) -> str:
    """The text of a message that may have nothing else."""
    if said.content is None:
        raise ApiError(f"a '{said.role}' message needs content", param=f"{param}.content")
    if isinstance(said.content, str):
        return said.content
    for place, part in enumerate(said.content):
        where = f"{param}.content.{place}"
        if part.get("type") != "text":
            raise ApiError(f"a '{said.role}' message takes text only", param=where)
        _check_part(part, where)
    return "\n".join(part["text"] for part in said.content)


def _content(said: Said, param: str) -> str | list[dict[str, Any]]:
    if not said.content:
        raise ApiError("a 'user' message needs content", param=f"{param}.content")
    if isinstance(said.content, str):
        return said.content
    for place, part in enumerate(said.content):
        _check_part(part, f"{param}.content.{place}")
    if all(part["type"] == "text" for part in said.content):
        text = _text(said, param)
        if not text:
            raise ApiError("a 'user' message needs content", param=f"{param}.content")
        return text
    return [{"type": part["type"], _PARTS[part["type"]]: part[_PARTS[part["type"]]]} for part in said.content]


def _check_part(part: dict[str, Any], param: str) -> None:
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in _PARTS:
        raise ApiError(f"no part is of type {json.dumps(kind)[:60]}: {alternatives(str(kind), _PARTS)}", param=param)
    payload = part.get(_PARTS[kind])
    if not isinstance(payload, str if kind == "text" else dict):
        raise ApiError(f"the part has no '{_PARTS[kind]}'", param=param)
    if kind == "image_url" and not isinstance(payload.get("url") if isinstance(payload, dict) else None, str):
        raise ApiError("the part has no 'url'", param=f"{param}.image_url")
