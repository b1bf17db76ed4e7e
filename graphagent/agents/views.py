"""Which events of a session a model's request was made from: noted when a run begins, told with each answer.

Only where events are stored; without that nobody could look at it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from graphagent.agents.invocation import Invocation
from graphagent.agents.projector import NONE_AHEAD, Begun, TellingProjector, projector_of
from graphagent.agents.scope import Scope, scope_of
from graphagent.engine.context import NodeContext
from graphagent.ledger import Event, Summary
from graphagent.messages import Message
from graphagent.model_view import Fate, ModelView, Span, joined

CUT = "compaction.changed"
"""The reason code of an event of the run whose results were shortened in the request."""


async def messages_of(
    invocation: Invocation, views: dict[str, Begun], ahead: Mapping[str, Summary] = NONE_AHEAD
) -> tuple[Message, ...] | None:
    """What the projector makes of the session, noted for the answers that follow; None without a projector. `ahead`:
    summaries by key that could not be stored, for a projector that tells."""
    projector = projector_of(invocation)
    if projector is None:
        return None
    if invocation.persist is None or not isinstance(projector, TellingProjector):
        return await projector.messages(invocation)
    found = await (projector.projected(invocation, ahead) if ahead else projector.projected(invocation))
    views[invocation.id] = Begun(found)
    return found.messages


async def begun_of(scope: Scope, history: Sequence[Message]) -> Begun | None:
    """How the run of an agent began; None where nothing is known, or kept."""
    invocation, views = scope.invocation, scope.log.views
    if invocation.persist is None:
        return None
    begun = views.get(invocation.id) or await _gone_on(invocation, history)
    if begun is not None:
        views[invocation.id] = begun
    return begun


def own_events(scope: Scope, begun: Begun) -> list[Event]:
    """The events of the run so far."""
    return [*begun.earlier, *(event for event in scope.log.told if event.invocation_id == scope.invocation.id)]


async def view_of(
    ctx: NodeContext, history: Sequence[Message], messages: int, cut: Collection[str] = ()
) -> ModelView | None:
    """What the model of a node is about to see; None where nothing is known, or kept.

    `history`: the messages of the state that are asked; `messages`: how many the whole request has; `cut`: ids of the
    events whose messages are shortened in it. The event of the answer gets the id of its message.
    """
    scope = scope_of(ctx)
    begun = None if scope is None else await begun_of(scope, history)
    if scope is None or begun is None:
        return None
    known = {_key(message) for message in history}
    own = [(event, any(_key(m) in known for m in event.messages)) for event in own_events(scope, begun)]
    run = joined(_fate(event, there, event.id in cut) for event, there in own)
    spans: tuple[Span, ...] = ()
    missing = other = None
    if begun.projected is not None:
        missing, other = _beside(begun.projected.messages, [event for event, there in own if there], history)
        if not begun.base:
            spans = begun.projected.spans
    view = ModelView(spans=spans, base=begun.base, run=run, messages=messages, missing=missing, other=other)
    begun.base = begun.base or ctx.idempotency_key("message")
    return view


def _fate(event: Event, there: bool, cut: bool) -> Fate:
    return Fate(event.id, "changed", (CUT,)) if there and cut else Fate(event.id, "in" if there else "out")


async def may_be_replaced(scope: Scope, begun: Begun, history: Sequence[Message]) -> bool:
    """True if another projection of the session may take the place of a history: all of its messages come from the
    session, and none that the run began with is missing, such as one that a node of the graph took out or put in."""
    here = {id(message) for message in history}
    began = () if begun.projected is None else begun.projected.messages
    if any(id(message) not in here for message in began):
        return False
    known = {id(message) for message in began}
    own = {_key(message) for event in own_events(scope, begun) for message in event.messages}
    others = [message for message in history if id(message) not in known and _key(message) not in own]
    if begun.projected is not None and not others:
        return True
    projector = projector_of(scope.invocation)
    if projector is None:
        return False
    now = await projector.messages(scope.invocation)  # with what a person said meanwhile, or all, in another process
    there = set(map(_said, now))
    if not there.issuperset(map(_said, others)):
        return False
    return begun.projected is not None or set(map(_said, history)).issuperset(there)


def _said(message: Message) -> tuple[str, str, str, tuple[tuple[str, str], ...]]:
    calls = tuple((call.id, call.name) for call in message.tool_calls)
    return message.role, repr(message.content), message.tool_call_id or "", calls


def _beside(projected: Sequence[Message], seen: Sequence[Event], history: Sequence[Message]) -> tuple[int, int]:
    """How many messages of the projection are not in the history, and how many in the history are from elsewhere."""
    here = {id(message) for message in history}
    kept = sum(id(message) in here for message in projected)
    own = {_key(message) for event in seen for message in event.messages}
    mine = {id(message) for message in projected}
    other = sum(id(message) not in mine and _key(message) not in own for message in history)
    return len(projected) - kept, other


def _key(message: Message) -> tuple[str, str]:
    """What tells a message of a run from others: answers have ids, results the id of their call."""
    if message.role == "tool":
        return "tool", message.tool_call_id or ""
    return message.role, message.id or f"{id(message)}"


async def _gone_on(invocation: Invocation, history: Sequence[Message]) -> Begun | None:
    """A run that goes on from a checkpoint: an earlier answer of it has the spans, or none was made yet. Then the
    projection is made again, and counts if it has the messages that the run began with."""
    events = [] if invocation.session is None else invocation.session.events
    own = tuple(event for event in events if _is_of_run(event, invocation))
    first = next((event for event in own if event.view is not None), None)
    if first is not None:
        return Begun(None, (first.view.base if first.view is not None else "") or first.id, own)
    projector = projector_of(invocation)
    if not isinstance(projector, TellingProjector):
        return None
    found = await projector.projected(invocation)
    begun_with = tuple(history[: len(found.messages)])
    return Begun(found._replace(messages=begun_with)) if begun_with == found.messages else None


def _is_of_run(event: Event, invocation: Invocation) -> bool:
    """True for what the agent said in this run. One that goes on has another id, unless another agent runs it."""
    if event.author != invocation.agent.name or event.request_id != invocation.request_id:
        return False
    return event.invocation_id == invocation.id or not invocation.parent_id
