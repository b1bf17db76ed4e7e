"""The last net before a provider: what still doesn't fit becomes text of the user, with a tag that says why."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graphagent.messages import Message, ToolCall
from processors.projection import Line, Note, Projection

STEP = "sanitise"
INVALID_CALL = "[invalid_tool_call]"
INVALID_RESULT = "[invalid_tool_result]"
ORPHAN_CALL = "[orphan_tool_call]"
ORPHAN_RESULT = "[orphan_tool_result]"

CheckCall = Callable[[ToolCall], str | None]
"""Says why a call can't be sent (arguments that its tool's schema refuses), or None if it can."""


@dataclass(frozen=True, slots=True)
class Sanitise:
    """Turn calls and results that a provider would refuse into tagged text of the user.

    These are calls without a name, with an id that the message has already, or refused by `check`; their results;
    calls without a result right behind them; results without a call, or a second one. Valid parts of the same message
    stay. Source: spec/context, 7.5.
    """

    check: CheckCall | None = None

    def __call__(self, projection: Projection) -> Projection:
        """Go over the lines of the view."""
        lines: list[Line] = []
        notes: list[Note] = []
        at = 0
        while at < len(projection.lines):
            end = _group_end(projection.lines, at)
            group = projection.lines[at:end]
            good, bad = _sorted_out([line.message for line in group], self.check)
            for mended, mark in ((good, ""), (bad, "tagged")):
                for position, message in mended:
                    lines.append(group[position]._replace(message=message))
                    if mark:
                        notes.append(
                            Note(STEP, "changed", f"told as text: {message.text[:60]}", group[position].event.id)
                        )
            at = end
        return projection.noted(notes, lines=tuple(lines)) if notes else projection


def sanitise(messages: Sequence[Message], check: CheckCall | None = None) -> tuple[Message, ...]:
    """The same for plain messages, such as those of a request that nobody projected."""
    found: list[Message] = []
    at = 0
    while at < len(messages):
        end = at + 1
        while end < len(messages) and messages[end].role == "tool":
            end += 1
        good, bad = _sorted_out(messages[at:end], check)
        found += [message for _, message in (*good, *bad)]
        at = end
    return tuple(found)


def tagged(tag: str, what: Message | ToolCall) -> Message:
    """A call or a result as text of the user."""
    if isinstance(what, ToolCall):
        return Message.user(f"{tag} {what.name} {_as_json(what.arguments)}")
    return Message.user(f"{tag} {what.name or what.tool_call_id or ''}: {what.text}")


Placed = list[tuple[int, Message]]


def _sorted_out(group: Sequence[Message], check: CheckCall | None) -> tuple[Placed, Placed]:
    """What of a message and the results behind it can be sent, and what becomes text; both with their places."""
    first, bad = group[0], []
    if first.role == "tool":
        return [], [(place, tagged(ORPHAN_RESULT, message)) for place, message in enumerate(group)]
    answers: dict[str, int] = {}
    for place, message in enumerate(group[1:], start=1):
        answers.setdefault(message.tool_call_id or "", place)
    calls: dict[str, ToolCall] = {}
    invalid: set[str] = set()
    for call in first.tool_calls:
        if call.id in calls or call.id in invalid or not call.name or (check is not None and check(call)):
            invalid.add(call.id)
            bad.append((0, tagged(INVALID_CALL, call)))
        elif not call.id or call.id not in answers:
            bad.append((0, tagged(ORPHAN_CALL, call)))
        else:
            calls[call.id] = call
    good: Placed = []
    if calls or len(calls) == len(first.tool_calls):
        good.append((0, first if len(calls) == len(first.tool_calls) else _with_calls(first, tuple(calls.values()))))
    elif first.content:
        good.append((0, _with_calls(first, ())))
    for place, message in enumerate(group[1:], start=1):
        id = message.tool_call_id or ""
        if id in calls and answers[id] == place:
            good.append((place, message))
        else:
            tag = INVALID_RESULT if id in invalid and id not in calls and answers[id] == place else ORPHAN_RESULT
            bad.append((place, tagged(tag, message)))
    return good, bad


def _with_calls(message: Message, calls: tuple[ToolCall, ...]) -> Message:
    return message.model_copy(update={"tool_calls": calls})


def _group_end(lines: Sequence[Line], at: int) -> int:
    """The place behind a message and the results that follow it."""
    end = at + 1
    while end < len(lines) and lines[end].message.role == "tool":
        end += 1
    return end


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
