"""What is remembered about users, in the memory of one process."""

from __future__ import annotations

from typing import Unpack

from graphagent.clock import Clock, SystemClock
from graphagent.services import ALL_MEMORIES, About, Memory, MemoryFilter
from runner.memory.entries import (
    LIMIT,
    changed_memory,
    check_limit,
    memory_exists,
    memory_full,
    new_memory,
    newest_first,
    no_such_memory,
)
from runner.memory.finding import find
from runner.names import check_user


class InMemoryMemory:
    """Memories that end with the process. `limit`: how many a user may have."""

    def __init__(self, *, limit: int = LIMIT, clock: Clock | None = None) -> None:
        self._limit = limit
        self._clock = clock or SystemClock()
        self._users: dict[tuple[str, str], dict[str, Memory]] = {}

    async def add(self, app: str, user: str, text: str, **about: Unpack[About]) -> Memory:
        """See `graphagent.services.MemoryService.add`."""
        made = new_memory(app, user, text, about, self._clock.now())
        found = self._users.setdefault((app, user), {})
        if len(found) >= self._limit:
            raise memory_full(user, self._limit)
        if made.id in found:
            made = made._replace(created_at=found[made.id].created_at)
        found[made.id] = made
        return made

    async def update(self, app: str, user: str, id: str, text: str, **about: Unpack[About]) -> Memory:
        """See `graphagent.services.MemoryService.update`."""
        check_user(app, user)
        found = self._users.get((app, user), {})
        old = found.get(id)
        if old is None:
            raise no_such_memory(user, id)
        made = changed_memory(app, user, old, text, about, self._clock.now())
        if made.id != id and made.id in found:
            raise memory_exists(user, made)
        del found[id]
        found[made.id] = made
        return made

    async def delete(self, app: str, user: str, id: str) -> bool:
        """Forget something; False if it wasn't there."""
        check_user(app, user)
        return self._users.get((app, user), {}).pop(id, None) is not None

    async def clear(self, app: str, user: str) -> int:
        """Forget everything about a user; returns how many it was."""
        check_user(app, user)
        return len(self._users.pop((app, user), {}))

    async def load(self, app: str, user: str, *, limit: int | None = None) -> list[Memory]:
        """What is remembered, the last changed first."""
        check_user(app, user)
        check_limit(limit)
        return newest_first(self._users.get((app, user), {}).values())[:limit]

    async def search(
        self, app: str, user: str, query: str, *, limit: int = 10, only: MemoryFilter = ALL_MEMORIES
    ) -> list[Memory]:
        """What fits a query best, best first (see `runner.memory.ranking`)."""
        check_limit(limit)
        return find(await self.load(app, user), query, limit, only)

    async def aclose(self) -> None:
        """Nothing to close; the memories stay."""

    async def __aenter__(self) -> InMemoryMemory:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
