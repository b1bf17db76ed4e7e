"""A summary stands for the events that it covers: which one is used, what it hides, how its text goes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, get_args

from graphagent.ledger import WHOLE, Boundary, Event, Summary, is_below
from processors.cutoff import keep_whole_turns
from processors.projection import Block, Line, Mode, Note, Projection, one_of

STEP = "summary"


def as_system_text(text: str) -> str:
    """How a summary is put into the system message."""
    return (
        "Here is a brief summary of earlier interactions:\n"
        f"<summary_of_previous_interactions>\n{text}\n</summary_of_previous_interactions>\n"
        "Where it differs from the current conversation, the current conversation is right."
    )


def as_user_text(text: str) -> str:
    """How a summary is put before what the user says."""
    return f"Context from previous interactions, for background only:\n{text}"


@dataclass(frozen=True, slots=True)
class Summaries:
    """Let the session's summaries stand for the events that they cover.

    `mode`: in the system message, or before the first message of the user. `wording`: makes the text that goes in of
    the summary's. Only where the reader sees all times, and not only its own run. Source: spec/context, 6.2 to 6.4.
    """

    mode: Mode = "system"
    wording: Callable[[str], str] | None = None

    def __post_init__(self) -> None:
        one_of("Summaries", "mode", self.mode, get_args(Mode))

    def __call__(self, projection: Projection) -> Projection:
        """Take out what a summary covers, except what a turn in view needs, and add the summary's text."""
        if projection.timeline != "all" or projection.contents != "session":
            return projection.noted([Note(STEP, "ignored", "summaries are for readers of all times")], summarised=True)
        chosen = choose(projection)
        if chosen is None:
            return projection.noted([], summarised=True)
        covered = {i for i, line in enumerate(projection.lines) if not line.current and chosen.covers(line)}
        lines, notes = keep_whole_turns(projection.lines, covered, projection.reader)
        wording = self.wording or (as_system_text if self.mode == "system" else as_user_text)
        block = Block("summary", wording(chosen.text), self.mode)
        added = Note(STEP, "added", f"the summary of {chosen.name} stands for {len(covered)} message(s)")
        return projection.noted([added, *notes], lines=lines, blocks=(*projection.blocks, block), summarised=True)


class Chosen(NamedTuple):
    """A text, and what it covers: lines up to `place` (None: lines before `before`, in seconds since the epoch) whose
    filter key is one of `keys` or below."""

    text: str
    name: str
    keys: tuple[str, ...]
    place: int | None
    before: float

    def covers(self, line: Line) -> bool:
        """True if the summary stands for this line. A line at the very time stays in view."""
        if not any(is_below(line.event.filter_key, key) for key in self.keys):
            return False
        if self.place is not None:
            return line.place <= self.place
        return line.event.timestamp < self.before


def choose(projection: Projection) -> Chosen | None:
    """The summary for a reader: that of its own key, else (`prefix` only) those below it together. The summary of the
    whole session is for readers of everything."""
    key = WHOLE if projection.branch == "all" else projection.reader.filter_key
    own = projection.summaries.get(key)
    if own is not None and own.text.strip():
        place = _place(own.boundary, projection.events)
        return Chosen(own.text, _named(key), (key,), place, own.boundary.cutoff_at)
    if projection.branch != "prefix" or not key:
        return None
    below = _below(projection.summaries, key)
    if not below:
        return None
    before = min(summary.boundary.cutoff_at for summary in below.values())
    text = "\n\n".join(summary.text for summary in below.values())
    return Chosen(text, ", ".join(map(_named, below)), tuple(below), None, before)


def _below(summaries: Mapping[str, Summary], key: str) -> dict[str, Summary]:
    return {k: s for k, s in sorted(summaries.items()) if k and is_below(k, key) and s.text.strip()}


def _named(key: str) -> str:
    return f"'{key}'" if key else "the whole session"


def _place(boundary: Boundary, events: tuple[Event, ...]) -> int | None:
    """The place of the last covered event; None if it isn't there (any more)."""
    if not boundary.last_event_id:
        return None
    return next((i for i in reversed(range(len(events))) if events[i].id == boundary.last_event_id), None)
