"""What a model sees, made of the newest events alone wherever the older ones can't change it.

A history limit shows the newest messages, a summary hides what it covers; the cost of a projection grows with what is
shown, not with what is stored. The chain is run on the newest events, as if there were no others, and the outcome is
taken if it can't be another one with all of them:

1. No request has events both before and among the newest ones: what is asked, whose thinking is kept, and where a turn
   begins are decided within a request.
2. Every result in view belongs to a call of its own run among the newest ones, or to one of a run that has no older
   events: results go to the nearest call.
3. Nothing older would be in view: the reader sees only its request or run, summaries cover it, or the history limit
   left out the oldest message even of the newest ones.

Else it is tried with more events, in the end with all. That needs steps whose working is known, in the order of
`default_pipeline`; a chain with other steps gets all events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from graphagent.ledger import Event, is_below
from processors.attachments import Attachments
from processors.compaction import Compaction
from processors.history import HistoryLimit
from processors.instructions import Instructions
from processors.pairing import Pairing
from processors.projection import Line, Note, Projection, Step
from processors.recall import Recall
from processors.rounds import match_rounds
from processors.sanitise import Sanitise
from processors.summary import Area, Summaries, choose
from processors.visibility import Visibility, key_is_visible
from processors.voice import Voice

STEP = "tail"
FEWEST = 32
"""Events that are looked at in any case."""
_GROWTH = 4
_ORDER = (Instructions, Visibility, Summaries, Recall, Pairing, Compaction, Voice, HistoryLimit, Attachments, Sanitise)
_requests, _runs, _keys = attrgetter("request_id"), attrgetter("invocation_id"), attrgetter("filter_key")


def newest(steps: Sequence[Step], start: Projection) -> Projection:
    """The projection after the steps, with the messages that they make of all events.

    Its `events` may be the newest ones only; then `earlier` says how many there are before them, a note why they don't
    count, and there are no notes about them.
    """
    if not start.earlier and _is_known(steps):
        areas = areas_of(steps, start)
        for at in _beginnings(steps, start, areas):
            made = _Tail(steps, start, areas, at).projection()
            if made is not None:
                return made
    return run(steps, start)


def run(steps: Iterable[Step], projection: Projection) -> Projection:
    """The projection after the steps."""
    for step in steps:
        projection = step(projection)
    return projection


def _is_known(steps: Sequence[Step]) -> bool:
    """True if each step is one of ours, in our order, and asks no function that sees the whole projection."""
    places = [_ORDER.index(type(step)) if type(step) in _ORDER else -1 for step in steps]
    asks = any(isinstance(step, Instructions) and (callable(step.text) or step.planner) for step in steps)
    return not asks and -1 not in places and places == sorted(set(places)) and Visibility in map(type, steps)


def areas_of(steps: Sequence[Step], start: Projection) -> tuple[Area, ...]:
    """What the summaries cover that stand for events."""
    if not start.summaries or not any(isinstance(step, Summaries) for step in steps):
        return ()
    seeing = next((step for step in steps if isinstance(step, Visibility)), Visibility())
    chosen = choose(replace(start, branch=seeing.branch))
    return () if chosen is None else chosen.areas


def _beginnings(steps: Sequence[Step], start: Projection, areas: Sequence[Area]) -> Iterator[int]:
    """Places from which the newest events may be enough, the latest first; none if all are wanted."""
    events, at = start.events, len(start.events)
    wanted = [_wanted(step, start) for step in steps]
    if not any(wanted):
        return
    places = [area.place for area in areas]
    found = [place for place in places if place is not None and place >= 0]
    if places and len(found) == len(places):
        yield (at := _of_whole_requests(events, min(found)))
    size = max(FEWEST, *wanted)
    while size < len(events):
        before = _of_whole_requests(events, len(events) - size)
        if before < at:
            yield (at := before)
        size *= _GROWTH


def _wanted(step: Step, start: Projection) -> int:
    """How many events a step that leaves older ones out asks for at first; 0 if it leaves none out."""
    match step:
        case HistoryLimit():
            return 2 * step.messages or (FEWEST if start.budget is not None else 0)
        case Visibility():
            own = start.given.own_run_only or step.contents == "invocation" or step.timeline != "all"
            return FEWEST if own else 0
        case Summaries():
            return FEWEST if start.summaries else 0
    return 0


def _of_whole_requests(events: Sequence[Event], at: int) -> int:
    """The place where the request of the event there begins."""
    while 0 < at < len(events) and events[at - 1].request_id == events[at].request_id:
        at -= 1
    return at


class _Tail:
    """The chain on the events from a place on."""

    def __init__(self, steps: Sequence[Step], start: Projection, areas: Sequence[Area], at: int) -> None:
        self.steps = steps
        self.areas = areas
        self.older = start.events[:at]
        self.start = replace(start, events=start.events[at:], earlier=at)

    def projection(self) -> Projection | None:
        """The projection after the steps; None if older events may change it."""
        if not self.older:
            return None
        own = {self.start.reader.request_id, *map(_requests, self.start.events)}
        if not own.isdisjoint(map(_requests, self.older)):
            return None
        projection, why = self.start, ""
        for step in self.steps:
            before, projection = projection, step(projection)
            if isinstance(step, Visibility):
                if not self._belong(projection.lines):
                    return None
                why = "visibility" if self._all_hidden(projection) else ""
            elif isinstance(step, Summaries) and self.areas and not why:
                now = [area.place for area in chosen.areas] if (chosen := choose(before)) is not None else []
                if any(place is None and area.place is not None for place, area in zip(now, self.areas, strict=True)):
                    return None  # the last covered event is older, and the time of the boundary would be taken instead
                why = "summary" if self._all_covered(projection, now) else ""
            elif isinstance(step, HistoryLimit):
                why = why or ("history" if _cut(before, projection) else "")
        if not why:
            return None
        text = f"the {len(self.older)} event(s) before are not looked at: none can be in view ({why})"
        return projection.noted([Note(STEP, "dropped", text)], earlier_why=why)

    def _belong(self, lines: Sequence[Line]) -> bool:
        """True if results would go to the same calls with the older events there too."""
        matched = match_rounds(lines)
        foreign = {
            lines[at].event.invocation_id
            for round_ in matched.rounds.values()
            for at in round_.results.values()
            if lines[at].event.invocation_id != round_.line.event.invocation_id
        }
        return not matched.strays and (not foreign or foreign.isdisjoint(map(_runs, self.older)))

    def _all_hidden(self, projection: Projection) -> bool:
        """True if the reader sees nothing of the older events, by its policy of times."""
        if projection.contents == "invocation" or projection.timeline == "invocation":
            return projection.reader.invocation_id not in set(map(_runs, self.older))
        return projection.timeline == "request"  # of which there is none among them

    def _all_covered(self, projection: Projection, places: Sequence[int | None]) -> bool:
        """True if summaries cover all older events that the reader would see. `places`: those of the areas now."""
        key, branch = projection.reader.filter_key, projection.branch
        seen = [k for k in set(map(_keys, self.older)) if key_is_visible(k, key, branch)]
        whole = [area.key for area, place in zip(self.areas, places, strict=True) if place is not None and place >= 0]
        return all(any(is_below(k, above) for above in whole) for k in seen)


def _cut(before: Projection, after: Projection) -> bool:
    """True if the limit left out the oldest message in view, and would with older ones before it.

    A block that goes into the first message of the user may count otherwise there than in a later one.
    """
    if not before.lines or (after.lines and after.lines[0].place == before.lines[0].place):
        return False
    return before.budget is None or not any(block.mode == "user" for block in before.blocks)
