"""What a model saw of a session, as text and as JSON data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from graphagent.ledger import Event, Session
from processors import Seen, seen_by

_WIDTH = 40


def seen_lines(session: Session, answer: Event) -> Iterator[str]:
    """What was in the request of an answer, a line for the events that follow each other and of which the same became;
    none for an event that is no answer of a model."""
    found = seen_by(session, answer.id)
    if found is None or answer.view is None:
        return
    seen = sum(one.verdict != "out" for one in found)
    yield f"          saw {seen} of {len(found)} event(s), in a request of {answer.view.messages} message(s):"
    for (verdict, reasons), group in groupby(enumerate(found, start=1), key=lambda one: one[1][1:]):
        several = list(group)
        where = f"{several[0][0]}" if len(several) == 1 else f"{several[0][0]} to {several[-1][0]}"
        said = " ".join(several[-1][1].event.text.split())
        why = f"  ({', '.join(reasons)})" if reasons else ""
        told = f"  {said if len(said) <= _WIDTH else f'{said[: _WIDTH - 3]}...'}" if said else ""
        yield f"            {verdict:<7}  event {where}{why}{told}".rstrip()
    if answer.view.missing:
        yield f"            {answer.view.missing} message(s) of these had been taken out of the state before"
    if answer.view.other:
        yield f"            and {answer.view.other} message(s) that are of no event before"


def seen_document(session: Session, event_id: str) -> list[dict[str, Any]] | None:
    """The events before an answer with what became of each; None for an event that is no answer of a model."""
    found = seen_by(session, event_id)
    return None if found is None else [_document(one) for one in found]


def _document(one: Seen) -> dict[str, Any]:
    return {"event": one.event.id, "verdict": one.verdict, "reasons": list(one.reasons)}
