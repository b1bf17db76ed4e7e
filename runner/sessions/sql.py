"""Sessions in a SQLite file or a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from graphagent.clock import Clock, SystemClock
from graphagent.ids import fresh_id
from graphagent.ledger import Event, Session, SessionKey, Summary
from graphagent.services import SessionQuery
from runner.names import check_key, check_name, check_user
from runner.plain import dumps, loads
from runner.sessions import operations, search_statements, statements
from runner.sessions.encoding import as_stored, decode_event, encode
from runner.sessions.lifetime import SWEEP, Ttl, session_not_found
from runner.sessions.meaning import Embedder, check_embedder
from runner.sessions.operations import EventRow, States, Times
from runner.sessions.reading import listed, read
from runner.sessions.scopes import Slot, shared_slots, slots
from runner.sessions.search import Events, Hits, search, tool_result
from runner.sessions.search_sql import SqlIndex
from runner.sessions.search_text import Said, said_by
from runner.sessions.window import check_around, check_last, check_page, no_such_event, role_columns
from runner.sql.database import DatabaseOptions, OnDatabase, database_for
from runner.sql.schema import ServiceMigration

_NO_LIMIT = 1 << 62


def _asked(event: Event) -> int:
    return int(event.is_user and event.has_content)


class SqlSessions(OnDatabase):
    """Sessions that outlive the process, and that several processes may write.

    `url`: as for `SqlCheckpoints`; both may share a database. `ttl`: how long sessions live after the last change.
    `embedder`: ranks what a search finds by meaning too.
    An append is one commit (PostgreSQL: one round trip); those of a session get their order from the database. The
    service opens itself on first use. Raises UsageError for a url it can't read.
    """

    def __init__(
        self,
        url: str,
        *,
        ttl: Ttl | None = None,
        clock: Clock | None = None,
        options: DatabaseOptions | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        check_embedder(embedder)
        self.url = url
        self._embedder = embedder
        super().__init__(database_for(url, options or DatabaseOptions()))
        self._ttl = ttl or Ttl()
        self._clock = clock or SystemClock()
        self._swept = 0.0

    def _times(self) -> Times:
        now = self._clock.now()
        return Times(now, self._ttl.session_end(now))

    def _rows(self, values: Sequence[tuple[Slot, str]], now: float) -> list[tuple[Any, ...]]:
        return [(*slot, body, self._ttl.slot_end(slot, now)) for slot, body in values]

    async def create(
        self, app: str, user: str, session: str | None = None, *, state: Mapping[str, Any] | None = None
    ) -> Session:
        """A new session (None: with a fresh id). Raises SessionExists for an id that is taken."""
        key = SessionKey(app, user, fresh_id() if session is None else session)
        check_key(key)
        times = self._times()
        states = self._rows(slots(key, state or {}), times.now)
        if self._ttl.ends and times.now - self._swept >= SWEEP:
            await self.purge()
        await self._database.transact(lambda: operations.create(key, times, states))
        made = await self.get(key)
        if made is None:
            raise session_not_found(key)
        return made

    async def get(self, key: SessionKey, *, last: int | None = None, since: float | None = None) -> Session | None:
        """The session, or None; see `graphagent.services.SessionService.get`. With `last` no more is read than that."""
        check_key(key)
        check_last(last)
        now = self._clock.now()
        count, time = [] if last is None else [last], [] if since is None else [since]
        sql = statements.read_sql(last is not None, since is not None)
        rows = await self._database.run(sql, [*key, now, *key, now, *count, *time, *time, *count])
        return read(key, rows, empty=last == 0)

    async def refresh(self, session: Session) -> Session | None:
        """See `graphagent.services.RefreshableSessions.refresh`."""
        events = session.events
        if not events:
            return await self.get(session.key)
        check_key(session.key)
        now = self._clock.now()
        first, last = events[0], events[-1]
        held = (first.seq, session.created_at, last.seq, last.id, len(events), first.seq)
        rows = await self._database.run(statements.REFRESH, [*session.key, now, *held, *session.key, now])
        return read(session.key, rows, held=events)

    async def list(self, app: str, user: str, *, offset: int = 0, limit: int | None = None) -> list[Session]:
        """Sessions of a user without events and tracks, the last changed first, then by id downwards."""
        check_user(app, user)
        check_page(offset, limit)
        now = self._clock.now()
        page = (_NO_LIMIT if limit is None else limit, offset)
        rows = await self._database.run(statements.LIST, (app, user, now, *page, app, user, now))
        return listed(app, user, rows)

    async def delete(self, key: SessionKey) -> bool:
        """Remove a session and all of it; False if there was none."""
        check_key(key)
        now = self._clock.now()
        return await self._database.transact(lambda: operations.delete(key, now))

    async def append(self, key: SessionKey, event: Event) -> Event:
        """Add an event and merge its state delta; returns it as it is stored. One that is there already is returned as
        it was. Raises SessionNotFound, and ServiceError for a partial event or data that isn't plain."""
        check_key(key)
        stored = as_stored(event)
        if stored.partial:
            await self.update_state(key, stored.state_delta)
            return stored
        body = encode(stored, f"event '{event.id}'")
        row = EventRow(stored.id, stored.timestamp, int(stored.has_content), _asked(stored), body)
        said = said_by(stored)
        times = self._times()
        states = self._rows(slots(key, stored.state_delta), times.now)
        seq = await self._append(key, times, row, said, states)
        if seq:
            return stored.numbered(seq)
        found = await self._database.run(statements.KNOWN_EVENT, (row.id, *key, times.now))
        if not found:
            raise session_not_found(key)
        return decode_event(found[0][0], found[0][1] % statements.STRIDE)

    async def _append(self, key: SessionKey, times: Times, row: EventRow, said: Said | None, states: States) -> int:
        if self._database.dialect == "sqlite":
            return await self._database.transact(lambda: operations.append(key, times, row, said, states))
        values = [value for state in states for value in state]
        sql = statements.append_at_once(len(states), said is not None)
        touch = (row.shown, *operations.counted(said), *times, *key, times.now, row.id)
        found = await self._database.run(sql, (*touch, *row, *operations.findable(key, said), *values))
        return int(found[0][0])

    async def update_state(self, key: SessionKey, delta: Mapping[str, Any]) -> None:
        """Change state without an event; `temp:` keys are not stored. Raises SessionNotFound."""
        check_key(key)
        times = self._times()
        states = self._rows(slots(key, delta), times.now)
        await self._database.transact(lambda: operations.update_state(key, times, states))

    async def shared_state(self, app: str, user: str | None = None) -> dict[str, Any]:
        """The state that all sessions of an app (`user` is None) or of one user share; keys are bare."""
        check_user(app, app if user is None else user)
        rows = await self._database.run(statements.SHARED, (app, user or "", self._clock.now()))
        return {name: loads(body) for name, body in rows}

    async def update_shared_state(self, app: str, user: str | None, delta: Mapping[str, Any]) -> None:
        """Change it. Raises ServiceError for a key with the prefix of another scope."""
        check_user(app, app if user is None else user)
        states = self._rows(shared_slots(app, user, delta), self._clock.now())
        await self._database.transact(lambda: operations.put_states(states))

    async def put_summary(self, key: SessionKey, filter_key: str, summary: Summary, *, after: Summary | None) -> bool:
        """Store a summary if the stored one is still `after`; False if somebody else was quicker."""
        check_key(key)
        body = encode(summary, f"the summary of '{filter_key}'")
        times = self._times()
        expected = (after, summary)  # the summary itself: this very call stored it, only the reply was lost
        return await self._database.transact(lambda: operations.put_summary(key, times, filter_key, body, expected))

    async def search(self, app: str, user: str, query: SessionQuery) -> Hits:
        """See `graphagent.services.SearchableSessions.search`. Of a word that stands in many thousand messages in scope
        only the newest are looked at, of a very long message only its beginning and end."""
        return await search(SqlIndex(self._database, self._clock), app, user, query, self._embedder)

    async def window(
        self, key: SessionKey, event_id: str, *, before: int = 0, after: int = 0, roles: Collection[str] = ()
    ) -> Events:
        """See `graphagent.services.WindowedSessions.window`."""
        check_key(key)
        check_around(before, after)
        some = role_columns(roles)
        anchor = (event_id, *key, self._clock.now())
        rows = await self._database.run(search_statements.WINDOW, (*anchor, *some, before, *some, after))
        if not rows:
            raise no_such_event(key, event_id)
        return [decode_event(body, place % statements.STRIDE) for place, body in rows]

    async def tool_result(self, key: SessionKey, tool_call_id: str) -> Event | None:
        """See `graphagent.services.WindowedSessions.tool_result`."""
        check_key(key)
        return await tool_result(SqlIndex(self._database, self._clock), key, tool_call_id)

    async def lease_summary(self, key: SessionKey, filter_key: str, *, owner: str, seconds: float) -> bool:
        """See `graphagent.services.SummaryLeases.lease_summary`. Raises SessionNotFound."""
        check_key(key)
        check_name("owner", owner)
        now = self._clock.now()
        times = Times(now, now + seconds)
        return await self._database.transact(lambda: operations.lease_summary(key, filter_key, owner, times))

    async def release_summary(self, key: SessionKey, filter_key: str, *, owner: str) -> None:
        """Give it back; harmless for who doesn't have it."""
        check_key(key)
        await self._database.transact(lambda: operations.release_summary(key, filter_key, owner))

    async def append_track(self, key: SessionKey, track: str, items: Iterable[Any]) -> None:
        """Add plain data to a log beside the conversation. Raises SessionNotFound."""
        check_key(key)
        check_name("track", track)
        bodies = [dumps(item, f"track '{track}'[{place}]") for place, item in enumerate(items)]
        times = self._times()
        await self._database.transact(lambda: operations.append_track(key, times, track, bodies))

    async def purge(self) -> int:
        """Remove what has expired; returns how many sessions. `create` does so every few minutes."""
        now = self._swept = self._clock.now()
        removed, more = 0, True
        while more:
            count, more = await self._database.transact(lambda: operations.purge(now))
            removed += count
        return removed

    async def migrate(self, *, dry_run: bool = False) -> ServiceMigration:
        """Bring the tables of an older release up to date, in place; opening does so by itself unless `auto_migrate`
        is off. A dry run does the same and rolls back. Raises ServiceSchemaError for tables of a newer release."""
        return await self._database.migrate(dry_run)
