"""The ledger of a conversation: events, sessions, summaries. Plain values; an event is never rewritten."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_serializer

from graphagent.ids import fresh_id
from graphagent.messages import Message
from graphagent.model_view import ModelView

EventKind = Literal["message", "tool_result", "state", "error", "completion", "graph"]


class TokenUsage(BaseModel):
    """Tokens of one model call, or of several. `cost`: what they cost, in the money of the model (US dollars for those
    of litellm's list); None if that is not known of all of them."""

    model_config = ConfigDict(frozen=True)

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None


class ErrorInfo(BaseModel):
    """What went wrong. `type`: `stream_error`, `api_error`, `flow_error`, `run_error`, `cancelled` or
    `stop_agent_error`."""

    model_config = ConfigDict(frozen=True)

    type: str
    message: str
    code: str | None = None


class Event(BaseModel):
    """One thing that happened in a conversation.

    `messages`: usually one; the results of one round of tool calls are several, in call order. `partial`: a piece of
    text that is still coming (`delta`); never stored. `author`: `user`, or an agent's name. `request_id`: one per
    turn (a call of the Runner, and those that go on with it); `invocation_id`: one per agent run. `branch`: path of
    agents and graph branches; `filter_key`: path that decides who sees it. `state_delta`: merged into the session's
    state. `extensions`: free plain data. `seq`: its number in its session, which grows with every append (0: no session
    gave it one). `view`: of a model's answer: what the model saw of the session, and why. Two
    events are equal if they say the same, whatever their numbers.
    """

    model_config = ConfigDict(frozen=True)

    id: str = Field(default_factory=fresh_id)
    seq: int = 0
    kind: EventKind = "message"
    author: str = ""
    messages: tuple[Message, ...] = ()
    delta: str = ""
    reasoning_delta: str = ""
    partial: bool = False
    request_id: str = ""
    invocation_id: str = ""
    parent_invocation_id: str = ""
    branch: str = ""
    filter_key: str = ""
    tag: str = ""
    timestamp: float = Field(default_factory=time.time)
    state_delta: Mapping[str, Any] = Field(default_factory=dict)
    usage: TokenUsage | None = None
    finish_reason: str | None = None
    error: ErrorInfo | None = None
    skip_summarization: bool = False
    long_running_tool_ids: frozenset[str] = frozenset()
    interrupts: tuple[Mapping[str, Any], ...] = ()
    view: ModelView | None = None
    extensions: Mapping[str, Any] = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """The plain text of its messages, or the piece of text that it brings."""
        return self.delta if self.partial else "\n".join(m.text for m in self.messages if m.text)

    @property
    def is_tool_call(self) -> bool:
        """True if a model asks for tools."""
        return any(message.tool_calls for message in self.messages)

    @property
    def is_tool_result(self) -> bool:
        """True if it carries results of tools."""
        return any(message.role == "tool" for message in self.messages)

    @property
    def is_user(self) -> bool:
        """True if a person said it."""
        return any(message.role == "user" for message in self.messages)

    @property
    def has_content(self) -> bool:
        """True if a message of it has a payload: text, parts, reasoning, calls, or it is a result of a tool."""
        return any(m.content or m.reasoning or m.tool_calls or m.role == "tool" for m in self.messages)

    @property
    def is_final(self) -> bool:
        """True if it ends the turn of its agent: complete, and it asks for no tool."""
        return not self.partial and not self.is_tool_call and (bool(self.messages) or self.error is not None)

    @property
    def stored(self) -> bool:
        """True if it belongs into the session: it changes the state, or is complete and has content."""
        return bool(self.state_delta) or (not self.partial and self.has_content)

    def with_tag(self, tag: str) -> Event:
        """The same event with one tag more; tags are joined by semicolons."""
        return self.model_copy(update={"tag": f"{self.tag};{tag}" if self.tag else tag})

    def has_tag(self, tag: str) -> bool:
        """Whether it carries that tag; blanks around a tag don't count."""
        return tag.strip() in (part.strip() for part in self.tag.split(";"))

    def clone(self) -> Event:
        """A deep copy with an id of its own."""
        return self.model_copy(update={"id": fresh_id()}, deep=True)

    @field_serializer("long_running_tool_ids", when_used="json")
    def _in_order(self, ids: frozenset[str]) -> list[str]:  # a set shows itself differently in each process
        return sorted(ids)

    def numbered(self, seq: int) -> Event:
        """The same event with its number in the session."""
        return self if self.seq == seq else self.model_copy(update={"seq": seq})

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Event) and self.seq != other.seq:
            other = other.numbered(self.seq)
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self.id)

    def matches(self, key: str) -> bool:
        """Whether a reader with this filter key sees it: the same key, an ancestor or a descendant; empty sees all."""
        return keys_match(self.filter_key, key)


def keys_match(one: str, other: str) -> bool:
    """True if one path is the other, or above or below it; an empty one matches everything. `app` is not above
    `application`."""
    if not one or not other:
        return True
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def is_below(key: str, above: str) -> bool:
    """True if a path is `above` or a descendant of it; everything is below the empty one."""
    return not above or f"{key}/".startswith(f"{above}/")


WHOLE = ""
"""The filter key of the summary of the whole session."""


class SessionKey(NamedTuple):
    """What names a session."""

    app: str
    user: str
    session: str


class Boundary(BaseModel):
    """Up to where a summary covers: of the events whose filter key is `filter_key` or below (all, for the whole
    session) those up to the number `seq`. Only of a boundary without a number, such as one from elsewhere, the others
    count: up to `last_event_id` where it is found, else what is older than `cutoff_at` (seconds since the epoch; 0:
    nothing is covered). `last_event_id` and `cutoff_at` are those of the last covered event."""

    model_config = ConfigDict(frozen=True)

    filter_key: str = WHOLE
    seq: int = 0
    cutoff_at: float = 0.0
    last_event_id: str = ""

    def covers(self, event: Event) -> bool:
        """Whether the summary stands for this event of the session; without numbers by time, where one of the very
        time is not covered."""
        if not is_below(event.filter_key, self.filter_key):
            return False
        if self.seq and event.seq:
            return event.seq <= self.seq
        return event.timestamp < self.cutoff_at or event.id == self.last_event_id


class Summary(BaseModel):
    """A hand-over text and what it covers; they always move together."""

    model_config = ConfigDict(frozen=True)

    text: str
    boundary: Boundary
    updated_at: float
    topics: tuple[str, ...] = ()


class Session(BaseModel):
    """A conversation as a service hands it out: a copy, to be read.

    `state`: own keys bare, those of the app as `app:...`, of the user as `user:...`, scratch as `temp:...` (never
    stored). `tracks`: logs beside the conversation, by name.
    """

    app: str
    user: str
    id: str
    events: list[Event] = Field(default_factory=list)
    state: dict[str, Any] = Field(default_factory=dict)
    summaries: dict[str, Summary] = Field(default_factory=dict)
    tracks: dict[str, list[Any]] = Field(default_factory=dict)
    created_at: float = Field(default_factory=time.time)
    updated_at: float = Field(default_factory=time.time)

    @property
    def key(self) -> SessionKey:
        """App, user and id."""
        return SessionKey(self.app, self.user, self.id)

    def summary_for(self, filter_key: str = WHOLE) -> Summary | None:
        """The summary of a key, else that of the whole session; None if neither has a text."""
        found = (self.summaries.get(filter_key), self.summaries.get(WHOLE))
        return next((summary for summary in found if summary is not None and summary.text.strip()), None)
