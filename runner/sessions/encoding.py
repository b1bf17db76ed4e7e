"""Events, summaries and tracks as JSON: what is stored is what is handed out, and comes back equal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from graphagent.errors import ServiceError
from graphagent.ledger import Event
from graphagent.messages import Message
from runner.names import check_name
from runner.plain import plain
from runner.sessions.scopes import TEMP


def as_stored(event: Event) -> Event:
    """The event as a session keeps it: without `temp:` state, its free data plain and its own.

    Raises ServiceError for a partial event that brings no state, and for data that isn't plain.
    """
    check_name("event id", event.id)
    if event.partial and not event.state_delta:
        raise ServiceError(f"event '{event.id}' is partial: pieces of text go to listeners, a session keeps whole ones")
    if not math.isfinite(event.timestamp):
        raise ServiceError(f"event '{event.id}' has the time {event.timestamp!r}; use seconds since the epoch")
    event = event.numbered(0)
    if is_flat(event):
        return event
    where = f"event '{event.id}': "
    delta = {key: value for key, value in event.state_delta.items() if not key.startswith(TEMP)}
    return event.model_copy(
        update={
            "state_delta": plain(delta, f"{where}state_delta"),
            "extensions": plain(event.extensions, f"{where}extensions"),
            "interrupts": tuple(plain(event.interrupts, f"{where}interrupts")),
            "messages": tuple(_plain_message(message, where) for message in event.messages),
        }
    )


def is_flat(event: Event) -> bool:
    """True if nothing in it can be changed in place, so that one object may serve all readers."""
    if event.state_delta or event.extensions or event.interrupts:
        return False
    return all(isinstance(message.content, str) and not message.tool_calls for message in event.messages)


def _plain_message(message: Message, where: str) -> Message:
    calls = tuple(
        call.model_copy(update={"arguments": plain(call.arguments, f"{where}arguments of '{call.name}'")})
        for call in message.tool_calls
    )
    return message.model_copy(update={"content": plain(message.content, f"{where}content"), "tool_calls": calls})


def encode(value: BaseModel, what: str) -> str:
    """A value as JSON; fields that have their default are left out. Raises ServiceError."""
    try:
        return value.model_dump_json(exclude_defaults=True)
    except PydanticSerializationError as error:
        raise ServiceError(f"{what} can't be stored: {error}") from error


def decode_event(body: str, seq: int) -> Event:
    """The event that was stored, with its number in the session."""
    return Event.model_validate_json(body).numbered(seq)


def plain_items(track: str, items: Iterable[Any]) -> list[Any]:
    """Items of a track, copied. Raises ServiceError for a blank name and for data that isn't plain."""
    check_name("track", track)
    return [plain(item, f"track '{track}'[{place}]") for place, item in enumerate(items)]
