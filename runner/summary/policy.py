"""Which filter keys get summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphagent.ledger import WHOLE, keys_match


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPolicy:
    """`allow`: filter keys that get summaries, with those above and below them (None: all; the whole session always
    does). `cascade`: the summary of the whole session follows those of branches. Source: spec/context, 10.2."""

    allow: Sequence[str] | None = None
    cascade: bool = True

    def allows(self, filter_key: str) -> bool:
        """Whether there may be a summary of this key."""
        if filter_key == WHOLE or self.allow is None:
            return True
        return any(keys_match(filter_key, entry.strip()) for entry in self.allow if entry.strip())

    def targets(self, trigger: str) -> tuple[str, ...]:
        """The filter keys whose summaries are looked at when an event with this key came."""
        if trigger == WHOLE:
            return (WHOLE,)
        return (*([trigger] if self.allows(trigger) else ()), *([WHOLE] if self.cascade else ()))


ANY_KEY = SummaryPolicy()
