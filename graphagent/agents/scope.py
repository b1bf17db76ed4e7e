"""What the nodes of an agent's graph share beside the state: the invocation they act for, and the events they make.

Every message of a model or a tool that an activation adds to `messages` is an event. It is stored before the activation
counts as finished, and told when its step has been written. Its id is made of the activation, so that work which is
done again after a crash makes the same event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from graphagent.agents.invocation import Invocation, Services
from graphagent.agents.projector import Begun
from graphagent.engine.context import NodeContext
from graphagent.engine.hooks import NodeCallbacks
from graphagent.engine.outcome import Outcome
from graphagent.events import RunEvent
from graphagent.ledger import Event, EventKind, TokenUsage
from graphagent.messages import Message
from graphagent.model_view import ModelView

LIVE = "event"
"""Kind of the custom event whose payload is an Event, to be heard as it is."""
Activity = tuple[str, str]
"""An activation in a tree of runs: namespace and activation id."""


@dataclass(frozen=True, slots=True)
class Note:
    """What an event says beyond its messages. `id`: None makes one of the activation; `context`: what was done to keep
    the request small (`ContextGuard`); `history`: how many of the update's messages, from the first on, are history
    that was put in again, and was said before."""

    id: str | None = None
    usage: TokenUsage | None = None
    finish_reason: str | None = None
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    long_running: frozenset[str] = frozenset()
    skip_summarization: bool = False
    view: ModelView | None = None
    context: tuple[Mapping[str, Any], ...] = ()
    history: int = 0


class Log:
    """The events of a tree of runs. `speakers`: by namespace whose words those of its nodes are, None for a child that
    is not heard. `told`: complete events so far. `notes`: by activation, for its next event. `views`: by invocation,
    what it began with. `listener`: gets every event at once, pieces of text included."""

    def __init__(self, listener: Callable[[Event], Awaitable[None]] | None = None) -> None:
        self.speakers: dict[str, Invocation | None] = {}
        self.listener = listener
        self.told: list[Event] = []
        self.notes: dict[Activity, Note] = {}
        self.views: dict[str, Begun] = {}
        self._waiting: dict[Activity, list[Event]] = {}

    def add(self, activity: Activity, event: Event) -> None:
        """An event of an activation, to be told when its step has been written."""
        self._waiting.setdefault(activity, []).append(event)
        self.told.append(event)

    def take(self, activity: Activity) -> list[Event]:
        """The events of an activation whose step has been written."""
        return self._waiting.pop(activity, [])

    def rest(self) -> list[Event]:
        """The events of activations whose step the run did not get to write."""
        found = [event for events in self._waiting.values() for event in events]
        self._waiting.clear()
        return found

    def speaker(self, namespace: str) -> Invocation | None:
        """Who speaks in a namespace: a child graph without an agent speaks for the agent around it."""
        while namespace not in self.speakers and namespace:
            namespace = namespace.rpartition("/")[0]
        return self.speakers.get(namespace)


@dataclass(frozen=True, slots=True)
class Scope:
    """The `context` of the nodes of an agent's graph."""

    invocation: Invocation
    log: Log

    @property
    def services(self) -> Services:
        """What surrounds the run."""
        return self.invocation.services


def scope_of(ctx: NodeContext) -> Scope | None:
    """The scope that a node runs in; None outside of an agent."""
    context = ctx.context
    return context if isinstance(context, Scope) else None


def invocation_of(ctx: NodeContext) -> Invocation | None:
    """The invocation that a node acts for; None outside of an agent."""
    found = ctx.invocation
    return found if isinstance(found, Invocation) else None


def activity_of(ctx: NodeContext) -> Activity:
    """Which activation a node is."""
    return ctx.namespace, ctx.activation.id


def note(ctx: NodeContext, said: Note) -> None:
    """Say more about the event that this activation will make."""
    if (scope := scope_of(ctx)) is not None:
        scope.log.notes[activity_of(ctx)] = said


def event_by(invocation: Invocation, branch: str = "", **fields: Any) -> Event:
    """An event of an invocation. `branch`: path of the splits in its graph."""
    return Event(
        author=invocation.agent.name,
        request_id=invocation.request_id,
        invocation_id=invocation.id,
        parent_invocation_id=invocation.parent_id,
        branch="/".join(part for part in (invocation.branch, branch) if part),
        filter_key="/".join(part for part in (invocation.filter_key, branch) if part),
        **fields,
    )


def live_event(log: Log, event: RunEvent) -> Event | None:
    """A piece of text, or an event of a node's own, for whoever listens; None if nobody is to hear it."""
    invocation = log.speaker(event.namespace)
    if invocation is None:
        return None
    if event.kind == LIVE and isinstance(event.data, Event):
        return event.data
    where = {"node": event.node, "activation": event.activation}
    if event.mode == "messages":
        piece = {"reasoning_delta" if event.kind == "reasoning" else "delta": str(event.data)}
        return event_by(invocation, event.branch, partial=True, extensions=where, **piece)
    return event_by(invocation, event.branch, kind="graph", partial=True, extensions={**where, event.kind: event.data})


def _record(ctx: NodeContext, outcome: Outcome) -> Awaitable[None] | None:
    scope = scope_of(ctx)
    if scope is None or ctx.kind in ("agent", "subgraph"):  # what a child said has been recorded inside of it
        return None
    return _recorded(scope, ctx, outcome)


async def _recorded(scope: Scope, ctx: NodeContext, outcome: Outcome) -> None:
    for event in _events(scope.invocation, ctx, outcome.update.get("messages", ())):
        await store(scope, ctx, event)


async def store(scope: Scope, ctx: NodeContext, event: Event) -> None:
    """Have an event of this activation stored, and told when its step has been written."""
    if scope.invocation.persist is not None and event.stored:
        await scope.invocation.persist(event)
    scope.log.add(activity_of(ctx), event)
    if scope.log.listener is not None:
        await scope.log.listener(event)


async def say(ctx: NodeContext, *, text: str = "", reasoning: str = "") -> None:
    """Send a piece of an answer as it comes, to whoever reads the run."""
    if text:
        await ctx.stream_text(text)
    if reasoning:
        await ctx.stream_reasoning(reasoning)
    scope = scope_of(ctx)
    if scope is not None and scope.log.listener is not None and (text or reasoning):
        piece = event_by(scope.invocation, ctx.activation.branch, partial=True, delta=text, reasoning_delta=reasoning)
        await scope.log.listener(piece)


RECORDING = NodeCallbacks(on_activation_end=_record)
"""Makes events of what the nodes of an agent's graph add to `messages`."""


def _events(invocation: Invocation, ctx: NodeContext, messages: Any) -> Iterator[Event]:
    """One event for each message of a model, one for all results of a round of tools."""
    more = scope_note(ctx)
    added = messages[more.history :] if more.history else messages
    said = [m for m in added if isinstance(m, Message) and m.role in ("assistant", "tool")]
    if not said and not more.state_delta:
        return
    groups: list[tuple[EventKind, list[Message]]] = []
    for role, run in groupby(said, key=lambda message: message.role):
        several = list(run)
        groups += [("tool_result", several)] if role == "tool" else [("message", [one]) for one in several]
    for number, (kind, group) in enumerate(groups or [("state", [])]):
        told = more if number == 0 else Note()
        yield event_by(
            invocation,
            ctx.activation.branch,
            id=told.id or ctx.idempotency_key(f"event {number}"),
            kind=kind,
            messages=tuple(group),
            timestamp=ctx.clock.now(),
            usage=told.usage,
            finish_reason=told.finish_reason,
            state_delta=dict(told.state_delta),
            long_running_tool_ids=told.long_running,
            skip_summarization=told.skip_summarization,
            view=told.view,
            extensions={"context": told.context} if told.context else {},
        )


def scope_note(ctx: NodeContext) -> Note:
    """What was noted for the next event of this activation."""
    scope = scope_of(ctx)
    return Note() if scope is None else scope.log.notes.pop(activity_of(ctx), Note())
