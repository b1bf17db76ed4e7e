"""Which beginning of the events may go into a summary: never a part of a tool round, never a call that still waits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from graphagent.ledger import Event
from processors.projection import Line
from processors.rounds import Matched, Round, match_rounds

SkipRecent = int | Callable[[Sequence[Event]], int]
"""How many of the newest events are left for the next summary, or a function that says it of them."""
PIN_TURNS = 20
"""Turns that a call to an external tool is waited for; after them a summary may stand for it, and says so."""


class Coverable(NamedTuple):
    """What may be covered now. `events`: a prefix of the given ones; `ends`: how many of them may be covered,
    ascending, the last one all; `why`: why it isn't all that was given, empty if it is."""

    events: tuple[Event, ...]
    ends: tuple[int, ...]
    why: str = ""


def lines_of(events: Sequence[Event]) -> list[Line]:
    """The messages of events, each with its event and the event's place."""
    return [Line(message, event, at) for at, event in enumerate(events) for message in event.messages]


def coverable(
    events: Sequence[Event], *, skip: SkipRecent = 0, previous: bool = False, pin_turns: int = PIN_TURNS
) -> Coverable:
    """The longest beginning of the events that a summary may stand for.

    It ends before a call that still waits for its result, and before the newest events where `skip` says so; then it
    has to hold something that a person said, or follow a `previous` summary. Source: spec/context, 9.2 and 9.5.
    """
    ends = safe_ends(events, pin_turns)
    skipped = max(skip(events) if callable(skip) else skip, 0)
    room = len(events) - skipped
    found = ends[: bisect_right(ends, room)]
    end = found[-1] if found else 0
    if skipped and not (previous or any(event.is_user and event.text.strip() for event in events[:end])):
        return Coverable((), (), f"nothing a person said is older than the newest {skipped} event(s)")
    if end == len(events):
        return Coverable(tuple(events), found)
    why = f"the newest {skipped} event(s) are left for later" if skipped else ""
    if end < room:
        why = "; ".join(filter(None, (why, f"a tool round is open from event '{events[end].id}' on")))
    return Coverable(tuple(events[:end]), found, why)


def safe_ends(events: Sequence[Event], pin_turns: int = PIN_TURNS) -> tuple[int, ...]:
    """How many events from the first on may be taken so that no tool round is parted; ascending, without 0.

    A call without a result holds everything from it on back while one can still come: until a person begins another
    turn, and for an external tool (`Event.long_running_tool_ids`) until `pin_turns` more have begun.
    """
    turns = _turns(events)
    change = [0] * (len(events) + 2)  # of how many rounds are open after so many events
    for round_ in match_rounds(lines := lines_of(events)).rounds.values():
        first = round_.line.place
        last = max((lines[at].place for at in round_.results.values()), default=first)
        if _waits(round_, turns, pin_turns):
            last = len(events)
        if last > first:
            change[first + 1] += 1
            change[last + 1] -= 1
    open_ones = list(accumulate(change))
    return tuple(count for count in range(1, len(events) + 1) if not open_ones[count])


def second_records(lines: Sequence[Line], matched: Matched) -> set[int]:
    """Places of results whose call had one already, as after an interrupted tool run: the first one counts."""
    calls = {call.id for round_ in matched.rounds.values() for call in round_.line.message.tool_calls}
    return {at for at in matched.strays if lines[at].message.tool_call_id in calls}


def _waits(round_: Round, turns: Sequence[int], pin_turns: int) -> bool:
    """Whether a result of the round can still come."""
    since = turns[-1] - turns[round_.line.place]
    external = round_.line.event.long_running_tool_ids
    missing = [call for at, call in enumerate(round_.line.message.tool_calls) if at not in round_.results]
    return any(since <= (pin_turns if call.id in external else 0) for call in missing)


def _turns(events: Sequence[Event]) -> list[int]:
    """The turn of each event. One begins where a person speaks under another request id, or under none."""
    found, turn, request = [], 0, ""
    for event in events:
        if event.is_user and not (event.request_id and event.request_id == request):
            turn += 1
        request = event.request_id or request
        found.append(turn)
    return found
