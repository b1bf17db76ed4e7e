"""A model node's request passes the guard: it may be made of a fresh projection, and of shortened results."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from graphagent.agents.guard import Guarded, PendingCall
from graphagent.agents.model import Model, ModelRequest
from graphagent.agents.requests import Asked
from graphagent.agents.scope import Scope, scope_of
from graphagent.agents.views import begun_of, may_be_replaced, messages_of, own_events
from graphagent.engine.context import NodeContext
from graphagent.messages import Message, RemoveMessage

_log = logging.getLogger(__name__)

Make = Callable[[Asked], Awaitable[ModelRequest]]
Notes = tuple[Mapping[str, Any], ...]


class Sent(NamedTuple):
    """What is asked after all, and the request for it. `notes`: what the guard says that it did; `cut`: ids of the
    events whose messages are shortened in the request."""

    asked: Asked
    request: ModelRequest
    notes: Notes = ()
    cut: frozenset[str] = frozenset()


async def guarded(ctx: NodeContext, model: Model, asked: Asked, request: ModelRequest, make: Make) -> Sent:
    """What is sent instead of a request, or that request.

    A history that was made anew takes the place of the state's in one write; shortened results are in this request
    only. `make`: the request for what is asked.
    """
    scope = scope_of(ctx)
    guard = None if scope is None else scope.invocation.services.guard
    if scope is None or guard is None:
        return Sent(asked, request)
    begun = await begun_of(scope, asked.messages)

    async def replaceable() -> bool:
        if begun is None or asked.update or ctx.activation.branch:  # beside others that add to the history
            return False
        try:
            return await may_be_replaced(scope, begun, asked.messages)
        except Exception:
            _log.debug("whether a history can be made anew is not known", exc_info=True)
            return False

    first = not asked.messages or asked.messages[-1].role == "user"
    began = None if begun is None else begun.projected
    call = PendingCall(request, asked.messages, model, first, began, replaceable)
    told = await guard.before_call(scope.invocation, call)
    notes = told.notes
    if told.anew:
        anew = await _anew(scope, told)
        if isinstance(anew, Exception):
            notes = (*notes, {"stage": "rebuild", "outcome": "failed", "reason": f"{type(anew).__name__}: {anew}"})
        elif anew:
            asked = Asked(anew, (RemoveMessage.all(), *anew), asked.cleared)
            request = await make(asked)
    told_of = [] if begun is None else own_events(scope, begun)
    events = {m.tool_call_id: e.id for e in told_of for m in e.messages if m.tool_call_id is not None}
    short = guard.shortened(asked.messages, events, {tool.name for tool in request.tools})
    if short.messages is not asked.messages:
        request = await make(asked._replace(messages=short.messages))
    return Sent(asked, request, (*notes, *short.notes), short.events)


async def _anew(scope: Scope, told: Guarded) -> tuple[Message, ...] | Exception | None:
    """Another projection, or why there is none: then the request goes out as it is."""
    try:
        return await messages_of(scope.invocation, scope.log.views, told.ahead)
    except Exception as error:
        _log.warning("a request was not made anew from its session: %s", error)
        return error
