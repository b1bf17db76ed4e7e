"""What a conversation looks like to the model that sums it up: one line an item, with who said it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphagent.ledger import Event
from graphagent.messages import Message, ToolCall
from processors.projection import Line
from processors.rounds import match_rounds
from runner.summary.prefix import lines_of, second_records


class Item(NamedTuple):
    """A line of the text, and the place of its event among the events."""

    at: int
    text: str


def said(author: str, text: str) -> str:
    """How what somebody said is written down."""
    return f"{author}: {text}"


def called(author: str, call: ToolCall) -> str:
    """How a tool call is written down; arguments are left out if there are none."""
    given = f" with {json.dumps(call.arguments, ensure_ascii=False)}" if call.arguments else ""
    return f"{author}: called tool {call.name}{given}"


def returned(author: str, tool: str, text: str) -> str:
    """How a tool's result is written down."""
    return f"{author}: tool {tool} returned {text or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Formatters:
    """Make the lines of the text; one that returns an empty text leaves the item out.

    `message(author, text)`, `call(author, call)`, `result(author, tool, text)`.
    """

    message: Callable[[str, str], str] = said
    call: Callable[[str, ToolCall], str] = called
    result: Callable[[str, str, str], str] = returned


DEFAULT = Formatters()


def items_of(events: Sequence[Event], formatters: Formatters = DEFAULT) -> list[Item]:
    """The lines of the events, in order: texts, tool calls, results; no reasoning. Source: spec/context, 9.3.

    A line that goes on after a break is indented there, so that no text can pass for what somebody else said. Of two
    results of one call the first counts.
    """
    return list(_items(events, formatters))


def has_items(events: Sequence[Event], formatters: Formatters = DEFAULT) -> bool:
    """Whether there is any line."""
    return next(_items(events, formatters), None) is not None


def conversation(items: Iterable[Item]) -> str:
    """The lines as one text."""
    return "\n".join(item.text for item in items)


def _items(events: Sequence[Event], formatters: Formatters) -> Iterator[Item]:
    lines = lines_of(events)
    matched = match_rounds(lines)
    names = {
        at: round_.line.message.tool_calls[position].name
        for round_ in matched.rounds.values()
        for position, at in round_.results.items()
    }
    doubled = second_records(lines, matched)
    for at, line in enumerate(lines):
        if at not in doubled:
            for text in _texts(line, names.get(at, ""), formatters):
                if text.strip():
                    yield Item(line.place, text.strip().replace("\n", "\n  "))


def _texts(line: Line, tool: str, formatters: Formatters) -> Iterator[str]:
    author = line.event.author.strip() or "unknown"
    message, text = line.message, _shown(line.message)
    if message.role == "tool":
        yield formatters.result(author, tool or message.name or message.tool_call_id or "unknown", text)
        return
    if text:
        yield formatters.message(author, text)
    for call in message.tool_calls:
        yield formatters.call(author, call)


def _shown(message: Message) -> str:
    """The text of a message; of parts that aren't text their kind."""
    if isinstance(message.content, str):
        return message.content.strip()
    parts = [
        str(part.get("text", "")) if part.get("type") == "text" else f"[{part.get('type', 'attachment')}]"
        for part in message.content
    ]
    return "\n".join(filter(None, parts)).strip()
