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


class Area(NamedTuple):
    """What a boundary covers of some events. `place`: of the last covered one among them, -1 if it is older than all;
    None if it isn't known by number or id, so that the time of the boundary decides."""

    boundary: Boundary
    place: int | None = None

    @property
    def key(self) -> str:
        """Events with this filter key or below are covered."""
        return self.boundary.filter_key

    def covers(self, line: Line) -> bool:
        """True if the summary stands for this line."""
        if self.place is None or (self.boundary.seq and line.event.seq):
            return self.boundary.covers(line.event)
        return line.place <= self.place and is_below(line.event.filter_key, self.key)


class Chosen(NamedTuple):
    """The text of one summary, or of several together, and what it covers."""

    text: str
    name: str
    areas: tuple[Area, ...]

    def covers(self, line: Line) -> bool:
        """True if it stands for this line."""
        return any(area.covers(line) for area in self.areas)


def choose(projection: Projection) -> Chosen | None:
    """The summary for a reader: that of its own key, else (`prefix` only) those below it together. The summary of the
    whole session is for readers of everything."""
    key = WHOLE if projection.branch == "all" else projection.reader.filter_key
    own = projection.summaries.get(key)
    if own is not None and own.text.strip():
        return Chosen(own.text, _named(key), (_area(key, own.boundary, projection.events),))
    if projection.branch != "prefix" or not key:
        return None
    below = _below(projection.summaries, key)
    if not below:
        return None
    if all(summary.boundary.seq for summary in below.values()):
        areas = tuple(_area(k, summary.boundary, projection.events) for k, summary in below.items())
    else:
        before = min(summary.boundary.cutoff_at for summary in below.values())
        areas = tuple(Area(Boundary(filter_key=k, cutoff_at=before)) for k in below)
    return Chosen("\n\n".join(summary.text for summary in below.values()), ", ".join(map(_named, below)), areas)


def _below(summaries: Mapping[str, Summary], key: str) -> dict[str, Summary]:
    return {k: s for k, s in sorted(summaries.items()) if k and is_below(k, key) and s.text.strip()}


def _named(key: str) -> str:
    return f"'{key}'" if key else "the whole session"


def _area(key: str, boundary: Boundary, events: tuple[Event, ...]) -> Area:
    return Area(boundary.model_copy(update={"filter_key": key}), _place(boundary, events))


def _place(boundary: Boundary, events: tuple[Event, ...]) -> int | None:
    places = reversed(range(len(events)))
    if boundary.seq and events and events[-1].seq:
        return next((i for i in places if 0 < events[i].seq <= boundary.seq), -1)
    return next((i for i in places if events[i].id == boundary.last_event_id), None)
