"""The ports that services fill: sessions, memory, artifacts. Conformance suites for them are in
`graphagent.testing`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypedDict, Unpack, runtime_checkable

from graphagent.ledger import Event, Session, SessionKey, Summary


class SessionService(Protocol):
    """Where sessions live. All methods raise ServiceError or a subclass; a write is atomic."""

    async def create(
        self, app: str, user: str, session: str | None = None, *, state: Mapping[str, Any] | None = None
    ) -> Session:
        """A new session (None: with a fresh id). Raises SessionExists for an id that is taken."""
        ...

    async def get(self, key: SessionKey, *, last: int | None = None, since: float | None = None) -> Session | None:
        """The session, or None if there is none (any more).

        Events without content are not among its events. `since`: only from the first event on that is not older;
        `last`: only so many events, and only so many of each track. What is left begins with something that a person
        said: events before the first such one are left out, and if there is none, the last such one of the whole
        session stands before the others (so there may be one more than `last`); a session in which no person said
        anything has no events.
        """
        ...

    async def list(self, app: str, user: str, *, offset: int = 0, limit: int | None = None) -> list[Session]:
        """Sessions of a user without their events, the last changed first, then by id downwards."""
        ...

    async def delete(self, key: SessionKey) -> bool:
        """Remove a session and all of it; False if there was none."""
        ...

    async def append(self, key: SessionKey, event: Event) -> Event:
        """Add an event and merge its state delta, in one transaction; returns it as it is stored.

        An event with an id that is there already is not added again, and changes no state; the stored one is returned.
        `temp:` keys are not stored. Of a partial event only the state is; without any it is a ServiceError, as is data
        that JSON doesn't give back equal. Raises SessionNotFound.
        """
        ...

    async def update_state(self, key: SessionKey, delta: Mapping[str, Any]) -> None:
        """Change state without an event: bare keys of the session, `app:` and `user:` keys of those."""
        ...

    async def shared_state(self, app: str, user: str | None = None) -> dict[str, Any]:
        """The state that all sessions of an app (`user` is None) or of one user share; keys are bare."""
        ...

    async def update_shared_state(self, app: str, user: str | None, delta: Mapping[str, Any]) -> None:
        """Change it. Keys may have the prefix of their scope; another prefix is a ServiceError."""
        ...

    async def put_summary(self, key: SessionKey, filter_key: str, summary: Summary, *, after: Summary | None) -> bool:
        """Store a summary if the stored one is still `after`; False if somebody else was quicker."""
        ...

    async def append_track(self, key: SessionKey, track: str, items: Iterable[Any]) -> None:
        """Add plain data to a log beside the conversation."""
        ...

    async def aclose(self) -> None:
        """Close connections; harmless twice."""
        ...


SearchMode = Literal["words", "hybrid"]


class SessionQuery(NamedTuple):
    """What is looked for in the sessions of a user.

    `session`: only in this one; `not_in`: not in this one. `filter_key`: only events that a reader with this key sees;
    `until`: only events up to this number (None: all). `roles`: who said it. `limit`: how many hits at most; `mode`:
    by words, or by words and meaning together where the service has a ranker for meaning. `min_score`: hits of a lower
    score are left out.
    """

    text: str
    session: str | None = None
    not_in: str | None = None
    filter_key: str = ""
    until: int | None = None
    roles: frozenset[str] = frozenset({"user", "assistant", "tool"})
    limit: int = 5
    mode: SearchMode = "hybrid"
    min_score: float = 0.0


class SessionHit(NamedTuple):
    """An event that was found. `score`: from 0 to 1 within one search, higher is better."""

    key: SessionKey
    event: Event
    score: float


@runtime_checkable
class SearchableSessions(Protocol):
    """A session service that finds events by what was said. Reading only."""

    async def search(self, app: str, user: str, query: SessionQuery) -> list[SessionHit]:
        """Events of the user's sessions that fit, best first, equal ones newest first; none for a blank text. What was
        appended is found at once. Raises ServiceError."""
        ...


@runtime_checkable
class RefreshableSessions(Protocol):
    """A session service that reads on from where a reader is."""

    async def refresh(self, session: Session) -> Session | None:
        """What `get(session.key)` returns, without reading the events again that `session` has: they never change.

        They are handed on as they are. A copy that isn't all of the session up to its last event (a window, or
        one of a session that was made anew) is no help, and all is read.
        """
        ...


async def read_again(service: SessionService, session: Session) -> Session | None:
    """A session that somebody holds as it is now, None if it is gone; what is held isn't read again if need not be."""
    if isinstance(service, RefreshableSessions):
        return await service.refresh(session)
    return await service.get(session.key)


@runtime_checkable
class WindowedSessions(Protocol):
    """A session service that reads around an event without reading the whole session."""

    async def window(
        self, key: SessionKey, event_id: str, *, before: int = 0, after: int = 0, roles: Collection[str] = ()
    ) -> list[Event]:
        """The event with so many before and after it, in order. Only those with visible text and without tool calls
        count, of these roles (none: of all); the event itself is there in any case. Raises AnchorNotFound if the
        session has no such event, UsageError for a negative number."""
        ...

    async def tool_result(self, key: SessionKey, tool_call_id: str) -> Event | None:
        """The newest event of the session that holds a result of this call; None if there is none."""
        ...


@runtime_checkable
class SummaryLeases(Protocol):
    """A session service through which processes agree who makes a summary."""

    async def lease_summary(self, key: SessionKey, filter_key: str, *, owner: str, seconds: float) -> bool:
        """Take the right to make this summary, for so many seconds; again to keep it longer. False while another owner
        has it. It is a saving, not a lock: what keeps a summary from being overwritten is `put_summary`."""
        ...

    async def release_summary(self, key: SessionKey, filter_key: str, *, owner: str) -> None:
        """Give it back; harmless for who doesn't have it."""
        ...


class Memory(NamedTuple):
    """Something remembered about a user, in all sessions. `kind`: `fact` (what stays true) or `episode` (what happened
    once). `event_time`: when it happened, in seconds since the epoch; `participants`, `location`: who was there, and
    where. `score`: of a search, higher is better."""

    id: str
    text: str
    topics: tuple[str, ...] = ()
    kind: str = "fact"
    event_time: float | None = None
    participants: tuple[str, ...] = ()
    location: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    score: float = 0.0


class About(TypedDict, total=False):
    """What a memory says besides its text, as in `Memory`. Left out, a new memory has none of it, and an update leaves
    it as it is."""

    topics: Iterable[str]
    kind: str
    event_time: float | None
    participants: Iterable[str]
    location: str


class MemoryFilter(NamedTuple):
    """Which memories a search is for.

    `kind`: only those (empty: all); `fallback`: if fewer than three of that kind fit, others come after them. `after`,
    `before`: happened then or later, or earlier, in seconds since the epoch; what has no time passes. `distinct`: of
    memories that say nearly the same of the same event, only the one that fits best. `min_score`: what fits worse is
    left out.
    """

    kind: str = ""
    fallback: bool = False
    after: float | None = None
    before: float | None = None
    distinct: bool = False
    min_score: float = 0.3


ALL_MEMORIES = MemoryFilter()


class MemoryService(Protocol):
    """What is remembered about users, over sessions."""

    async def add(self, app: str, user: str, text: str, **about: Unpack[About]) -> Memory:
        """Remember something. The same text with the same kind, time, participants and place is the same memory: its
        topics and its time of change are new then. Raises LimitExceeded if the user has too many, also for a memory
        that is there."""
        ...

    async def update(self, app: str, user: str, id: str, text: str, **about: Unpack[About]) -> Memory:
        """Change what is remembered; what `about` leaves out stays. The id changes with what makes the memory. Raises
        NotFound, and AlreadyExists if that is another memory of the user: nothing is changed then."""
        ...

    async def delete(self, app: str, user: str, id: str) -> bool:
        """Forget something; False if it wasn't there."""
        ...

    async def clear(self, app: str, user: str) -> int:
        """Forget everything about a user; returns how many it was."""
        ...

    async def load(self, app: str, user: str, *, limit: int | None = None) -> list[Memory]:
        """What is remembered, the last changed first."""
        ...

    async def search(
        self, app: str, user: str, query: str, *, limit: int = 10, only: MemoryFilter = ALL_MEMORIES
    ) -> list[Memory]:
        """What fits a query best, best first."""
        ...

    async def aclose(self) -> None:
        """Close connections; harmless twice."""
        ...


class Artifact(NamedTuple):
    """A stored file. `version` counts from 0."""

    name: str
    data: bytes
    mime_type: str = "application/octet-stream"
    version: int = 0


class ArtifactService(Protocol):
    """Files with versions. A name that begins with `user:` belongs to the user, any other to the session."""

    async def save(
        self, key: SessionKey, name: str, data: bytes, *, mime_type: str = "application/octet-stream"
    ) -> int:
        """Store a new version; returns its number. Raises ServiceError for a name that isn't one."""
        ...

    async def load(self, key: SessionKey, name: str, version: int | None = None) -> Artifact | None:
        """A version, or the newest; None if the file isn't there. Raises NotFound for a version that isn't."""
        ...

    async def names(self, key: SessionKey) -> list[str]:
        """The files of the session and those of its user, sorted."""
        ...

    async def versions(self, key: SessionKey, name: str) -> list[int]:
        """The versions of a file, ascending."""
        ...

    async def delete(self, key: SessionKey, name: str) -> bool:
        """Remove all versions of a file; False if there was none."""
        ...

    async def aclose(self) -> None:
        """Close connections; harmless twice."""
        ...
