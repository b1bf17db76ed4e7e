"""What a session says of a stored request: its answer's event, and which event each message of it is of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

from graphagent.agents.graph_agent import GraphAgent
from graphagent.agents.invocation import Invocation, Services
from graphagent.engine.executor import Executor
from graphagent.ledger import Event, Session, SessionKey
from graphagent.messages import Message
from graphagent.services import SessionService
from processors import Seen, seen_by
from runner.user_turn import QUEUED

_PARTS = 3  # of the lineage of a session: app, user, id


class _Candidate(NamedTuple):
    """A message of an event that may be in a request."""

    message: Message
    event: Event


@dataclass(frozen=True, slots=True)
class Told:
    """What a session tells of a request. `answer`: the event of its answer, None as long as there is none; `earlier`:
    the events before; `seen`: what became of each of them, by id, as it was recorded with the answer (none: not
    recorded); `asked`: ids of the events of what the person said at the beginning of this turn."""

    session: Session
    answer: Event | None = None
    earlier: tuple[Event, ...] = ()
    seen: Mapping[str, Seen] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()

    @classmethod
    def of(cls, session: Session, answer_id: str) -> Told:
        """What the session tells of the answer with this id."""
        place = next((at for at, event in enumerate(session.events) if event.id == answer_id), len(session.events))
        earlier = tuple(session.events[:place])
        answer = session.events[place] if place < len(session.events) else None
        request = answer.request_id if answer is not None else earlier[-1].request_id if earlier else ""
        asked = frozenset(
            event.id
            for event in earlier
            if event.is_user and event.request_id == request and QUEUED not in event.extensions
        )
        seen = () if answer is None else seen_by(session, answer.id) or ()
        return cls(session, answer, earlier, {one.event.id: one for one in seen}, asked)

    @property
    def notes(self) -> tuple[Mapping[str, Any], ...]:
        """What the guard of the run noted with the answer."""
        return () if self.answer is None else tuple(self.answer.extensions.get("context", ()))

    @property
    def shortened(self) -> frozenset[str]:
        """Ids of the events whose results were shortened in this request only."""
        cuts = (note for note in self.notes if note.get("stage") == "compaction")
        return frozenset(id for note in cuts for id in note.get("events", ()))

    def events_of(self, messages: Sequence[Message]) -> list[tuple[Event, ...]]:
        """For each message the events that it is of, in order; none for one that is of no event.

        From the newest on, since a request leaves old events out, not new ones. An event of another agent may be retold
        in a message with others.
        """
        left = [_Candidate(message, event) for event in self._in_view() for message in event.messages]
        found: list[tuple[Event, ...]] = []
        for message in reversed(messages):
            mine: list[Event] = []
            while (place := _matching(message, left, mine)) is not None:
                mine.insert(0, left[place].event)
                del left[place:]
                if not _is_retold(message, mine[0]):
                    break
            found.append(tuple({event.id: event for event in mine}.values()))
        return found[::-1]

    def _in_view(self) -> list[Event]:
        """Events that may be in the request. What a person said meanwhile is of no agent's run, so its record doesn't
        count."""
        known = ((event, self.seen.get(event.id)) for event in self.earlier)
        return [event for event, seen in known if seen is None or seen.verdict != "out" or QUEUED in event.extensions]

    def summary_in(self, text: str) -> str | None:
        """The key of the stored summary that a text has in it; None if it is none of them."""
        found = (key for key, summary in self.session.summaries.items() if summary.text and summary.text in text)
        return next(found, None)


def _matching(message: Message, left: Sequence[_Candidate], taken: Collection[Event]) -> int | None:
    """The place of the newest candidate that a message is of; of a message that is of one already, the very newest only
    (`taken`)."""
    places = range(len(left) - 1, -1, -1)
    return next((at for at in (list(places)[:1] if taken else places) if _is_of(message, left[at])), None)


def _is_of(message: Message, candidate: _Candidate) -> bool:
    own = candidate.message
    if message.role == "tool":
        return own.role == "tool" and own.tool_call_id == message.tool_call_id
    if message.role == own.role and [call.id for call in message.tool_calls] == [call.id for call in own.tool_calls]:
        return message.content == own.content or (
            own.role == "user" and bool(own.text) and message.text.endswith(own.text)
        )
    return _is_retold(message, candidate.event) and own.text in message.text


def _is_retold(message: Message, event: Event) -> bool:
    """True if a message tells what another agent said."""
    return message.role == "user" and event.author != "user" and f"[{event.author}]" in message.text


async def session_of(sessions: SessionService, lineage: str) -> Session | None:
    """The session whose runs a lineage has; None if it is of none, or the session is gone."""
    for name in dict.fromkeys((lineage, lineage.rpartition("~")[0])):
        parts = name.split("/")
        if len(parts) == _PARTS:
            found = await sessions.get(SessionKey(*map(unquote, parts)))
            if found is not None:
                return found
    return None


def made_up(executor: Executor, session: Session, namespace: str, services: Services) -> Invocation:
    """An invocation for looking: the session as it is now, without the options that the run had."""
    agent = GraphAgent(namespace.partition("/")[0] or executor.graph.name, executor.graph)
    return Invocation(agent, None, session, branch=namespace, services=services)
