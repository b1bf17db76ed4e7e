"""What an agent's model sees of a conversation where no projector says otherwise: all of it, as it was said."""

from __future__ import annotations

from collections.abc import Iterable

from graphagent.agents.invocation import Invocation
from graphagent.ledger import Event
from graphagent.messages import Message
from graphagent.services import read_again


async def plain_history(invocation: Invocation, told: Iterable[Event] = ()) -> tuple[Message, ...]:
    """The complete messages that the invocation's filter key lets it see, and what it is asked.

    From the session, read anew where there is a service for it; without a session the options' `history`, and `told`,
    the events of the run so far.
    """
    session, service = invocation.session, invocation.services.sessions
    if session is not None and service is not None:
        session = await read_again(service, session) or session
    events = list(told) if session is None else session.events
    seen = [event for event in events if not event.partial and event.matches(invocation.filter_key)]
    messages = [message for event in seen for message in event.messages]
    if not events or session is None:
        messages = [*invocation.options.history, *messages]
    return with_asked(messages, invocation)


def with_asked(messages: Iterable[Message], invocation: Invocation) -> tuple[Message, ...]:
    """The messages with what the invocation is asked among them, at their end if it isn't there."""
    found, asked = tuple(messages), invocation.message
    if asked is None:
        return found
    last = next((message for message in reversed(found) if message.role == asked.role), None)
    return found if last is not None and _same(last, asked) else (*found, asked)


def _same(one: Message, other: Message) -> bool:
    if one.id is not None and other.id is not None:
        return one.id == other.id
    return (one.role, one.content, one.tool_call_id) == (other.role, other.content, other.tool_call_id)
