"""What memory services agree on: the id of a memory, its limit, its errors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from graphagent.errors import NotFound, ServiceError, UsageError
from graphagent.services import Memory
from runner.names import check_name, check_user

LIMIT = 1000
"""Memories of one user, unless a service is told otherwise."""

FACT = "fact"


def memory_id(app: str, user: str, text: str, kind: str) -> str:
    """The id of a memory: the same text of the same kind is the same memory, whatever its topics are."""
    named = [app, user, text, *([kind] if kind != FACT else [])]
    return hashlib.sha256(json.dumps(named, ensure_ascii=False).encode()).hexdigest()[:32]


def new_memory(app: str, user: str, text: str, topics: Iterable[str], kind: str, now: float) -> Memory:
    """A memory that is made now. Raises ServiceError for a blank text, a topic that isn't a text or an unknown kind."""
    check_user(app, user)
    check_name("memory", text)
    if kind not in (FACT, "episode"):
        raise ServiceError(f"a memory of kind '{kind}'; known: 'fact', 'episode'")
    kept = tuple(topics)
    for topic in kept:
        check_name("topic", topic)
    return Memory(memory_id(app, user, text, kind), text, kept, kind, now, now)


def newest_first(memories: Iterable[Memory]) -> list[Memory]:
    """The last changed first, then the last made, then by id."""
    return sorted(memories, key=lambda memory: (-memory.updated_at, -memory.created_at, memory.id))


def check_limit(limit: int | None) -> None:
    """Raise UsageError for a number of memories that is none."""
    if limit is not None and limit < 1:
        raise UsageError(f"limit={limit}: ask for at least one memory")


def memory_full(user: str, limit: int) -> ServiceError:
    """The error for one memory too many."""
    return ServiceError(
        f"user '{user}' has {limit} memories, which is the limit; delete some, or open the service with a higher limit="
    )


def no_such_memory(user: str, id: str) -> NotFound:
    """The error for a memory that isn't there."""
    return NotFound(f"user '{user}' has no memory '{id}'; load or search to see which there are")


def memory_exists(user: str, memory: Memory) -> ServiceError:
    """The error for an update that would make two memories one."""
    return ServiceError(
        f"user '{user}' already has a memory of this text, '{memory.id}'; nothing was changed: delete one of the two"
    )
