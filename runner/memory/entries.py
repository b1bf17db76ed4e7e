"""What memory services agree on: the id of a memory, its limit, its errors."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from graphagent.errors import AlreadyExists, LimitExceeded, NotFound, ServiceError, UsageError
from graphagent.services import About, Memory
from runner.names import check_name, check_user

LIMIT = 1000
"""Memories of one user, unless a service is told otherwise."""

FACT, EPISODE = KINDS = ("fact", "episode")


def memory_id(app: str, user: str, memory: Memory) -> str:
    """The id of a memory: what says the same of the same event is the same memory, whatever its topics are."""
    named: list[object] = [app, user, memory.text]
    details = (memory.event_time, sorted(set(memory.participants)), memory.location)
    if memory.kind != FACT or details != (None, [], ""):
        named += [memory.kind, *details]
    return hashlib.sha256(json.dumps(named, ensure_ascii=False).encode()).hexdigest()[:32]


def new_memory(app: str, user: str, text: str, about: About, now: float) -> Memory:
    """A memory that is made now. Raises ServiceError for a blank text, topic or participant, an unknown kind, or a time
    that is none."""
    check_user(app, user)
    return _made(app, user, Memory("", text, created_at=now, updated_at=now), about)


def changed_memory(app: str, user: str, old: Memory, text: str, about: About, now: float) -> Memory:
    """What a memory becomes by an update now; what `about` leaves out stays. Raises as `new_memory`."""
    check_user(app, user)
    return _made(app, user, old._replace(text=text, updated_at=now, score=0.0), about)


def _made(app: str, user: str, memory: Memory, about: About) -> Memory:
    check_name("memory", memory.text)
    unknown = set(about) - set(About.__annotations__)
    if unknown:
        raise TypeError(f"a memory has no {sorted(unknown)}; it has {sorted(About.__annotations__)}")
    changes: dict[str, Any] = dict(about)
    for field, word in (("topics", "topic"), ("participants", "participant")):
        if field in changes:
            changes[field] = _names(word, changes[field])
    if "event_time" in changes:
        changes["event_time"] = _time(changes["event_time"])
    if changes.get("location"):
        check_name("location", changes["location"])
    made = memory._replace(**changes)
    if made.kind not in KINDS:
        raise ServiceError(f"a memory of kind '{made.kind}'; known: 'fact', 'episode'")
    return made._replace(id=memory_id(app, user, made))


def _names(word: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise ServiceError(f"{word}s are {given!r}: give a list of texts")
    names = tuple(dict.fromkeys(given))
    for name in names:
        check_name(word, name)
    return names


def _time(given: object) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise ServiceError(f"event_time is {given!r}: give seconds since the epoch, or None")
    return float(given)


def as_data(memory: Memory) -> dict[str, Any]:
    """A memory as JSON has it, without what it hasn't got; id, times and score are left out."""
    data = {
        "text": memory.text,
        "topics": list(memory.topics),
        "kind": memory.kind,
        "event_time": memory.event_time,
        "participants": list(memory.participants),
        "location": memory.location,
    }
    return {key: value for key, value in data.items() if value not in (None, [], "")}


def from_data(id: str, data: Mapping[str, Any], created_at: float, updated_at: float) -> Memory:
    """What `as_data` was given."""
    return Memory(
        id,
        data["text"],
        tuple(data.get("topics", ())),
        data.get("kind", FACT),
        data.get("event_time"),
        tuple(data.get("participants", ())),
        data.get("location", ""),
        created_at,
        updated_at,
    )


def newest_first(memories: Iterable[Memory]) -> list[Memory]:
    """The last changed first, then the last made, then by id."""
    return sorted(memories, key=lambda memory: (-memory.updated_at, -memory.created_at, memory.id))


def check_limit(limit: int | None) -> None:
    """Raise UsageError for a number of memories that is none."""
    if limit is not None and limit < 1:
        raise UsageError(f"limit={limit}: ask for at least one memory")


def memory_full(user: str, limit: int) -> LimitExceeded:
    """The error for one memory too many."""
    return LimitExceeded(
        f"user '{user}' has {limit} memories, which is the limit; delete some, or open the service with a higher limit="
    )


def no_such_memory(user: str, id: str) -> NotFound:
    """The error for a memory that isn't there."""
    return NotFound(f"user '{user}' has no memory '{id}'; load or search to see which there are")


def memory_exists(user: str, memory: Memory) -> AlreadyExists:
    """The error for an update that would make two memories one."""
    return AlreadyExists(
        f"user '{user}' already has this memory, '{memory.id}'; nothing was changed: delete one of the two"
    )
