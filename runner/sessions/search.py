"""Finding what was said in the sessions of a user, the same way wherever they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from graphagent.errors import UsageError
from graphagent.ledger import Event, SessionKey, keys_match
from graphagent.services import SessionHit, SessionQuery
from runner.names import check_user
from runner.sessions.meaning import Embedder, VectorStore, nearness
from runner.sessions.search_ranking import (
    BLOCK_BITS,
    FIRST_BLOCKS,
    Query,
    Row,
    Scope,
    best_blocks,
    nearest_blocks,
    places_around,
    scores,
    spread,
)
from runner.sessions.search_text import call_mark, name_mark, query_terms, storable

Hits = list[SessionHit]
Events = list[Event]

SESSION_BITS = 32
"""A place is the session's key times two to this, plus a number."""
MOST_PLACES = 3000
"""Of a word that stands in more messages in scope, the newest so many are looked at."""
ENOUGH = 4
"""Messages that fit the query's filters, for each hit asked for, until no more are looked at."""


class Found(NamedTuple):
    """A session in scope: its key in the store, its name, how many messages it has and how many words those have."""

    id: int
    name: str
    messages: int
    words: int


class Span(NamedTuple):
    """Which places are looked at: from `first` to before `end`, and not those from `hole` to before `hole_end`."""

    first: int = 0
    end: int = (1 << 63) - 1
    hole: int = 0
    hole_end: int = 0


class Index(VectorStore, Protocol):
    """Where words, and the messages they stand in, are kept, and their vectors."""

    async def sessions(self, app: str, user: str, name: str | None) -> list[Found]:
        """The sessions of a user that are alive, or the one of this name."""
        ...

    async def places(self, app: str, user: str, words: Sequence[str], span: Span) -> list[list[int]]:
        """For each word the places where it stands, newest first, at most MOST_PLACES."""
        ...

    async def rows(self, places: Sequence[int]) -> list[Row]:
        """The messages at these places, as far as there are any."""
        ...

    async def events(self, places: Sequence[int]) -> dict[int, Event]:
        """The events at these places: here the session's key times two to SESSION_BITS, plus the event's number."""
        ...


async def search(index: Index, app: str, user: str, query: SessionQuery, embedder: Embedder | None = None) -> Hits:
    """See `graphagent.services.SearchableSessions.search`. Raises UsageError for a limit below 1."""
    check_user(app, user)
    if query.limit < 1:
        raise UsageError(f"limit={query.limit}: ask for at least one hit")
    terms = query_terms(query.text)
    by_meaning = embedder if query.mode == "hybrid" and query.text.strip() else None
    if not terms and by_meaning is None:
        return []
    there = await index.sessions(app, user, query.session)
    found = {one.id: one for one in there if one.name != query.not_in}
    count = sum(one.messages for one in found.values())
    if not count:
        return []
    scope = Scope(count, max(1.0, sum(one.words for one in found.values()) / count))
    words = [*terms, *map(name_mark, terms)]
    places = await index.places(app, user, words, _span(query, there)) if words else []
    mine = [[place for place in some if place >> SESSION_BITS in found] for some in places]
    near = {} if by_meaning is None else await nearness(by_meaning, index, list(found), query.text)
    sought = Query(query.text, terms, mine[: len(terms)], mine[len(terms) :], near)
    return await _hits(index, SessionKey(app, user, ""), query, sought, (scope, found))


def _span(query: SessionQuery, there: Sequence[Found]) -> Span:
    if query.session is not None and there:
        first = there[0].id << SESSION_BITS
        length = (1 << SESSION_BITS) - 1 if query.until is None else query.until
        return Span(first, first + length + 1)  # a message's number is at most that of its event
    hidden = next((one.id for one in there if one.name == query.not_in), None)
    return Span() if hidden is None else Span(hole=hidden << SESSION_BITS, hole_end=(hidden + 1) << SESSION_BITS)


async def _hits(
    index: Index, owner: SessionKey, query: SessionQuery, sought: Query, among: tuple[Scope, dict[int, Found]]
) -> list[SessionHit]:
    scope, found = among
    rows, wanted = await _looked_at(index, query, sought, scope)
    fitting = {place: score for place, score in scores(sought, scope, rows, wanted).items() if score >= query.min_score}
    best = spread(fitting, {one.id: one.messages for one in found.values()}, query.limit, SESSION_BITS)
    best = [(place, score) for place, score in best if score >= query.min_score]
    stored = {place: (place >> SESSION_BITS << SESSION_BITS) + rows[place].seq for place, _ in best}
    events = await index.events(list(stored.values())) if stored else {}
    return [
        SessionHit(owner._replace(session=found[place >> SESSION_BITS].name), events[stored[place]], score)
        for place, score in best
        if stored[place] in events  # deleted a moment ago
    ]


async def _looked_at(
    index: Index, query: SessionQuery, sought: Query, scope: Scope
) -> tuple[dict[int, Row], list[int]]:
    """The messages that the query's filters let through: those of the best blocks with those around them, of more
    blocks if few are let through; and which of them are in these blocks. Others don't count: not even that somebody
    said a word is told to who may not see it."""
    rows: dict[int, Row] = {}
    wanted: list[int] = []
    seen: set[int] = set()
    done: set[int] = set()
    filter_key = storable(query.filter_key)
    for some in _portions(best_blocks(sought, scope, FIRST_BLOCKS)):
        if not seen:
            some |= nearest_blocks(sought.near)
        around = places_around(some) - seen
        seen |= around
        done |= some
        there = await index.rows(sorted(around))
        rows.update((row.place, row) for row in there if _lets_through(query, filter_key, row))
        wanted = [place for place in rows if place >> BLOCK_BITS in done]
        if len(wanted) >= ENOUGH * query.limit:
            break
    return rows, wanted


def _portions(blocks: Iterable[list[int]]) -> Iterator[set[int]]:
    """The first FIRST_BLOCKS, then twice as many each time."""
    size = FIRST_BLOCKS
    waiting: list[int] = []
    for some in blocks:
        waiting += some
        while len(waiting) >= size:
            yield set(waiting[:size])
            waiting, size = waiting[size:], size * 2
    yield set(waiting)


async def tool_result(index: Index, key: SessionKey, tool_call_id: str) -> Event | None:
    """See `graphagent.services.WindowedSessions.tool_result`."""
    there = await index.sessions(key.app, key.user, key.session)
    if not there:
        return None
    first = there[0].id << SESSION_BITS
    span = Span(first, first + (1 << SESSION_BITS))
    [places] = await index.places(key.app, key.user, [call_mark(tool_call_id)], span)
    if not places:
        return None
    events = await index.events([first + row.seq for row in await index.rows(places)])
    newest_first = sorted(events.values(), key=lambda event: -event.seq)
    return next((event for event in newest_first if _answers(event, tool_call_id)), None)


def _answers(event: Event, tool_call_id: str) -> bool:
    return any(message.role == "tool" and message.tool_call_id == tool_call_id for message in event.messages)


def _lets_through(query: SessionQuery, filter_key: str, row: Row) -> bool:
    return (
        row.role in query.roles
        and (query.until is None or row.seq <= query.until)
        and keys_match(row.filter_key, filter_key)
    )
