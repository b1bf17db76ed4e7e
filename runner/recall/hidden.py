"""What of a session a reader doesn't see since summaries stand for it. Pure.

Source: spec/context, 15.2; the boundary is a number of the ledger, so nothing here goes by the time where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from graphagent.ledger import WHOLE, Boundary, Event, Summary, is_below


class Hidden(NamedTuple):
    """The events that summaries cover, by the boundaries of these."""

    boundaries: tuple[Boundary, ...] = ()

    def covers(self, event: Event) -> bool:
        """Whether a summary stands for this event of the session."""
        return any(boundary.covers(event) for boundary in self.boundaries)

    @property
    def until(self) -> int | None:
        """No event with a higher number is hidden; None if that can't be said."""
        if all(boundary.seq for boundary in self.boundaries):
            return max((boundary.seq for boundary in self.boundaries), default=0)
        return None


def hidden_from(filter_key: str, summaries: Mapping[str, Summary]) -> Hidden:
    """What summaries hide from the reader with a filter key: that of the key itself, else those of the keys below it,
    else that of the whole session. A summary without text stands for nothing."""
    told = {key: summary for key, summary in summaries.items() if summary.text.strip()}
    if filter_key in told:
        found = [told[filter_key]]
    else:
        found = [told[key] for key in sorted(told) if filter_key and key and is_below(key, filter_key)]
        if not found and WHOLE in told:
            found = [told[WHOLE]]
    return Hidden(tuple(summary.boundary for summary in found if _reaches(summary.boundary)))


def _reaches(boundary: Boundary) -> bool:
    return bool(boundary.seq or boundary.cutoff_at or boundary.last_event_id)
