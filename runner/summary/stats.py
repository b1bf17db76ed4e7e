"""Counts of summaries, for whoever exports metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from runner.summary.values import Attempt


@dataclass(slots=True)
class SummaryStats:
    """`outcomes`: attempts by outcome. Tokens and calls: those of the summariser. `ahead`: summaries that were made and
    paid for, but that the store refused. `waiting`: checks in the queues now; `in_caller`: those that a full or stopped
    queue had the caller do."""

    outcomes: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    ahead: int = 0
    waiting: int = 0
    in_caller: int = 0

    def count(self, attempt: Attempt) -> None:
        """Add an attempt."""
        self.outcomes[attempt.outcome] += 1
        self.calls += attempt.spent.calls
        self.input_tokens += attempt.spent.input_tokens
        self.output_tokens += attempt.spent.output_tokens

    def snapshot(self) -> dict[str, int]:
        """All counts as plain data; those of outcomes as `outcome.updated`."""
        outcomes = {f"outcome.{name}": count for name, count in sorted(self.outcomes.items())}
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "outcomes"}
        return {**outcomes, **plain}
