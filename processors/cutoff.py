"""What stays in view although a summary covers it, so that no turn is cut in two."""

from __future__ import annotations

from collections.abc import Sequence

from processors.projection import SEED_HISTORY, Line, Note, Reader
from processors.rounds import Matched, match_rounds

STEP = "summary"


def keep_whole_turns(lines: Sequence[Line], covered: set[int], reader: Reader) -> tuple[tuple[Line, ...], list[Note]]:
    """The lines without the covered ones, but with what those in view need; and what was done.

    Back come: the newest tool round of the reader's own run if nothing of it is in view; the calls of results that
    are in view, without their text; the user's message of a turn that would start in its middle. Source: spec/context,
    6.4.
    """
    matched = match_rounds(lines)
    back: dict[int, Line] = {}
    notes: list[Note] = []

    def bring(at: int, line: Line, text: str) -> None:
        back[at] = line
        notes.append(Note(STEP, "kept" if line.message is lines[at].message else "changed", text, line.event.id))

    for at in _newest_round(lines, covered, matched, reader):
        bring(
            at,
            lines[at]._replace(resumed=True),
            "covered, but the newest tool round of this run: the model goes on from it",
        )
    for at, line in _cut_calls(lines, covered - set(back), matched).items():
        bring(at, line, "covered, but its result is in view: the call came back without its text")
    for at in _anchors(lines, covered - set(back)):
        bring(at, lines[at], "covered, but the turn in view starts with it")
    kept = tuple(back.get(at, line) for at, line in enumerate(lines) if at not in covered or at in back)
    gone = dict.fromkeys(lines[at].event.id for at in sorted(covered - set(back)))
    notes += [Note(STEP, "dropped", "a summary covers it", event) for event in gone]
    return kept, notes


def _newest_round(lines: Sequence[Line], covered: set[int], matched: Matched, reader: Reader) -> list[int]:
    """The places of the newest complete round of the reader's run, if all of it is covered."""
    if not reader.invocation_id:
        return []
    own = [r for r in matched.rounds.values() if r.complete and reader.in_run(r.line.event)]
    if not own:
        return []
    places = [own[-1].at, *own[-1].in_call_order]
    return places if covered.issuperset(places) else []


def _cut_calls(lines: Sequence[Line], covered: set[int], matched: Matched) -> dict[int, Line]:
    """Covered messages with calls whose results are in view, reduced to those calls; the reasoning belongs to them."""
    found = {}
    for at, round_ in matched.rounds.items():
        if at not in covered:
            continue
        calls = round_.line.message.tool_calls
        needed = tuple(calls[p] for p, result in sorted(round_.results.items()) if result not in covered)
        if needed:
            message = lines[at].message.model_copy(update={"content": "", "tool_calls": needed})
            found[at] = lines[at]._replace(message=message)
    return found


def _anchors(lines: Sequence[Line], covered: set[int]) -> list[int]:
    """The covered user messages of turns whose first message in view is not the user's.

    The turn is the agent's run; where the user spoke to another agent of the request (a transfer), the request.
    """
    users = [at for at in sorted(covered) if lines[at].message.role == "user" and not _is_seed(lines[at])]
    if not users:
        return []
    asked = {
        line.event.request_id for at, line in enumerate(lines) if at not in covered and line.message.role == "user"
    }
    anchors = set()
    for start in _starts(lines, covered):
        event = lines[start].event
        before = [at for at in users if at < start and lines[at].event.request_id == event.request_id]
        own = [at for at in before if lines[at].event.invocation_id == event.invocation_id]
        if own:
            anchors.add(own[-1])
        elif before and event.request_id and event.request_id not in asked:
            anchors.add(before[-1])
    return sorted(anchors)


def _starts(lines: Sequence[Line], covered: set[int]) -> list[int]:
    """The places of the first messages in view of the runs that don't start with the user."""
    first: dict[tuple[str, str], int] = {}
    for at, line in enumerate(lines):
        if at not in covered and line.event.invocation_id:
            first.setdefault((line.event.request_id, line.event.invocation_id), at)
    return [at for at in first.values() if lines[at].message.role != "user"]


def _is_seed(line: Line) -> bool:
    return bool(line.event.extensions.get(SEED_HISTORY))
