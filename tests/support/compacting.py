"""Turns with results of tools, and how a policy shows them."""

from __future__ import annotations

from typing import Any

from graphagent.ledger import Boundary, Event, Session, Summary
from graphagent.messages import Message, ToolCall
from graphagent.models.tokens import SIMPLE
from processors import Compaction, Projection, Reader, Summaries, default_pipeline

NOW = "r9"


def turn(request: str, size: int, *, tool: str = "read", calls: int = 1, final: bool = True) -> list[Event]:
    """A turn: a question, a round of calls with results of so many characters each, an answer."""
    asked = tuple(ToolCall(id=f"{request}-{n}", name=tool) for n in range(calls))
    results = tuple(Message.tool("x" * size, call.id, name=tool) for call in asked)
    common: dict[str, Any] = {"request_id": request, "invocation_id": f"i{request}", "filter_key": "app"}
    events = [
        Event(author="user", messages=(Message.user(f"q {request}"),), **common),
        Event(author="bot", messages=(Message.assistant("", tool_calls=asked),), **common),
        Event(author="bot", kind="tool_result", messages=results, **common),
    ]
    return [*events, Event(author="bot", messages=(Message.assistant(f"a {request}"),), **common)] if final else events


def view(events: list[Event], compaction: Compaction | None, request: str = NOW, **given: Any) -> Projection:
    """The projection for a reader of this request."""
    session = Session(app="app", user="ann", id="s", events=events)
    reader = Reader(agent="bot", filter_key="app", request_id=request, invocation_id=f"i{request}", **given)
    return default_pipeline(compaction=compaction)(Projection.of(session, reader))


def covered(events: list[Event], compaction: Compaction | None) -> Projection:
    """The projection for a reader whose events are all covered by a summary."""
    numbered = [event.model_copy(update={"seq": at}) for at, event in enumerate(events, start=1)]
    last = numbered[-1]
    boundary = Boundary(filter_key="app", seq=last.seq, cutoff_at=last.timestamp, last_event_id=last.id)
    summary = Summary(text="SUM", boundary=boundary, updated_at=last.timestamp)
    session = Session(app="app", user="ann", id="s", events=numbered, summaries={"app": summary})
    reader = Reader(agent="bot", filter_key="app", request_id=NOW, invocation_id=f"i{NOW}")
    return default_pipeline(summaries=Summaries(), compaction=compaction)(Projection.of(session, reader))


def results(projection: Projection) -> list[str]:
    """The texts of the results in view."""
    return [line.message.text for line in projection.lines if line.message.role == "tool"]


def simple(**options: Any) -> Compaction:
    """A policy that counts a quarter of the characters."""
    return Compaction(counter=SIMPLE, **options)
