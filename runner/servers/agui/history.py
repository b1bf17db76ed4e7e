"""The conversation of a session as messages of the protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ag_ui.core import AssistantMessage, ReasoningMessage, ToolCall, ToolMessage, UserMessage
from ag_ui.core import Message as Shown
from ag_ui.core.types import FunctionCall

from graphagent.agents.agent_tool import TRIGGER
from graphagent.ledger import Event
from graphagent.messages import Message
from graphagent.messages import ToolCall as Call
from runner.partial_text import INTERRUPTED
from runner.servers.agui.content import parts_shown


@dataclass(slots=True)
class _Row:
    """What one message becomes, and the results of its calls by their ids."""

    shown: list[Shown]
    calls: list[str]
    results: dict[str, ToolMessage] = field(default_factory=dict)

    def all(self) -> list[Shown]:
        return [*self.shown, *(self.results[call] for call in self.calls if call in self.results)]


def message_id(event: Event, place: int) -> str:
    """The id of a message of an event: that of the event for the first one."""
    return event.id if place == 0 else f"{event.id}.{place}"


def reasoning_id(message: str) -> str:
    """The id of the reasoning that belongs to a message."""
    return f"reasoning-{message}"


def result_id(event: Event, place: int) -> str:
    """The id of the message with a tool's result."""
    return f"result-{message_id(event, place)}"


def arguments_text(call: Call) -> str:
    """The arguments of a call as JSON text."""
    return json.dumps(call.arguments, ensure_ascii=False)


def conversation(events: Iterable[Event]) -> list[Shown]:
    """The messages, each result of a tool behind the message that asks for it, in the order of its calls; one whose
    call is not among them is left out, since no client could place it. What an agent that is a tool said is its
    caller's affair."""
    rows: list[_Row] = []
    waiting: dict[str, _Row] = {}
    for event in events:
        if TRIGGER in event.extensions or event.partial:
            continue
        for place, message in enumerate(event.messages):
            if message.role == "tool":
                call = str(message.tool_call_id)
                if (row := waiting.pop(call, None)) is not None:
                    row.results[call] = _result(event, place, message)
            elif message.role != "system":
                row = _Row(_messages(event, place, message), [one.id for one in message.tool_calls])
                rows.append(row)
                waiting |= dict.fromkeys(row.calls, row)
    return [message for row in rows for message in row.all()]


def open_calls(events: Sequence[Event]) -> list[str]:
    """The ids of the calls that were handed to the client and have no result, if nobody said anything since."""
    answered: set[str] = set()
    for event in reversed(events):
        if event.is_user:
            return []
        if event.long_running_tool_ids:
            calls = [call.id for message in event.messages for call in message.tool_calls]
            return [one for one in calls if one in event.long_running_tool_ids and one not in answered]
        answered |= {str(message.tool_call_id) for message in event.messages if message.role == "tool"}
    return []


def answered_calls(events: Iterable[Event]) -> set[str]:
    """The ids of the calls that have a result."""
    return {str(m.tool_call_id) for event in events for m in event.messages if m.role == "tool"}


def announced_calls(events: Iterable[Event]) -> set[str]:
    """The ids of the calls that were made."""
    return {call.id for event in events for message in event.messages for call in message.tool_calls}


def _messages(event: Event, place: int, message: Message) -> list[Shown]:
    own = message_id(event, place)
    if message.role == "user":
        return [UserMessage(id=own, content=parts_shown(message.content))]
    found: list[Shown] = []
    if message.reasoning:
        found.append(ReasoningMessage(id=reasoning_id(own), content=message.reasoning))
    calls = [
        ToolCall(id=call.id, function=FunctionCall(name=call.name, arguments=arguments_text(call)))
        for call in message.tool_calls
    ]
    if message.text or calls:
        cut = event.extensions.get(INTERRUPTED)
        found.append(
            AssistantMessage(
                id=own,
                name=event.author or None,
                content=message.text or None,
                tool_calls=calls or None,
                metadata=None if cut is None else {"interrupted": str(cut)},
            )
        )
    return found


def _result(event: Event, place: int, message: Message) -> ToolMessage:
    return ToolMessage(id=result_id(event, place), content=message.text, tool_call_id=str(message.tool_call_id))
