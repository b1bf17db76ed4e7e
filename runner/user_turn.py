"""The beginning of a turn: the session it belongs to, and what a person said as events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from graphagent.agents.invocation import Invocation
from graphagent.errors import SessionExists, SessionNotFound, UsageError
from graphagent.ledger import Event, Session, SessionKey
from graphagent.messages import Message
from graphagent.services import SessionService, read_again
from processors import SEED_HISTORY

QUEUED = "queued_message"
"""The extension of an event with something that was said while the run was going on."""

Said = str | Message | Sequence[Message] | None
"""What a run is asked: a text, a message, several (results of external tools, say), or nothing: go on."""


def said_messages(said: Said) -> tuple[Message, ...]:
    """What was said as messages. Raises UsageError for an empty one, or a role that no person has."""
    if said is None:
        return ()
    if isinstance(said, str):
        said = Message.user(said)
    messages = (said,) if isinstance(said, Message) else tuple(said)
    for message in messages:
        if message.role not in ("user", "tool"):
            raise UsageError(
                f"a run was asked with a message of role '{message.role}': give a 'user' message, or a 'tool' message "
                f"with the result of an external call; earlier turns go into RunOptions(history=...)"
            )
        if message.role == "user" and not message.content:
            raise UsageError("a run was asked with an empty message: give a text or parts, or None to go on")
    return messages


async def open_session(sessions: SessionService, key: SessionKey, held: Session | None = None) -> Session:
    """The session, made if there is none yet; the events of a copy that is `held` need not be read again."""
    found = await (sessions.get(key) if held is None else read_again(sessions, held))
    if found is None:
        try:
            return await sessions.create(*key)
        except SessionExists:  # another process was quicker
            found = await sessions.get(key)
    if found is None:
        raise SessionNotFound(f"session '{key.session}' of user '{key.user}' was deleted while a run opened it")
    return found


def said_events(invocation: Invocation, said: Sequence[Message]) -> Iterator[Event]:
    """An event for each message of a person, and one for each row of results of tools."""
    for is_tool, group in groupby(said, lambda message: message.role == "tool"):
        messages = list(group)
        if is_tool:
            yield _event(invocation, tuple(messages), kind="tool_result")
        else:
            yield from (_event(invocation, (message,)) for message in messages)


def seed_events(invocation: Invocation, said: Sequence[Message]) -> Iterator[Event]:
    """The history that a run brings for a session without events.

    If it ends with what is said now, that is the current turn, not history.
    """
    history = invocation.options.history
    if history and said and _same(history[-1], said[0]):
        history = history[:-1]
    for message in history:
        yield _event(invocation, (message,), extensions={SEED_HISTORY: True})


def stamp(event: Event, invocation: Invocation) -> Event:
    """The event with what its agent left open: ids, author, branch, filter key."""
    if event.id and event.request_id and event.invocation_id and event.author and event.branch and event.filter_key:
        return event
    given = {
        "id": event.id or Event.model_fields["id"].get_default(call_default_factory=True),
        "request_id": event.request_id or invocation.request_id,
        "invocation_id": event.invocation_id or invocation.id,
        "author": event.author or invocation.agent.name,
        "branch": event.branch or invocation.branch,
        "filter_key": event.filter_key or invocation.filter_key,
    }
    return event.model_copy(update=given)


def _event(invocation: Invocation, messages: tuple[Message, ...], **fields: Any) -> Event:
    by_person = messages[0].role == "user"
    return Event(
        author="user" if by_person else invocation.agent.name,
        messages=messages,
        request_id=invocation.request_id,
        invocation_id=invocation.id,
        branch=invocation.branch,
        filter_key=invocation.filter_key,
        **fields,
    )


def _same(one: Message, other: Message) -> bool:
    return (one.role, one.content) == (other.role, other.content)
