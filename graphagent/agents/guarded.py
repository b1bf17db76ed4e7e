"""A model node's request passes the guard: it may be made of a fresh projection, and of shortened results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from graphagent.agents.guard import PendingCall
from graphagent.agents.model import Model, ModelRequest
from graphagent.agents.requests import Asked
from graphagent.agents.scope import scope_of
from graphagent.agents.views import messages_of
from graphagent.engine.context import NodeContext
from graphagent.messages import RemoveMessage

Make = Callable[[Asked], Awaitable[ModelRequest]]
Notes = tuple[Mapping[str, Any], ...]


async def guarded(
    ctx: NodeContext, model: Model, asked: Asked, request: ModelRequest, make: Make
) -> tuple[Asked, ModelRequest, Notes]:
    """What is asked after all, the request for it, and what the guard says that it did.

    A history that was made anew takes the place of the state's in one write; shortened results are in this request
    only. `make`: the request for what is asked.
    """
    scope = scope_of(ctx)
    guard = None if scope is None else scope.invocation.services.guard
    if scope is None or guard is None:
        return asked, request, ()
    first = not asked.messages or asked.messages[-1].role == "user"
    told = await guard.before_call(scope.invocation, PendingCall(request, asked.messages, model, first))
    anew = await messages_of(scope.invocation, scope.log.views) if told.anew else None
    if anew is not None:
        asked = Asked(anew, (RemoveMessage.all(), *anew))
    events = {m.tool_call_id: e.id for e in scope.log.told for m in e.messages if m.tool_call_id is not None}
    sent = guard.shortened(scope.invocation, asked.messages, events)
    if anew is None and sent is asked.messages:
        return asked, request, told.notes
    return asked, await make(asked._replace(messages=sent)), told.notes
