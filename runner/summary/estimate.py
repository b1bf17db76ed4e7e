"""Whether a summary is worth what it costs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from graphagent.ledger import Event
from processors.summary import as_system_text
from runner.summary.checks import AnyOf, ContextOver, Judged, alone, not_below
from runner.summary.seen import Seen
from runner.summary.values import Check

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PaysBack:
    """Passes if the requests that are expected to follow save more tokens than the summary takes.

    Each of them has the summary in the place of what it covers. The call reads that, the former summary and the prompt,
    and writes the new one. How many will follow nobody knows: `SummaryContext.expected_requests` if it is set, else
    `horizon` times as many as there were. That makes short conversations, in which a summary can't pay, go without.

    `floor`: no summary of fewer tokens. `reading`, `writing`: what a token costs that a later request reads, and one
    that the summariser writes, as against one that it reads: about 0.1 and 4 where the provider's cache serves the
    history. Meant to be one of several reasons, as in `FULL_OR_WORTH_IT`.
    """

    floor: int = 2_000
    horizon: float = 0.25
    reading: float = 1.0
    writing: float = 1.0

    def __post_init__(self) -> None:
        not_below("PaysBack(floor", self.floor, 0)
        not_below("PaysBack(horizon", self.horizon, 0)
        not_below("PaysBack(reading", self.reading, 0)
        not_below("PaysBack(writing", self.writing, 0)

    async def judge(self, seen: Seen) -> Judged:
        """Tokens saved against tokens spent. Not passed if they can't be counted."""
        try:
            covered, saved, spent = self.estimated(seen)
        except Exception:  # a counter is a user's function: one that fails says nothing of the conversation
            _log.warning("what a summary saves could not be counted: the check doesn't pass", exc_info=True)
            return alone(Check("pays_back", "tokens", False, 0, 0, "tokens"))
        if covered <= self.floor:
            return alone(Check("pays_back_floor", "tokens", False, covered, self.floor, "tokens"))
        return alone(Check("pays_back", "tokens", saved > spent, round(saved), round(spent), "tokens"))

    def estimated(self, seen: Seen) -> tuple[int, float, float]:
        """Tokens that would be covered, that later requests save, and that the summary takes."""
        counter, previous = seen.counter, seen.given.previous
        covered = sum(counter.messages(event.messages) for event in seen.events)
        frame = counter.text(as_system_text(""))
        former = 0 if previous is None else seen.previous_tokens + frame
        each = covered + former - seen.size - frame
        expected = seen.given.context.expected_requests
        follow = self.horizon * requests_so_far(seen.given.events) if expected is None else expected
        spent = seen.overhead + seen.previous_tokens + covered + self.writing * seen.size
        return covered, self.reading * follow * each, spent


FULL_OR_WORTH_IT = AnyOf(ContextOver(), PaysBack())
"""When the context fills up, or as soon as a summary saves tokens."""


def requests_so_far(events: Sequence[Event]) -> float:
    """About how many requests a conversation has had: those that the events show, and as many before them as their
    numbers in the session let expect."""
    answers = sum(message.role == "assistant" for event in events for message in event.messages)
    if not events or not events[0].seq:
        return float(answers)
    return answers * events[-1].seq / (events[-1].seq - events[0].seq + 1)
