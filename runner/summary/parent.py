"""Which stored events a request shows, for a summary that is asked for behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from graphagent.agents.model import ModelRequest
from graphagent.ledger import Event
from graphagent.messages import Message
from runner.summary.values import SummaryContext


def bound(context: SummaryContext, events: Sequence[Event]) -> SummaryContext:
    """The context with the ids of those events that its parent shows, where it has a parent and doesn't name them."""
    if context.parent is None or context.parent_events:
        return context
    return replace(context, parent_events=shown_events(context.parent, events))


def shown_events(request: ModelRequest, events: Sequence[Event]) -> frozenset[str]:
    """Ids of the events all of whose messages are in the request word by word. One that was retold, shortened or left
    out is not shown; nor is one without messages."""
    there = Counter(map(_said, request.messages))
    shown = set()
    for event in reversed(events):  # of two that say the same the newer one is shown rather than the older one
        own = Counter(map(_said, event.messages))
        if own and own <= there:
            there -= own
            shown.add(event.id)
    return frozenset(shown)


def _said(message: Message) -> tuple[object, ...]:
    calls = tuple((call.id, call.name, repr(call.arguments)) for call in message.tool_calls)
    return message.role, repr(message.content), message.tool_call_id, calls
