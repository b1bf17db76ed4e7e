"""What became of the events of a projection: each one's verdict, and the short form that is kept with an answer."""

from __future__ import annotations

from graphagent.messages import Message
from graphagent.model_view import Fate, Span, Verdict, joined
from processors.projection import Projection


def verdicts(after: Projection) -> list[Verdict]:
    """What became of each of the projection's events: `in` as it is stored, `changed`, or `out`."""
    shown: dict[int, list[Message]] = {}
    also = {place for line in after.lines for place in line.also}
    for line in after.lines:
        shown.setdefault(line.place, []).append(line.message)
    found: list[Verdict] = []
    for place, event in enumerate(after.events):
        if place not in shown and place not in also:
            found.append("out")
        else:
            found.append("in" if tuple(shown.get(place, ())) == event.messages else "changed")
    return found


def spans_of(start: Projection, after: Projection) -> tuple[Span, ...]:
    """The events of the projection before the chain as spans, those that were not looked at first."""
    codes: dict[str, dict[str, None]] = {}
    for note in after.notes[len(start.notes) :]:
        codes.setdefault(note.event, {})[f"{note.step}.{note.action}"] = None
    fates = []
    if after.earlier:
        why, last = f"{after.earlier_why}.dropped", start.events[after.earlier - 1].id
        fates.append(Fate(start.events[0].id, "out", (why,), last, after.earlier))
    for event, verdict in zip(after.events, verdicts(after), strict=True):
        fates.append(Fate(event.id, verdict, tuple(codes.get(event.id, ()))))
    return joined(fates)
