"""What tests of summaries are made of: an input, a model that keeps what it was asked, small and exact counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphagent.agents.model import ModelRequest
from graphagent.ledger import WHOLE, Boundary, Event, SessionKey, Summary
from graphagent.models import ScriptedModel
from graphagent.models.tokens import TokenCounter
from runner.summary.prefix import coverable
from runner.summary.seen import Seen
from runner.summary.values import SummaryContext, SummaryInput

KEY = SessionKey("app", "ann", "s1")
CHARACTERS = TokenCounter(len, overhead=0)
"""A token is a character: sizes in tests can be read off."""
BARE = "{previous_summary}|{conversation_text}"
"""A prompt of one character; with `system_prompt=""` nothing else is in the request."""
PLAIN: dict[str, Any] = {"prompt": BARE, "system_prompt": "", "max_words": None, "counter": CHARACTERS}
"""Options of a summariser whose requests are the texts only (an empty one reads `(none)`)."""


def numbered(events: Sequence[Event], first: int = 1) -> tuple[Event, ...]:
    """The events with numbers, as a session gives them."""
    return tuple(event.numbered(first + at) for at, event in enumerate(events))


def former(text: str = "BEFORE", at: float = 0.5, key: str = WHOLE) -> Summary:
    """A former summary that covers up to a time."""
    return Summary(text=text, boundary=Boundary(filter_key=key, seq=0, cutoff_at=at), updated_at=at)


def given(
    events: Sequence[Event], *, key: str = WHOLE, previous: Summary | None = None, force: bool = False, **context: Any
) -> SummaryInput:
    """An input; what else is given is of its context."""
    return SummaryInput(KEY, key, previous, numbered(events), SummaryContext(**context), force)


def seen(input: SummaryInput, *, skip: int = 0, counter: TokenCounter = CHARACTERS, clock: Any = None) -> Seen:
    """What checks see of an input."""
    todo = coverable(input.events, skip=skip, previous=input.previous is not None)
    return Seen(input, todo, counter, clock)


class Summing(ScriptedModel):
    """A model that answers each request with `S1`, `S2`, ..., or with what `answer` makes of it."""

    def __init__(self, answer: Callable[[ModelRequest], Any] | None = None, *, window: int | None = 100_000) -> None:
        super().__init__(answer or (lambda request: f"S{len(self.requests)}"), context_window=window)

    @property
    def asked(self) -> list[str]:
        """The last message of each request."""
        return [request.messages[-1].text for request in self.requests]
