"""The index of words in a database, as `search` asks for it."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

from graphagent.clock import Clock
from graphagent.ledger import Event
from runner.sessions import operations, search_statements
from runner.sessions.encoding import decode_event
from runner.sessions.meaning import Vectors
from runner.sessions.search import MOST_PLACES, Found, Span
from runner.sessions.search_ranking import Row, runs
from runner.sessions.search_text import scope_of
from runner.sessions.statements import STRIDE
from runner.sql.database import Database, Rows


class SqlIndex:
    """See `runner.sessions.search.Index`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def sessions(self, app: str, user: str, name: str | None) -> list[Found]:
        """The sessions of a user that are alive, or the one of this name."""
        one = (app, user, self._clock.now())
        if name is None:
            rows = await self._database.run(search_statements.SESSIONS, one)
        else:
            rows = await self._database.run(search_statements.SESSION, (*one, name))
        return [Found(*row) for row in rows]

    async def places(self, app: str, user: str, words: Sequence[str], span: Span) -> list[list[int]]:
        """For each word the places where it stands, newest first, at most MOST_PLACES."""
        dialect, scope = self._database.dialect, scope_of(app, user)
        tokens = self._listed([search_statements.token(dialect, scope, word) for word in words])
        everywhere = span == Span()
        statement = search_statements.PLACES if everywhere else search_statements.PLACES_WITHIN
        bounds = () if everywhere else span
        rows = await self._database.run(statement[dialect], (*bounds, MOST_PLACES, tokens))
        decoded = json.loads if dialect == "sqlite" else _numbers
        return [decoded(places) if places else [] for (places,) in rows]

    async def rows(self, places: Sequence[int]) -> list[Row]:
        """The messages at these places, as far as there are any."""
        asked = json.dumps([(run.start, run.stop) for run in runs(sorted(places))])
        found = await self._database.run(search_statements.ROWS[self._database.dialect], [asked])
        return list(map(Row._make, found))

    async def events(self, places: Sequence[int]) -> dict[int, Event]:
        """The events at these places."""
        found = await self._database.run(search_statements.EVENTS[self._database.dialect], [self._listed(places)])
        return {place: decode_event(body, place % STRIDE) for place, body in found}

    async def vectors(self, name: str, sessions: Sequence[int]) -> Vectors:
        """Those of a model, of the messages of sessions."""
        statement = search_statements.VECTORS[self._database.dialect]
        return [(place, bytes(vector)) for place, vector in await self._run(statement, sessions, name)]

    async def without_vector(self, name: str, sessions: Sequence[int], limit: int) -> list[tuple[int, str]]:
        """Places and texts of messages that have none of it, newest first."""
        statement = search_statements.WITHOUT_VECTOR[self._database.dialect]
        found = await self._run(statement, sessions, name, limit)
        return [(place, decode_event(body, 0).text) for place, body in found]

    async def put_vectors(self, name: str, vectors: Vectors) -> None:
        """Keep vectors, as far as their messages are still there."""
        await self._database.transact(lambda: operations.put_vectors(name, vectors))

    async def _run(self, statement: str, listed: Sequence[int], *others: Any) -> Rows:
        return await self._database.run(statement, (self._listed(listed), *others))

    def _listed(self, values: Sequence[int | str]) -> Any:
        return json.dumps(list(values)) if self._database.dialect == "sqlite" else list(values)


def _numbers(data: bytes) -> list[int]:
    """Numbers of 8 bytes each, the highest first."""
    return list(struct.unpack(f">{len(data) // 8}q", data))
