"""What of a session has not been looked at yet for memories, in portions that a model can read. Pure.

Source: spec/context, 17.5, point 5; the cursor is an event's number, so no time is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from graphagent.agents.agent_tool import TRIGGER
from graphagent.ledger import Event, Session
from graphagent.models.tokens import SIMPLE
from runner.memory.extraction import Said
from runner.memory.operations import Operation

CURSOR = "memory:extraction"
"""The key in a session's state under which the cursor is kept."""
MODE, POLLUTED = "memory:mode", "polluted"
"""What a session's state says once documents from outside are in it: what is said then isn't only the user's."""
CUT = " [...] "


class Cursor(NamedTuple):
    """How far a session has been read. `seq`: the number of the last event; `at`: when, in seconds since the epoch
    (None: never). `until` and `operations`: what was found up to that event but not all made yet; `tries`: how often
    that was tried."""

    seq: int = 0
    at: float | None = None
    until: int = 0
    operations: tuple[Operation, ...] = ()
    tries: int = 0

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Cursor:
        """That of a session's state; what can't be read is none."""
        data = state.get(CURSOR)
        try:
            operations = tuple(Operation.from_data(item) for item in data["operations"])  # type: ignore[index]
            return cls(data["seq"], data["at"], data["until"], operations, data["tries"])  # type: ignore[index]
        except (TypeError, KeyError, AttributeError):
            return cls()

    def delta(self) -> dict[str, Any]:
        """The change of state that keeps it."""
        return {CURSOR: {**self._asdict(), "operations": [operation.to_data() for operation in self.operations]}}


class Portion(NamedTuple):
    """Messages that are read together, and the number of the last event that is looked at with them."""

    messages: tuple[Said, ...]
    until: int


def portions(events: Sequence[Event], most: int) -> list[Portion]:
    """The messages of events, in order, about so many tokens at a time; a portion begins with a person's message where
    it can, and the last one reaches to the last event. Of a message that is longer the beginning and the end are kept.
    None if nothing was said."""
    found: list[Portion] = []
    taken: list[Said] = []
    size = 0
    for event in events:
        said = [_shortened(one, most) for one in said_in(event)]
        tokens = sum(SIMPLE.text(one.text) for one in said)
        over = size + tokens - most
        if taken and said and over > 0 and (said[0].role == "user" or over > most):
            found.append(Portion(tuple(taken), taken[-1].seq))
            taken, size = [], 0
        taken += said
        size += tokens
    return [*found, Portion(tuple(taken), events[-1].seq)] if taken else []


def new_events(session: Session, after: int, request_id: str = "") -> list[Event]:
    """The events with a higher number than `after`, up to the last one of a run (empty: all): what belongs to a run
    that still goes on is left to its end."""
    events = [event for event in session.events if event.seq > after]
    if request_id:
        last = max((event.seq for event in events if event.request_id == request_id), default=0)
        events = [event for event in events if event.seq <= last]
    return events


def said_in(event: Event) -> list[Said]:
    """What a person or an assistant said to the other: no results of tools, no calls, nothing that an agent said to one
    that it used as a tool."""
    if TRIGGER in event.extensions or event.error is not None:
        return []
    return [
        Said(message.role, message.text.strip(), event.timestamp, event.seq)
        for message in event.messages
        if message.role in ("user", "assistant")
        and message.text.strip()
        and not message.tool_calls
        and not message.tool_call_id
    ]


def is_polluted(session: Session, tools: Sequence[str]) -> bool:
    """Whether documents from outside are in a session: its state says so, or one of these tools (patterns as for file
    names) has brought a result."""
    if session.state.get(MODE) == POLLUTED:
        return True
    names = {message.name for event in session.events for message in event.messages if message.role == "tool"}
    return any(fnmatchcase(name, pattern) for name in names if name for pattern in tools)


def _shortened(said: Said, most: int) -> Said:
    if SIMPLE.text(said.text) <= most:
        return said
    half = 2 * most  # characters: half of the tokens, of four characters each
    return said._replace(text=said.text[:half] + CUT + said.text[-half:])
