"""The order of events that the protocol allows: what is open on a stream, and whether an event may come next.

The rules are those of the protocol's own client (`verifyEvents` of `@ag-ui/client` 1.0), which ends a run that breaks
one: the first event is RUN_STARTED or RUN_ERROR; nothing comes after RUN_ERROR, and after RUN_FINISHED only another
run; what has an end is opened once and closed before RUN_FINISHED.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ag_ui.core import (
    BaseEvent,
    EventType,
    ReasoningEndEvent,
    ReasoningMessageEndEvent,
    StepFinishedEvent,
    TextMessageEndEvent,
    ToolCallEndEvent,
)

Thing = Literal["text", "call", "reasoning", "thought", "step"]

_OPENS: dict[EventType, tuple[Thing, str]] = {
    EventType.TEXT_MESSAGE_START: ("text", "message_id"),
    EventType.TOOL_CALL_START: ("call", "tool_call_id"),
    EventType.REASONING_START: ("reasoning", "message_id"),
    EventType.REASONING_MESSAGE_START: ("thought", "message_id"),
    EventType.STEP_STARTED: ("step", "step_name"),
}
_GOES_ON: dict[EventType, tuple[Thing, str]] = {
    EventType.TEXT_MESSAGE_CONTENT: ("text", "message_id"),
    EventType.TOOL_CALL_ARGS: ("call", "tool_call_id"),
    EventType.REASONING_MESSAGE_CONTENT: ("thought", "message_id"),
}
_CLOSES: dict[EventType, tuple[Thing, str]] = {
    EventType.TEXT_MESSAGE_END: ("text", "message_id"),
    EventType.TOOL_CALL_END: ("call", "tool_call_id"),
    EventType.REASONING_END: ("reasoning", "message_id"),
    EventType.REASONING_MESSAGE_END: ("thought", "message_id"),
    EventType.STEP_FINISHED: ("step", "step_name"),
}
TERMINAL = (EventType.RUN_FINISHED, EventType.RUN_ERROR)


class Order:
    """Keeps what is open on one stream. `begun`, `over`: whether the run has begun, and ended."""

    __slots__ = ("_open", "begun", "over")

    def __init__(self) -> None:
        self._open: dict[tuple[Thing, str], None] = {}  # in the order in which they were opened
        self.begun = False
        self.over = False

    def take(self, event: BaseEvent) -> bool:
        """Note an event that goes out; False, and nothing is noted, if it may not come here."""
        kind = event.type
        if self.over or (not self.begun and kind not in (EventType.RUN_STARTED, EventType.RUN_ERROR)):
            return False
        if kind == EventType.RUN_STARTED:
            if self.begun:
                return False
            self.begun = True
        elif kind in TERMINAL:
            if kind == EventType.RUN_FINISHED and self._open:
                return False
            self.over = True
        elif kind in _OPENS:
            return self._opened(*_OPENS[kind], event)
        elif kind in _GOES_ON:
            return self._key(*_GOES_ON[kind], event) in self._open
        elif kind in _CLOSES:
            return self._closed(*_CLOSES[kind], event)
        return True

    def copy(self) -> Order:
        """Another one that is where this one is."""
        other = Order()
        other._open, other.begun, other.over = dict(self._open), self.begun, self.over
        return other

    def closing(self) -> list[BaseEvent]:
        """The events that close all that is open, what was opened last first. They are not noted."""
        return [_CLOSING[thing](name) for thing, name in reversed(self._open)]

    def open_of(self, thing: Thing) -> list[str]:
        """The names of what is open of a kind, in the order in which it was opened."""
        return [name for kind, name in self._open if kind == thing]

    def _opened(self, thing: Thing, field: str, event: BaseEvent) -> bool:
        key = self._key(thing, field, event)
        if key in self._open:
            return False
        self._open[key] = None
        return True

    def _closed(self, thing: Thing, field: str, event: BaseEvent) -> bool:
        key = self._key(thing, field, event)
        if key not in self._open:
            return False
        del self._open[key]
        return True

    @staticmethod
    def _key(thing: Thing, field: str, event: BaseEvent) -> tuple[Thing, str]:
        return thing, getattr(event, field)


_CLOSING: dict[Thing, Callable[[str], BaseEvent]] = {
    "text": lambda name: TextMessageEndEvent(message_id=name),
    "call": lambda name: ToolCallEndEvent(tool_call_id=name),
    "reasoning": lambda name: ReasoningEndEvent(message_id=name),
    "thought": lambda name: ReasoningMessageEndEvent(message_id=name),
    "step": lambda name: StepFinishedEvent(step_name=name),
}
