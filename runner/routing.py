"""Which agent a run is of, where its caller doesn't say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphagent.agents.agent import Agent
from graphagent.agents.await_reply import AWAITING
from graphagent.ledger import Event, Session
from graphagent.messages import Message

_log = logging.getLogger(__name__)

ROUTED = "routed"
"""The extension of a person's message that came to an agent which had asked for it, as in `Wanted`."""


class Wanted(NamedTuple):
    """An agent by name; `within`: the agent of whose run it was a part, empty if that is not known."""

    name: str
    within: str = ""


def wanted_agent(
    given: Agent | str | None, session: Session, said: Sequence[Message], has: Callable[[str], bool]
) -> Wanted | Agent | None:
    """Who runs. First what the caller says; then, for a message of a person, the agent that asked for it; for an answer
    or a run that goes on, the agent of the turn that is gone on with. None: the Runner's own."""
    if given is not None:
        return Wanted(given) if isinstance(given, str) else given
    if any(message.role == "user" for message in said):
        return _awaiting(session, has)
    asked = next((event for event in reversed(session.events) if event.is_user), None)
    if asked is None:
        return None
    routed = asked.extensions.get(ROUTED)
    wanted = Wanted(**routed) if routed else Wanted(asked.branch.partition("/")[0])
    return wanted if has(wanted.name) or has(wanted.within) else None


def _awaiting(session: Session, has: Callable[[str], bool]) -> Wanted | None:
    kept = session.state.get(AWAITING)
    if not kept:
        return None
    wanted = Wanted(**kept)
    if has(wanted.name) or has(wanted.within):
        return wanted
    _log.warning(
        "agent '%s', which waits for a message of session '%s', is not there any more", wanted.name, session.id
    )
    return None


def with_route(event: Event, session: Session, wanted: Wanted | Agent | None) -> Event:
    """A person's message as it is stored: it uses up what an agent has asked for, and says so."""
    kept = session.state.get(AWAITING)
    if not kept:
        return event
    more = {ROUTED: wanted._asdict()} if isinstance(wanted, Wanted) else {}
    update = {"state_delta": {**event.state_delta, AWAITING: None}, "extensions": {**event.extensions, **more}}
    return event.model_copy(update=update)
