"""Why a model would see what it would see: each event of a session, whether it is in, out or changed, and the reasons.
What a model did see is kept with its answers: `processors.seen`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphagent.agents.agent import Agent
from graphagent.errors import AgentError
from graphagent.ledger import Event, Session
from graphagent.messages import Message
from graphagent.model_view import Verdict
from processors.assemble import assemble
from processors.pipeline import Pipeline, default_pipeline
from processors.projection import Given, Note, Projection, Reader
from processors.projector import SessionProjector
from processors.spans import verdicts

_WIDTH = 60


class Entry(NamedTuple):
    """One event and what became of it. `reasons`: what the steps noted about it, in order."""

    place: int
    event: Event
    verdict: Verdict
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a model sees what it sees. `general`: notes that are about no stored event. `str()` of it is a text for
    people."""

    reader: Reader
    entries: tuple[Entry, ...]
    general: tuple[Note, ...]
    messages: tuple[Message, ...]

    def __str__(self) -> str:
        reader = self.reader
        lines = [
            f"what '{reader.agent}' sees (filter key '{reader.filter_key}', request '{reader.request_id}'): "
            f"{len(self.messages)} message(s) from {len(self.entries)} event(s)"
        ]
        for entry in self.entries:
            said = " ".join(entry.event.text.split())[:_WIDTH]
            lines.append(f"{entry.place:>4}  {entry.verdict:<7}  {entry.event.author}: {said}".rstrip())
            lines += [f"{'':15}{reason}" for reason in entry.reasons]
        lines += [f"   -  {note.action:<7}  {note.step}: {note.text}" for note in self.general]
        return "\n".join(lines)


def explain_projection(
    session: Session,
    reader: Reader | Agent | str,
    pipeline: Pipeline | None = None,
    *,
    before: str | None = None,
    given: Given | None = None,
) -> Explanation:
    """What a reader sees of a session, event by event.

    `reader`: an agent or its name, for its call after the newest event, or a `Reader` for any other. `pipeline`: None
    takes that of the agent's projector, else the default one. `before`: the id of an event: what its author saw when
    it made it (with the summaries as they are now). Raises AgentError if there is no such event.
    """
    events = session.events
    if before is not None:
        place = next((at for at, event in enumerate(events) if event.id == before), None)
        if place is None:
            raise AgentError(f"session '{session.id}' has no event '{before}'; it has {len(events)} event(s)")
        made = events[place]
        events = events[:place]
        who = reader if isinstance(reader, Reader) else _author(made, events)
    else:
        who = reader if isinstance(reader, Reader) else _newest(session, _name(reader))
    start = Projection.of(session.model_copy(update={"events": events}), who, given=given)
    return explain(start, (pipeline or _pipeline_of(reader))(start))


def explain(before: Projection, after: Projection) -> Explanation:
    """What became of each event of a projection between two points of the chain."""
    reasons: dict[str, list[str]] = {}
    for note in after.notes[len(before.notes) :]:
        reasons.setdefault(note.event, []).append(f"{note.step}: {note.text}")
    entries = [
        Entry(place, event, verdict, tuple(reasons.get(event.id, ())))
        for place, (event, verdict) in enumerate(zip(before.events, verdicts(after), strict=True))
    ]
    ids = {event.id for event in before.events}
    general = tuple(note for note in after.notes if note.event not in ids)
    return Explanation(before.reader, tuple(entries), general, assemble(after))


def _name(reader: Agent | str) -> str:
    return reader if isinstance(reader, str) else reader.name


def _pipeline_of(reader: Reader | Agent | str) -> Pipeline:
    projector = getattr(reader, "projector", None)
    return projector.pipeline if isinstance(projector, SessionProjector) else default_pipeline()


def _author(made: Event, earlier: Sequence[Event]) -> Reader:
    """The author of an event, when it made it."""
    return Reader(
        agent=made.author,
        filter_key=made.filter_key,
        branch=made.branch,
        request_id=made.request_id,
        invocation_id=made.invocation_id,
        message=_asked(earlier, made.request_id),
        now=made.timestamp,
    )


def _newest(session: Session, agent: str) -> Reader:
    """An agent in the newest request of a session; its key is the one it used last, at first the app's name."""
    newest = session.events[-1] if session.events else Event(timestamp=session.created_at)
    own = next((event for event in reversed(session.events) if event.author == agent), None)
    return Reader(
        agent=agent,
        filter_key=own.filter_key if own is not None else session.app,
        branch=own.branch if own is not None else agent,
        request_id=newest.request_id,
        invocation_id=own.invocation_id if own is not None and own.request_id == newest.request_id else "",
        message=_asked(session.events, newest.request_id),
        now=newest.timestamp,
    )


def _asked(events: Sequence[Event], request_id: str) -> Message | None:
    """What the user said last in a request."""
    for event in reversed(events):
        if event.request_id == request_id and event.is_user:
            return next(message for message in reversed(event.messages) if message.role == "user")
    return None
