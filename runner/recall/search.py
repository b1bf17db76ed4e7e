"""Finds events of a user's sessions: in which of them, with what else to try when a question finds too little.

Source: spec/context, 15.2 to 15.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast, get_args

from graphagent.errors import ToolError
from graphagent.ledger import Event, SessionKey
from graphagent.services import SearchableSessions, SearchMode, SessionHit, SessionQuery, SessionService
from runner.recall.hidden import Hidden, hidden_from
from runner.recall.queries import collapsed, is_compound, queries, share
from runner.recall.said import is_echo
from runner.recall.scan import scan

Scope = Literal["current_hidden", "current_session", "other_sessions", "all_sessions"]
"""Where to look: in what a summary hides of this session; in all of this one; in the user's others; in what is hidden
of this one and in the others."""
HITS, MOST_HITS = 5, 10
"""Hits where the caller names no number, and the most of them."""
SCANNED = 10_000
"""The newest events that are read where the service's own search finds nothing."""
SPARE = 6
"""Hits that are asked for beyond the wanted ones, since some may not count."""

Search = Callable[[str], Awaitable[list[SessionHit]]]


class Found(NamedTuple):
    """An event that was found. `place`: `current_hidden`, `current_session` or `other_sessions`. `score`: higher is
    better, comparable within one answer."""

    key: SessionKey
    event: Event
    score: float
    place: Scope


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is searched for: `text`, in `scope`, at most `limit` events, none with a lower score than `min_score`;
    `further`: so many more, if they are found anyway."""

    text: str
    scope: Scope = "current_hidden"
    limit: int = HITS
    mode: SearchMode = "hybrid"
    min_score: float = 0.0
    further: int = 0

    @property
    def most(self) -> int:
        """How many events may come back."""
        return self.limit + self.further

    @classmethod
    def of(cls, text: str, *, scope: str = "", top_k: int = 0, mode: str = "", min_score: float = 0.0) -> Wanted:
        """What a model asked for; what it can't mean is taken as the default. `top_k`: 0 is five, and as many more as
        make ten; never more than ten."""
        known = cast(Scope, scope) if scope in get_args(Scope) else "current_hidden"
        way = cast(SearchMode, mode) if mode in get_args(SearchMode) else "hybrid"
        if top_k > 0:
            return cls(collapsed(text), known, min(top_k, MOST_HITS), way, min_score)
        return cls(collapsed(text), known, HITS, way, min_score, further=MOST_HITS - HITS)


@dataclass(frozen=True, slots=True)
class Searcher:
    """Searches for a reader of one session. `filter_key`: the reader's; `request_id`: of the turn that goes on, whose
    question is no answer to itself (empty: there is none)."""

    sessions: SessionService
    key: SessionKey
    filter_key: str = ""
    request_id: str = ""

    async def find(self, wanted: Wanted) -> list[Found]:
        """The events, best first, equal ones newest first. Raises ToolError where the service can't search, and what
        it raises."""
        service = searchable(self.sessions)
        if not wanted.text:
            return []
        if wanted.scope == "current_session":
            return await self._current(service, wanted, None)
        found: list[Found] = []
        if wanted.scope != "other_sessions":
            state = await self.sessions.get(self.key, last=0)
            hidden = hidden_from(self.filter_key, {} if state is None else state.summaries)
            found += await self._current(service, wanted, hidden) if hidden.boundaries else []
        if wanted.scope in ("other_sessions", "all_sessions"):
            found += await self._others(service, wanted)
        return ordered(found)[: wanted.most]

    async def _current(self, service: SearchableSessions, wanted: Wanted, hidden: Hidden | None) -> list[Found]:
        """In this session: what is hidden, or with None all of it."""
        place: Scope = "current_session" if hidden is None else "current_hidden"
        query = _query(wanted)._replace(session=self.key.session)
        if hidden is not None:
            query = query._replace(filter_key=self.filter_key, until=hidden.until)

        def counts(event: Event) -> bool:
            return not is_echo(event) and (not self._asks(event) if hidden is None else hidden.covers(event))

        hits = await self._searched(service, query, wanted, counts, own=True)
        return [Found(*hit, place) for hit in hits] or await self._scanned(wanted, counts, query.filter_key, place)

    async def _others(self, service: SearchableSessions, wanted: Wanted) -> list[Found]:
        query = _query(wanted)._replace(not_in=self.key.session)
        hits = await self._searched(service, query, wanted, lambda event: not is_echo(event), own=False)
        return [Found(*hit, "other_sessions") for hit in hits]

    async def _searched(
        self,
        service: SearchableSessions,
        query: SessionQuery,
        wanted: Wanted,
        counts: Callable[[Event], bool],
        *,
        own: bool,
    ) -> list[SessionHit]:
        async def search(text: str) -> list[SessionHit]:
            hits = await service.search(self.key.app, self.key.user, query._replace(text=text))
            return [hit for hit in hits if self._mine(hit.key, own) and hit.event.id and counts(hit.event)]

        return await with_fallback(search, wanted)

    async def _scanned(
        self, wanted: Wanted, counts: Callable[[Event], bool], filter_key: str, place: Scope
    ) -> list[Found]:
        session = await self.sessions.get(self.key, last=SCANNED)
        if session is None:
            return []
        events = [event for event in session.events if event.matches(filter_key) and counts(event)]
        return [
            Found(self.key, event, worth, place) for event, worth in scan(events, queries(wanted.text), wanted.limit)
        ]

    def _mine(self, key: SessionKey, own: bool) -> bool:
        """Whatever a service returns: nobody else's session, and this one only where it is meant."""
        return key[:2] == self.key[:2] and (key.session == self.key.session) == own

    def _asks(self, event: Event) -> bool:
        return event.is_user and bool(self.request_id) and event.request_id == self.request_id


def searchable(sessions: SessionService | None) -> SearchableSessions:
    """The service as one that can search. Raises ToolError if it can't."""
    if not isinstance(sessions, SearchableSessions):
        raise ToolError(f"{type(sessions).__name__} can't search sessions; there is nothing to find here")
    return sessions


async def with_fallback(search: Search, wanted: Wanted) -> list[SessionHit]:
    """The hits of the question itself; if they are too few, those of its parts as well, whose scores count by how much
    of the question the part asks. Raises what the search raises."""
    hits = merged((), await search(wanted.text))[: wanted.most]
    if len(hits) >= wanted.limit or (hits and not is_compound(wanted.text) and len(hits) >= min(2, wanted.limit)):
        return hits
    none = not hits
    for text in queries(wanted.text)[1:]:
        part = share(text, wanted.text)
        more = [hit._replace(score=hit.score * part) for hit in await search(text)]
        hits = merged(hits, [hit for hit in more if hit.score >= wanted.min_score])
        if (none and hits) or len(hits) >= wanted.limit:
            break
    return hits[: wanted.most]


def merged(some: Sequence[SessionHit], others: Sequence[SessionHit]) -> list[SessionHit]:
    """Each event once, with the higher of its scores; best first, equal ones newest first."""
    best: dict[tuple[str, str], SessionHit] = {}
    for hit in (*some, *others):
        name = (hit.key.session, hit.event.id)
        if name not in best or best[name].score < hit.score:
            best[name] = hit
    return sorted(best.values(), key=lambda hit: (-hit.score, -hit.event.timestamp))


def ordered(found: Iterable[Found]) -> list[Found]:
    """Best first, equal ones newest first."""
    return sorted(found, key=lambda one: (-one.score, -one.event.timestamp))


def _query(wanted: Wanted) -> SessionQuery:
    return SessionQuery(wanted.text, limit=wanted.most + SPARE, mode=wanted.mode, min_score=wanted.min_score)


async def in_session(sessions: SessionService, app: str, user: str, session: str | None, wanted: Wanted) -> list[Found]:
    """What is found in one of a user's sessions, or (None) in all of them, whoever sees it."""
    if session is not None:
        return await Searcher(sessions, SessionKey(app, user, session)).find(replace(wanted, scope="current_session"))
    service = searchable(sessions)

    async def search(text: str) -> list[SessionHit]:
        hits = await service.search(app, user, _query(wanted)._replace(text=text))
        return [hit for hit in hits if not is_echo(hit.event)]

    hits = await with_fallback(search, wanted) if wanted.text else []
    return [Found(*hit, "other_sessions") for hit in hits]
