"""The session of a run as it is now, read at the cost of what is new since the run began."""

from __future__ import annotations

from graphagent.agents.invocation import Invocation
from graphagent.ledger import Event, Session
from graphagent.services import RefreshableSessions, SessionService

FRESH = 64
"""Events that are read anew; if more may be new, all are."""


async def session_now(service: SessionService | None, invocation: Invocation) -> Session | None:
    """The invocation's session with the state, the summaries and the events of now; its own copy where there is no
    service, or no such session in it.

    Events are never changed, so those of the copy need not be read again: the newest ones are, and put in the place of
    the copy's from the first of them on. The copy has to begin where the session begins, as a Runner's does. Raises
    what the service raises.
    """
    copy = invocation.session
    if copy is None or service is None:
        return copy
    if isinstance(service, RefreshableSessions):
        return await service.refresh(copy) or copy
    fresh = await service.get(copy.key, last=FRESH)
    if fresh is None:
        return copy
    events = _joined(copy.events, fresh.events, invocation.request_id)
    if events is None:
        return await service.get(copy.key) or copy
    return fresh.model_copy(update={"events": events})


def _joined(copy: list[Event], fresh: list[Event], request_id: str) -> list[Event] | None:
    """The copy's events up to the first fresh one, and the fresh ones; None if there may be a gap between them.

    One more than was asked for: the user's last words were put before events that don't follow them. A first one of the
    request that goes on: others may have come between it and what the copy has before it.
    """
    if not fresh or len(fresh) > FRESH:
        return None
    first = fresh[0]
    at = next((at for at in reversed(range(len(copy))) if copy[at].id == first.id), None)
    if at is None:
        return None
    if at == 0 and len(fresh) < FRESH // 2:
        return fresh
    return None if first.request_id == request_id else [*copy[:at], *fresh]
