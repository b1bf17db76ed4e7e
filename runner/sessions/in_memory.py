"""Sessions in the memory of one process: for tests, and for runs that nobody comes back to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from graphagent.clock import Clock, SystemClock
from graphagent.ids import fresh_id
from graphagent.ledger import Event, Session, SessionKey, Summary
from graphagent.services import SessionQuery
from runner.names import check_key, check_name, check_user
from runner.plain import copied, loads
from runner.sessions.encoding import as_stored, decode_event, encode, is_flat, plain_items
from runner.sessions.lifetime import SWEEP, Ttl, session_exists, session_not_found
from runner.sessions.meaning import Embedder, check_embedder
from runner.sessions.scopes import Slot, shared_slots, slots
from runner.sessions.search import Events, Hits, search, tool_result
from runner.sessions.search_memory import MemoryIndex, Messages
from runner.sessions.window import check_around, check_last, check_page, no_such_event, role_columns, window


class _Kept(NamedTuple):
    """An event; `body` is its JSON if the event has parts that a reader could change in place."""

    event: Event
    body: str | None
    asked: bool

    def handed_out(self) -> Event:
        return self.event if self.body is None else decode_event(self.body, self.event.seq)


class _Lease(NamedTuple):
    owner: str
    until: float


class _Value(NamedTuple):
    value: Any
    expires: float | None


class _Item(NamedTuple):
    at: float
    item: Any


@dataclass(slots=True)
class _Entry:
    created_at: float
    updated_at: float
    expires: float | None
    messages: Messages
    events: list[_Kept] = field(default_factory=list)
    last_asked: _Kept | None = None
    ids: dict[str, _Kept] = field(default_factory=dict)
    said: dict[str, int] = field(default_factory=dict)
    leases: dict[str, _Lease] = field(default_factory=dict)
    summaries: dict[str, Summary] = field(default_factory=dict)
    tracks: dict[str, list[_Item]] = field(default_factory=dict)


class InMemorySessions:
    """Sessions that end with the process. `ttl`: how long they live after the last change; `embedder`: ranks what a
    search finds by meaning too.

    What it takes and hands out is copied: neither a caller's event nor a session that was read is the stored one.
    """

    def __init__(self, *, ttl: Ttl | None = None, clock: Clock | None = None, embedder: Embedder | None = None) -> None:
        check_embedder(embedder)
        self._embedder = embedder
        self._ttl = ttl or Ttl()
        self._clock = clock or SystemClock()
        self._sessions: dict[tuple[str, str], dict[str, _Entry]] = {}
        self._states: dict[tuple[str, str, str], dict[str, _Value]] = {}
        self._swept = 0.0
        self._made = 0

    async def create(
        self, app: str, user: str, session: str | None = None, *, state: Mapping[str, Any] | None = None
    ) -> Session:
        """A new session (None: with a fresh id). Raises SessionExists for an id that is taken."""
        key = SessionKey(app, user, fresh_id() if session is None else session)
        check_key(key)
        values = slots(key, state or {})
        now = self._clock.now()
        if self._ttl.ends and now - self._swept >= SWEEP:
            await self.purge()
        if self._alive(key, now) is not None:
            raise session_exists(key)
        self._remove(key)  # an expired one
        self._made += 1
        entry = _Entry(now, now, self._ttl.session_end(now), Messages(self._made))
        self._sessions.setdefault((app, user), {})[key.session] = entry
        self._merge(values, now)
        return self._read(key, entry, now, (), ())

    async def get(self, key: SessionKey, *, last: int | None = None, since: float | None = None) -> Session | None:
        """The session, or None; see `graphagent.services.SessionService.get`."""
        check_key(key)
        check_last(last)
        now = self._clock.now()
        entry = self._alive(key, now)
        if entry is None:
            return None
        start = 0
        if since is not None:
            kept = entry.events
            start = next((place for place, one in enumerate(kept) if one.event.timestamp >= since), len(kept))
        if last is not None:
            start = max(start, len(entry.events) - last)
        found = window(entry.events[start:], entry.last_asked, lambda one: one.asked) if last != 0 else ()
        tracks = {name: items[-last:] if last else items for name, items in entry.tracks.items()} if last != 0 else {}
        if since is not None:
            tracks = {name: [one for one in items if one.at >= since] for name, items in tracks.items()}
        return self._read(key, entry, now, found, tracks.items())

    async def refresh(self, session: Session) -> Session | None:
        """See `graphagent.services.RefreshableSessions.refresh`."""
        key, known = session.key, session.events
        check_key(key)
        now = self._clock.now()
        entry = self._alive(key, now)
        if entry is None or not _is_beginning(session, entry):
            return await self.get(key)
        first = _first_asked(entry.events)
        found = self._read(key, entry, now, entry.events[first + len(known) :], entry.tracks.items())
        return found.model_copy(update={"events": [*known, *found.events]})

    def _read(
        self,
        key: SessionKey,
        entry: _Entry,
        now: float,
        events: Iterable[_Kept],
        tracks: Iterable[tuple[str, list[_Item]]],
    ) -> Session:
        return Session(
            app=key.app,
            user=key.user,
            id=key.session,
            events=[kept.handed_out() for kept in events],
            state=self._state(key, now),
            summaries=dict(entry.summaries),
            tracks={name: [copied(one.item) for one in items] for name, items in tracks if items},
            created_at=entry.created_at,
            updated_at=entry.updated_at,
        )

    def _state(self, key: SessionKey, now: float) -> dict[str, Any]:
        shown = {}
        for scope in ((key.app, "", ""), (key.app, key.user, ""), (key.app, key.user, key.session)):
            for name, value in self._values(scope, now):
                shown[Slot(*scope, name).shown] = value
        return shown

    def _values(self, scope: tuple[str, str, str], now: float) -> list[tuple[str, Any]]:
        found = self._states.get(scope, {})
        return [(name, copied(one.value)) for name, one in found.items() if one.expires is None or one.expires > now]

    def _merge(self, values: Iterable[tuple[Slot, str]], now: float) -> None:
        for slot, body in values:
            scope = self._states.setdefault(slot[:3], {})
            scope[slot.key] = _Value(loads(body), self._ttl.slot_end(slot, now))

    def _alive(self, key: SessionKey, now: float) -> _Entry | None:
        entry = self._sessions.get((key.app, key.user), {}).get(key.session)
        return None if entry is None or (entry.expires is not None and entry.expires <= now) else entry

    def _required(self, key: SessionKey, now: float) -> _Entry:
        check_key(key)
        entry = self._alive(key, now)
        if entry is None:
            raise session_not_found(key)
        return entry

    def _touch(self, entry: _Entry, now: float) -> None:
        entry.updated_at, entry.expires = now, self._ttl.session_end(now)

    async def list(self, app: str, user: str, *, offset: int = 0, limit: int | None = None) -> list[Session]:
        """Sessions of a user without events and tracks, the last changed first, then by id downwards."""
        check_user(app, user)
        check_page(offset, limit)
        now = self._clock.now()
        keys = [SessionKey(app, user, name) for name in self._sessions.get((app, user), {})]
        found = [(key, entry) for key in keys if (entry := self._alive(key, now)) is not None]
        found.sort(key=lambda one: (one[1].updated_at, one[0].session), reverse=True)
        page = islice(found, offset, None if limit is None else offset + limit)
        return [self._read(key, entry, now, (), ()) for key, entry in page]

    async def delete(self, key: SessionKey) -> bool:
        """Remove a session and all of it; False if there was none."""
        check_key(key)
        there = self._alive(key, self._clock.now()) is not None
        self._remove(key)
        return there

    def _remove(self, key: SessionKey) -> None:
        of_user = self._sessions.get((key.app, key.user), {})
        of_user.pop(key.session, None)
        if not of_user:
            self._sessions.pop((key.app, key.user), None)
        self._states.pop((key.app, key.user, key.session), None)

    async def append(self, key: SessionKey, event: Event) -> Event:
        """Add an event and merge its state delta; returns it as it is stored. One that is there already is returned as
        it was. Raises SessionNotFound, and ServiceError for a partial event or data that isn't plain."""
        stored = as_stored(event)
        if stored.partial:
            await self.update_state(key, stored.state_delta)
            return stored
        body = encode(stored, f"event '{event.id}'")
        values = slots(key, stored.state_delta)
        now = self._clock.now()
        entry = self._required(key, now)
        known = entry.ids.get(stored.id)
        if known is not None:
            return known.handed_out()
        stored = stored.numbered(len(entry.ids) + 1)
        kept = _Kept(stored, None if is_flat(stored) else body, stored.is_user)
        entry.ids[stored.id] = kept
        entry.said[stored.id] = entry.messages.add(stored, kept.handed_out)
        if stored.has_content:
            entry.events.append(kept)
            entry.last_asked = kept if kept.asked else entry.last_asked
        self._merge(values, now)
        self._touch(entry, now)
        return stored

    async def update_state(self, key: SessionKey, delta: Mapping[str, Any]) -> None:
        """Change state without an event; `temp:` keys are not stored. Raises SessionNotFound."""
        values = slots(key, delta)
        now = self._clock.now()
        entry = self._required(key, now)
        self._merge(values, now)
        self._touch(entry, now)

    async def shared_state(self, app: str, user: str | None = None) -> dict[str, Any]:
        """The state that all sessions of an app (`user` is None) or of one user share; keys are bare."""
        check_user(app, app if user is None else user)
        return dict(self._values((app, user or "", ""), self._clock.now()))

    async def update_shared_state(self, app: str, user: str | None, delta: Mapping[str, Any]) -> None:
        """Change it. Raises ServiceError for a key with the prefix of another scope."""
        check_user(app, app if user is None else user)
        self._merge(shared_slots(app, user, delta), self._clock.now())

    async def put_summary(self, key: SessionKey, filter_key: str, summary: Summary, *, after: Summary | None) -> bool:
        """Store a summary if the stored one is still `after`; False if somebody else was quicker."""
        encode(summary, f"the summary of '{filter_key}'")
        now = self._clock.now()
        entry = self._required(key, now)
        if entry.summaries.get(filter_key) not in (after, summary):
            return False
        entry.summaries[filter_key] = summary
        entry.expires = self._ttl.session_end(now)
        return True

    async def search(self, app: str, user: str, query: SessionQuery) -> Hits:
        """See `graphagent.services.SearchableSessions.search`."""
        return await search(self._index(app, user), app, user, query, self._embedder)

    def _index(self, app: str, user: str) -> MemoryIndex:
        now = self._clock.now()
        keys = [SessionKey(app, user, name) for name in self._sessions.get((app, user), {})]
        alive = {key.session: entry.messages for key in keys if (entry := self._alive(key, now)) is not None}
        return MemoryIndex(alive)

    async def window(
        self, key: SessionKey, event_id: str, *, before: int = 0, after: int = 0, roles: Collection[str] = ()
    ) -> Events:
        """See `graphagent.services.WindowedSessions.window`."""
        check_key(key)
        check_around(before, after)
        entry = self._alive(key, self._clock.now())
        anchor = None if entry is None else entry.ids.get(event_id)
        if entry is None or anchor is None:
            raise no_such_event(key, event_id)
        some, number, seq = role_columns(roles), entry.said[event_id], anchor.event.seq
        rows = entry.messages.rows
        first = [row.seq for row in reversed(rows[:number]) if row.role in some and row.seq < seq][:before]
        last = [row.seq for row in rows[number:] if row.role in some][:after]
        stored = entry.messages.stored
        return [*(stored[one]() for one in reversed(first)), anchor.handed_out(), *(stored[one]() for one in last)]

    async def tool_result(self, key: SessionKey, tool_call_id: str) -> Event | None:
        """See `graphagent.services.WindowedSessions.tool_result`."""
        check_key(key)
        return await tool_result(self._index(key.app, key.user), key, tool_call_id)

    async def lease_summary(self, key: SessionKey, filter_key: str, *, owner: str, seconds: float) -> bool:
        """See `graphagent.services.SummaryLeases.lease_summary`. Raises SessionNotFound."""
        check_name("owner", owner)
        now = self._clock.now()
        leases = self._required(key, now).leases
        held = leases.get(filter_key)
        if held is not None and held.owner != owner and held.until > now:
            return False
        leases[filter_key] = _Lease(owner, now + seconds)
        return True

    async def release_summary(self, key: SessionKey, filter_key: str, *, owner: str) -> None:
        """Give it back; harmless for who doesn't have it."""
        check_key(key)
        entry = self._alive(key, self._clock.now())
        held = None if entry is None else entry.leases.get(filter_key)
        if entry is not None and held is not None and held.owner == owner:
            del entry.leases[filter_key]

    async def append_track(self, key: SessionKey, track: str, items: Iterable[Any]) -> None:
        """Add plain data to a log beside the conversation. Raises SessionNotFound."""
        added = plain_items(track, items)
        now = self._clock.now()
        entry = self._required(key, now)
        entry.tracks.setdefault(track, []).extend(_Item(now, item) for item in added)
        self._touch(entry, now)

    async def purge(self) -> int:
        """Remove what has expired; returns how many sessions. `create` does so every few minutes."""
        now = self._swept = self._clock.now()
        keys = [SessionKey(*owner, name) for owner, found in self._sessions.items() for name in found]
        gone = [key for key in keys if self._alive(key, now) is None]
        for key in gone:
            self._remove(key)
        for scope, values in list(self._states.items()):
            alive = {name: one for name, one in values.items() if one.expires is None or one.expires > now}
            if alive:
                self._states[scope] = alive
            else:
                del self._states[scope]
        return len(gone)

    async def aclose(self) -> None:
        """Nothing to close; the sessions stay."""

    async def __aenter__(self) -> InMemorySessions:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def _first_asked(events: list[_Kept]) -> int:
    """Where what is handed out begins: the first that a person said."""
    return next((place for place, one in enumerate(events) if one.asked), len(events))


def _is_beginning(session: Session, entry: _Entry) -> bool:
    """True if a copy has all that is handed out up to its last event: as many, between the same ends."""
    known, first = session.events, _first_asked(entry.events)
    if not known or session.created_at != entry.created_at or first + len(known) > len(entry.events):
        return False
    start, end = entry.events[first].event, entry.events[first + len(known) - 1].event
    return (known[0].seq, known[-1].seq, known[-1].id) == (start.seq, end.seq, end.id)
