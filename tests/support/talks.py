"""Conversations for tests of the projection: built one event a call, read back in short words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from graphagent.ledger import Boundary, Event, Session, Summary
from graphagent.messages import Message, ToolCall
from processors import Pipeline, Projection, Reader, assemble, default_pipeline


class Talk:
    """A session under construction. Events are e1, e2, ... at 1.0, 2.0, ... seconds; fields that are given to `turn`
    hold for what follows."""

    def __init__(self, **fields: Any) -> None:
        self.events: list[Event] = []
        self.summaries: dict[str, Summary] = {}
        self.fields: dict[str, Any] = {"request_id": "r1", "invocation_id": "i1", "filter_key": "app", **fields}

    def turn(self, **fields: Any) -> Talk:
        self.fields |= fields
        return self

    def event(self, *messages: Message, author: str, **fields: Any) -> Talk:
        number = len(self.events) + 1
        values = {"id": f"e{number}", "timestamp": float(number), **self.fields, **fields}
        self.events.append(Event(author=author, messages=messages, **values))
        return self

    def user(self, text: str, **fields: Any) -> Talk:
        return self.event(Message.user(text), author="user", **fields)

    def bot(
        self, text: str = "", *calls: str, author: str = "bot", reasoning: str | None = None, **fields: Any
    ) -> Talk:
        made = tuple(ToolCall(id=call, name=f"tool_{call}", arguments={"x": call}) for call in calls)
        return self.event(Message.assistant(text, tool_calls=made, reasoning=reasoning), author=author, **fields)

    def results(self, *calls: str, author: str = "bot", text: str = "ok", **fields: Any) -> Talk:
        return self.event(*(Message.tool(text, call) for call in calls), author=author, **fields)

    def summary(self, key: str, text: str, *, upto: str = "", before: float = 0.0) -> Talk:
        boundary = Boundary(filter_key=key, cutoff_at=before, last_event_id=upto)
        self.summaries[key] = Summary(text=text, boundary=boundary, updated_at=before)
        return self

    @property
    def session(self) -> Session:
        return Session(app="app", user="u", id="s", events=self.events, summaries=self.summaries)

    def reader(self, text: str | None = None, **fields: Any) -> Reader:
        """The agent 'bot' in the turn as it stands now; `text`: what it was asked."""
        message = None if text is None else Message.user(text)
        return Reader(**{"agent": "bot", "branch": "bot", "message": message, **self.fields, **fields})

    def run(self, reader: Reader, pipeline: Pipeline | None = None, **given: Any) -> Projection:
        return (pipeline or default_pipeline())(Projection.of(self.session, reader, **given))

    def seen(self, text: str | None = None, pipeline: Pipeline | None = None, **fields: Any) -> list[str]:
        """What the reader is sent, in short words."""
        return short(assemble(self.run(self.reader(text, **fields), pipeline)))


def short(messages: Iterable[Message]) -> list[str]:
    """Messages in short words: `user hi`, `assistant text >c1 >c2`, `tool c1 ok`."""
    return [_short(message) for message in messages]


def _short(message: Message) -> str:
    words: list[str] = [message.role, *([message.tool_call_id] if message.tool_call_id else [])]
    words += [message.text] if message.text else []
    return " ".join([*words, *(f">{call.id}" for call in message.tool_calls)])


def faults(messages: Sequence[Message]) -> list[str]:
    """What a provider would refuse: calls without results right behind them in number and id, results without calls."""
    found, at = [], 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message.role == "tool":
            found.append(f"result '{message.tool_call_id}' without a call")
        asked = [call.id for call in message.tool_calls]
        if len(set(asked)) != len(asked):
            found.append(f"the same call twice: {asked}")
        answered = []
        while asked and at < len(messages) and messages[at].role == "tool":
            answered.append(messages[at].tool_call_id)
            at += 1
        if sorted(asked) != sorted(answered):
            found.append(f"calls {asked}, results {answered}")
    return found
