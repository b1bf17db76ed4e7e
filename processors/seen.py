"""What a model saw when it made an answer, read from what is kept with the answer's event."""

from __future__ import annotations

from typing import NamedTuple

from graphagent.errors import AgentError
from graphagent.ledger import Event, Session
from graphagent.model_view import ModelView, Span, Verdict

NOT_IN_RUN = "run.out"
"""The reason code of an event that came after the run of the agent had begun, and that this request had not."""
IN_RUN = "run.in"
"""The reason code of an event of the run itself, by which its later requests grow."""


class Seen(NamedTuple):
    """One event that came before an answer, and whether the model saw it. `reasons`: codes, see `Span`."""

    event: Event
    verdict: Verdict
    reasons: tuple[str, ...]


def seen_by(session: Session, event_id: str) -> tuple[Seen, ...] | None:
    """Each event before an answer, and what became of it in the request that the answer was made from; None if nothing
    is kept with that event: it is no answer of a model, or the projector doesn't tell.

    Of events that the session handed out only: one that was read in part has what it has. Raises AgentError for an
    event that isn't there.
    """
    places = {event.id: place for place, event in enumerate(session.events)}
    if event_id not in places:
        raise AgentError(f"session '{session.id}' has no event '{event_id}'; it has {len(places)} event(s)")
    answer = session.events[places[event_id]]
    if answer.view is None:
        return None
    began, run = _placed(_spans(session, answer.view, places), places), _placed(answer.view.run, places)
    found = []
    for place, event in enumerate(session.events[: places[event_id]]):
        if place in began:
            found.append(Seen(event, began[place].verdict, began[place].reasons))
        elif place in run and _same_run(event, answer):
            found.append(Seen(event, run[place].verdict, _of_run(run[place])))
        else:
            found.append(Seen(event, "out", (NOT_IN_RUN,)))
    return tuple(found)


def _of_run(span: Span) -> tuple[str, ...]:
    return (NOT_IN_RUN if span.verdict == "out" else IN_RUN, *span.reasons)


def _same_run(event: Event, answer: Event) -> bool:
    """True if both are of one run of an agent; one that went on from a checkpoint has another id then."""
    if (event.author, event.request_id) != (answer.author, answer.request_id):
        return False
    return event.invocation_id == answer.invocation_id or not (
        event.parent_invocation_id or answer.parent_invocation_id
    )


def _spans(session: Session, view: ModelView, places: dict[str, int]) -> tuple[Span, ...]:
    """The spans of the view, or of the answer that has them for the run."""
    base = places.get(view.base)
    first = view if base is None else session.events[base].view
    return () if first is None else first.spans


def _placed(spans: tuple[Span, ...], places: dict[str, int]) -> dict[int, Span]:
    """Each place that a span covers; of one whose first or last event isn't there, what is known."""
    found = {}
    for span in spans:
        ends = [places[id] for id in (span.first, span.last) if id in places]
        if ends:
            found.update(dict.fromkeys(range(ends[0], ends[-1] + 1), span))
    return found
