"""What one answer of `session_search` shows: the hits, the first with what was said around them, in a bounded text.

Evidence is often beside what was found, and a model pays for each word. So nothing is shown twice, and the text is
filled by worth: first the hits, then what was said around the first two, then further hits, as far as there is room.
(Measured on QMSum val and five conversations of LoCoMo: in QMSum further hits hold the evidence, in LoCoMo neighbours.)
Source: spec/context, 15.1, whose answer shows the window of a hit a second time in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphagent.errors import GraphAgentError
from graphagent.ledger import Event
from graphagent.services import SessionService, WindowedSessions
from runner.recall.excerpt import excerpt, fitting
from runner.recall.queries import collapsed, keywords
from runner.recall.said import ROLES, is_echo, moment, role_of, words_of
from runner.recall.search import Found, Wanted

EMPTY = "<empty>"
MATCH = "[match] "
NOTHING = "Nothing found here. It may have been said all the same: in other words, or in another scope."
_LEAST = 60  # bytes that each hit has, however many there are


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is shown. `expanded`: of so many hits (the first) their surroundings, `around`: so many messages to
    each side. Characters: `match` of an expanded hit, `neighbour` of a message around it, `snippet` of any other hit,
    `further` of one that is there only if there is room. `size`: bytes of all texts together; four are about a token.
    """

    expanded: int = 2
    around: int = 2
    match: int = 480
    neighbour: int = 280
    snippet: int = 280
    further: int = 280
    size: int = 2400


STANDARD = Bounds()


@dataclass(slots=True)
class Shown:
    """A hit as it is shown. `window`: what was said around it, itself among it, in order (empty: it is not expanded);
    `lines`: the texts that are shown, by event id; `cut`: its own is shortened."""

    found: Found
    window: Sequence[Event] = ()
    lines: dict[str, str] = field(default_factory=dict)
    cut: bool = False


class Arranged(NamedTuple):
    """What is shown: the hits, and further ones with their texts."""

    entries: list[Shown]
    more: list[tuple[Found, str]]


async def arranged(
    sessions: SessionService | None, found: Sequence[Found], query: str, limit: int, bounds: Bounds = STANDARD
) -> Arranged:
    """The hits with their texts, those behind the first `limit` if there is room; one that stands beside a better one
    is shown there. A window that can't be read is left out."""
    entries: list[Shown] = []
    left = bounds.size
    for one in found[:limit]:
        host = next((entry for entry in entries if _has(entry, one)), None)
        if host is None:
            host = Shown(one)
            if len(entries) < bounds.expanded:
                host.window = await _window(sessions, one, bounds.around)
            entries.append(host)
        text = collapsed(words_of(one.event))
        line = excerpt(text, bounds.match if host.window else bounds.snippet, query)
        line = fitting(line, max(left, _LEAST))
        host.lines[one.event.id] = line
        host.cut = host.cut or (host.found is one and line != text)
        left -= len(line.encode())
    for entry, event in _by_nearness(entries, bounds.around):
        line = excerpt(collapsed(words_of(event)), bounds.neighbour, query)
        if event.id not in entry.lines and len(line.encode()) <= left:
            entry.lines[event.id] = line
            left -= len(line.encode())
    more = []
    for one in found[limit:]:
        line = excerpt(collapsed(words_of(one.event)), bounds.further, query)
        beside = any(entry.found.key == one.key and one.event.id in entry.lines for entry in entries)
        if line and not beside and len(line.encode()) <= left:
            more.append((one, line))
            left -= len(line.encode())
    return Arranged(entries, more)


def answer(shown: Arranged, wanted: Wanted, current: str) -> dict[str, Any]:
    """The whole answer as plain data, without what the model has said itself. The session is named where it isn't the
    current one, the place where it isn't the scope that was asked for, and the score where a least one was asked for.
    Further hits are a line each: event id, session, role and text."""
    data: dict[str, Any] = {"scope": wanted.scope, "results": [_data(one, wanted, current) for one in shown.entries]}
    if not shown.entries:
        data["note"] = NOTHING
    if shown.more:
        data["more"] = [_line(one, text, current) for one, text in shown.more]
    return data


def _data(entry: Shown, wanted: Wanted, current: str) -> dict[str, Any]:
    found = entry.found
    event = found.event
    data: dict[str, Any] = {} if found.place == wanted.scope else {"scope": found.place}
    data["event_id"] = event.id
    if found.key.session != current:
        data["session_id"] = found.key.session
    data["created"] = moment(event.timestamp)
    if wanted.min_score:
        data["score"] = round(found.score, 2)
    data["snippet"] = _snippet(entry)
    results = [message for message in event.messages if message.role == "tool"]
    if results:
        words = keywords(wanted.text)
        best = max(results, key=lambda message: sum(word in message.text.lower() for word in words))
        data |= {"tool_call_id": best.tool_call_id, "tool_name": best.name}
        data |= {"content_bytes": len(best.text.encode()), "content_truncated": entry.cut}
    return data


def _line(found: Found, text: str, current: str) -> str:
    elsewhere = "" if found.key.session == current else f" (session_id {found.key.session})"
    return f"{found.event.id}{elsewhere} {role_of(found.event)}: {text}"


def _snippet(entry: Shown) -> str:
    """The text of a hit, after the role of who said it; with what was said around it as lines, its own marked."""
    own = entry.found.event
    if len(entry.lines) == 1:
        return f"{role_of(own)}: {entry.lines[own.id] or EMPTY}"
    shown = [event for event in entry.window if event.id in entry.lines]
    return "\n".join(
        f"{MATCH if event.id == own.id else ''}{role_of(event)}: {entry.lines[event.id] or EMPTY}" for event in shown
    )


async def _window(sessions: SessionService | None, found: Found, around: int) -> Sequence[Event]:
    """What was said around a hit, without what belongs to another branch or was itself found by a tool."""
    if not isinstance(sessions, WindowedSessions):
        return ()
    try:
        window = await sessions.window(found.key, found.event.id, before=around, after=around, roles=ROLES)
    except GraphAgentError:
        return ()
    return [event for event in window if event.matches(found.event.filter_key) and not is_echo(event)]


def _has(entry: Shown, found: Found) -> bool:
    return entry.found.key == found.key and any(event.id == found.event.id for event in entry.window)


def _by_nearness(entries: Sequence[Shown], around: int) -> Iterator[tuple[Shown, Event]]:
    """The messages around the hits, the nearest first."""
    for distance in range(1, around + 1):
        for entry in entries:
            ids = [event.id for event in entry.window]
            at = ids.index(entry.found.event.id) if ids else 0
            for place in (at - distance, at + distance):
                if 0 <= place < len(ids):
                    yield entry, entry.window[place]
