"""What is remembered about users, in a SQLite file or a PostgreSQL database."""

from __future__ import annotations

import json
from typing import Unpack

from graphagent.checkpoint.sql.operations import Operation
from graphagent.clock import Clock, SystemClock
from graphagent.services import ALL_MEMORIES, About, Memory, MemoryFilter
from runner.memory.entries import (
    LIMIT,
    as_data,
    changed_memory,
    check_limit,
    from_data,
    memory_exists,
    memory_full,
    new_memory,
    newest_first,
    no_such_memory,
)
from runner.memory.finding import find
from runner.names import check_user
from runner.plain import dumps
from runner.sql.database import DatabaseOptions, OnDatabase, database_for

_COLUMNS = "id, body, created_at, updated_at"
_OF_USER = "FROM ga_memories WHERE app = ? AND user_id = ?"
_LOAD = f"SELECT {_COLUMNS} {_OF_USER}"
_COUNT = f"SELECT count(*) {_OF_USER}"
_DELETE = f"DELETE {_OF_USER} AND id = ? RETURNING {_COLUMNS}"
_CLEAR = f"DELETE {_OF_USER} RETURNING 1"
_INSERT = (
    f"INSERT INTO ga_memories (app, user_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (app, user_id, id) "
)
_PUT = f"{_INSERT}DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at RETURNING created_at"
_PUT_NEW = f"{_INSERT}DO NOTHING RETURNING id"


class SqlMemory(OnDatabase):
    """Memories that outlive the process. `url`: as for `SqlSessions`; `limit`: how many a user may have.

    A search ranks all memories of the user, hence the limit. The service opens itself on first use.
    """

    def __init__(
        self, url: str, *, limit: int = LIMIT, clock: Clock | None = None, options: DatabaseOptions | None = None
    ) -> None:
        self.url = url
        super().__init__(database_for(url, options or DatabaseOptions()))
        self._limit = limit
        self._clock = clock or SystemClock()

    async def add(self, app: str, user: str, text: str, **about: Unpack[About]) -> Memory:
        """See `graphagent.services.MemoryService.add`. Two processes that add at the same moment may get past the limit
        by one."""
        made = new_memory(app, user, text, about, self._clock.now())
        return await self._database.transact(lambda: _add(app, user, made, self._limit))

    async def update(self, app: str, user: str, id: str, text: str, **about: Unpack[About]) -> Memory:
        """See `graphagent.services.MemoryService.update`."""
        now = self._clock.now()
        new_memory(app, user, text, about, now)  # before anything is read: it may not be one
        return await self._database.transact(lambda: _update(app, user, id, text, about, now))

    async def delete(self, app: str, user: str, id: str) -> bool:
        """Forget something; False if it wasn't there."""
        check_user(app, user)
        return bool(await self._database.run(_DELETE, (app, user, id)))

    async def clear(self, app: str, user: str) -> int:
        """Forget everything about a user; returns how many it was."""
        check_user(app, user)
        return len(await self._database.run(_CLEAR, (app, user)))

    async def load(self, app: str, user: str, *, limit: int | None = None) -> list[Memory]:
        """What is remembered, the last changed first."""
        check_user(app, user)
        check_limit(limit)
        rows = await self._database.run(_LOAD, (app, user))
        return newest_first(_decode(*row) for row in rows)[:limit]

    async def search(
        self, app: str, user: str, query: str, *, limit: int = 10, only: MemoryFilter = ALL_MEMORIES
    ) -> list[Memory]:
        """What fits a query best, best first (see `runner.memory.ranking`)."""
        check_limit(limit)
        return find(await self.load(app, user), query, limit, only)


def _add(app: str, user: str, made: Memory, limit: int) -> Operation[Memory]:
    if (yield _COUNT, (app, user))[0][0] >= limit:
        raise memory_full(user, limit)
    found = yield _PUT, _columns(app, user, made)
    return made._replace(created_at=found[0][0])


def _update(app: str, user: str, id: str, text: str, about: About, now: float) -> Operation[Memory]:
    removed = yield _DELETE, (app, user, id)
    if not removed:
        raise no_such_memory(user, id)
    made = changed_memory(app, user, _decode(*removed[0]), text, about, now)
    if not (yield _PUT_NEW, _columns(app, user, made)):
        raise memory_exists(user, made)
    return made


def _columns(app: str, user: str, memory: Memory) -> tuple[str, str, str, str, float, float]:
    return app, user, memory.id, dumps(as_data(memory), "memory"), memory.created_at, memory.updated_at


def _decode(id: str, body: str, created_at: float, updated_at: float) -> Memory:
    return from_data(id, json.loads(body), created_at, updated_at)
