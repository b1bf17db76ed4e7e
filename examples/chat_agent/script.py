"""What the scripted model says instead of a real one: it reads dates, calls the tools, and words their results."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphagent import Message
from graphagent.agents import ModelRequest
from graphagent.messages import ToolCall
from graphagent.models import Item

DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
HELP = "Give me one ISO date, such as 2026-01-31, for its weekday, or two for the days between them."


def script(request: ModelRequest) -> Item:
    """The next answer, made of the conversation that the model is sent."""
    last = max(place for place, one in enumerate(request.messages) if one.role == "user")
    calls = [call for one in request.messages[last:] for call in one.tool_calls]
    if not calls:
        return _calls(request.messages[: last + 1])
    results = {one.tool_call_id: one.text for one in request.messages[last:] if one.role == "tool"}
    return " ".join(_sentence(call, results[call.id]) for call in calls)


def _calls(said: Sequence[Message]) -> Item:
    """The tools for the dates in the last message; without one there, for the date that was named last before."""
    dates = DATE.findall(said[-1].text)
    if not dates:
        dates = [one for message in said if message.role == "user" for one in DATE.findall(message.text)][-1:]
    if not dates:
        return HELP
    calls = [{"name": "weekday", "arguments": {"day": dates[-1]}}]
    if len(dates) > 1:
        calls.insert(0, {"name": "days_between", "arguments": {"start": dates[0], "end": dates[-1]}})
    return {"tool_calls": calls}


def _sentence(call: ToolCall, result: str) -> str:
    if result.startswith("Error"):
        return result
    if call.name == "weekday":
        return f"{call.arguments['day']} is a {result}."
    return f"From {call.arguments['start']} to {call.arguments['end']} it is {result} days."
