"""What one answer of `session_search` shows, and how texts are cut for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recalling import APP, USER, Canned, hit, invocation, result, said, stored, use

from graphagent.errors import ServiceError
from graphagent.ledger import Event, SessionKey
from runner.recall import Bounds, SessionRecall
from runner.recall.excerpt import CUT, excerpt, fitting
from runner.recall.snippets import NOTHING

pytestmark = pytest.mark.anyio

OTHER = SessionKey(APP, USER, "s2")


class Windowed(Canned):
    """Sessions with a canned search, whose windows are cut out of the session here."""

    async def window(
        self, key: SessionKey, event_id: str, *, before: int = 0, after: int = 0, roles: Collection[str] = ()
    ) -> list[Event]:
        """The event with its neighbours."""
        session = await self.get(key)
        events = [] if session is None else session.events
        at = next((at for at, event in enumerate(events) if event.id == event_id), None)
        if at is None:
            raise ServiceError("gone")
        return events[max(0, at - before) : at + after + 1]

    async def tool_result(self, key: SessionKey, tool_call_id: str) -> Event | None:
        """None is asked for here."""
        return None


async def filled(found: Sequence[tuple[str, float]], text: str = "") -> tuple[Windowed, dict[str, Event]]:
    """A session of twelve short messages, all hidden, whose search finds these, by id and score."""
    sessions = Windowed(lambda asked: [hit(by_id[id], score) for id, score in found])
    events = [said(f"e{n}", f"line {n}{text}", role="user" if n % 2 else "assistant", at=n) for n in range(1, 13)]
    by_id = {event.id: event for event in await stored(sessions, events, covered=12)}
    return sessions, by_id


async def shown(*found: tuple[str, float], bounds: Bounds | None = None, text: str = "") -> Any:
    """The results for hits in such a session."""
    sessions, _ = await filled(found, text)
    recall = SessionRecall(bounds=bounds or Bounds())
    return (await use("session_search", await invocation(sessions), recall, query="blue", top_k=9))["results"]


async def test_the_first_hits_come_with_their_surroundings() -> None:
    """Two messages to each side of the first two, the hit marked; the others alone."""
    found = await shown(("e4", 0.9), ("e9", 0.8), ("e1", 0.7))
    assert found[0] == {
        "event_id": "e4",
        "created": "1970-01-01 00:00Z",
        "snippet": "assistant: line 2\nuser: line 3\n[match] assistant: line 4\nuser: line 5\nassistant: line 6",
    }
    assert found[1]["snippet"].startswith("user: line 7\nassistant: line 8\n[match] user: line 9\n")
    assert found[2]["snippet"] == "user: line 1"


async def test_nothing_is_shown_twice() -> None:
    """A hit beside a better one stands in its surroundings, and the next one is expanded in its place."""
    found = await shown(("e4", 0.9), ("e5", 0.8), ("e9", 0.7), ("e10", 0.6))
    assert [one["event_id"] for one in found] == ["e4", "e9"]
    lines = [line for one in found for line in one["snippet"].splitlines()]
    assert len(lines) == len({line.removeprefix("[match] ") for line in lines}) == 10


async def test_what_is_shown_is_bounded() -> None:
    """The hits come first, then the nearest neighbours, as long as there is room; a long text is cut."""
    found = await shown(("e4", 0.9), ("e9", 0.8), ("e1", 0.7), text=" blah" * 400)
    lines = [one["snippet"].splitlines() for one in found]
    assert [len(one) for one in lines] == [3, 3, 1]
    texts = [line.removeprefix("[match] ").partition(": ")[2] or line for one in lines for line in one]
    assert sum(map(len, texts)) <= 2400
    assert all(line.endswith(CUT) for line in texts)
    assert len(texts[-1]) <= 280
    found = await shown(("e4", 0.9), ("e9", 0.8), ("e1", 0.7), text=" blah" * 400, bounds=Bounds(size=300))
    assert all(one["snippet"].startswith(("user: line ", "assistant: line ")) for one in found)
    assert sum(len(one["snippet"]) for one in found) <= 300 + 150


async def test_further_hits_fill_the_room_that_is_left() -> None:
    """Where no number of hits is asked for, those behind the first five are there too, as far as there is room."""
    scores = [(f"e{n}", 1 - place / 100) for place, n in enumerate((1, 12, 5, 6, 7, 8, 9, 2))]
    sessions, _ = await filled(scores)
    found = await use("session_search", await invocation(sessions), query="blue")
    assert [one["event_id"] for one in found["results"]] == ["e1", "e12", "e5", "e6", "e7"]
    assert found["more"] == ["e8 assistant: line 8", "e9 user: line 9"]
    assert "more" not in await use("session_search", await invocation(sessions), query="blue", top_k=5)
    tight = SessionRecall(bounds=Bounds(size=60))
    assert "more" not in await use("session_search", await invocation(sessions), tight, query="blue")


async def test_the_place_is_named_where_it_is_not_the_scope() -> None:
    """In an answer from all sessions each hit says where it is from."""
    sessions, events = await filled([("e1", 0.9)])
    sessions.answer = lambda asked: [hit(events["e1"])] if asked.session else [hit(said("x1", "sky"), 0.4, OTHER)]
    found = await use("session_search", await invocation(sessions), query="blue", scope="all_sessions")
    places = [(one["scope"], one.get("session_id")) for one in found["results"]]
    assert places == [("current_hidden", None), ("other_sessions", "s2")]


async def test_further_hits_of_another_session_name_it() -> None:
    """So that they can be loaded."""
    sessions, _ = await filled([])
    sessions.answer = lambda asked: [hit(said(f"x{n}", f"sky {n}"), 1 - n / 100, OTHER) for n in range(6)]
    found = await use("session_search", await invocation(sessions), query="sky", scope="other_sessions")
    assert found["more"] == ["x5 (session_id s2) user: sky 5"]


async def test_scores_are_shown_where_a_least_one_is_asked_for() -> None:
    """Else a model pays for numbers that tell no more than the order does."""
    sessions, _ = await filled([("e4", 0.9), ("e9", 0.456)])
    for least, expected in ((0.0, [None, None]), (0.3, [0.9, 0.46])):
        found = await use("session_search", await invocation(sessions), query="blue", min_score=least)
        assert [one.get("score") for one in found["results"]] == expected


async def test_finding_nothing_is_no_proof() -> None:
    """The answer says so, and only then."""
    sessions, _ = await filled([])
    found = await use("session_search", await invocation(sessions), query="absent")
    assert (found["results"], found["note"]) == ([], NOTHING)
    sessions, _ = await filled([("e4", 0.9)])
    assert "note" not in await use("session_search", await invocation(sessions), query="blue")


async def test_a_window_that_cannot_be_read() -> None:
    """The hit is shown alone."""
    sessions = Windowed(lambda asked: [hit(said("x1", "blue  \n sky", at=60), 0.5, OTHER)])
    await stored(sessions, [said("e1", "hi")])
    found = await use("session_search", await invocation(sessions), query="sky", scope="other_sessions")
    assert found == {
        "scope": "other_sessions",
        "results": [
            {
                "event_id": "x1",
                "session_id": "s2",
                "created": "1970-01-01 00:01Z",
                "snippet": "user: blue sky",
            }
        ],
    }


async def test_results_of_tools_say_how_long_they_are() -> None:
    """With the call's id and the tool's name, so that the rest can be loaded; nothing said is `<empty>`."""
    long = "x " * 1000
    events = [result("e1", "c1", long), result("e2", "c2", "short"), said("e3", " ")]
    sessions = Canned(lambda asked: [hit(event) for event in events])
    await stored(sessions, [said("e0", "hi")])
    found = (await use("session_search", await invocation(sessions), query="x", scope="other_sessions"))["results"]
    assert found == []
    sessions.answer = lambda asked: [hit(event, 0.9 - n / 10, OTHER) for n, event in enumerate(events)]
    found = (await use("session_search", await invocation(sessions), query="x", scope="other_sessions"))["results"]
    about = [{name: one.get(name) for name in ("tool_call_id", "tool_name", "content_bytes")} for one in found]
    assert about[0] == {"tool_call_id": "c1", "tool_name": "look", "content_bytes": len(long)}
    assert [one.get("content_truncated") for one in found] == [True, False, None]
    assert [one["snippet"] for one in found[1:]] == ["tool: look: short", "user: <empty>"]


@pytest.mark.parametrize(
    ("text", "most", "query", "expected"),
    [
        ("short", 10, "", "short"),
        ("one two three four", 10, "", "one two..."),
        ("one two three four", 10, "absent", "one two..."),
        ("a b c d e f g h needle", 12, "needle", "...h needle"),
        ("a " * 20 + "needle hay" + " z" * 20, 20, "hay needle", "...a needle hay z..."),
        ("hay " * 3 + "x " * 20 + "hay needle", 20, "needle hay", "...x x x hay needle"),
        ("00110000", 3, "000", "..."),
    ],
)
def test_excerpts(text: str, most: int, query: str, expected: str) -> None:
    """The beginning, or the part where more of the words stand."""
    assert excerpt(text, most, query) == expected


@given(st.text(max_size=80), st.integers(3, 40), st.text(max_size=12))
def test_excerpts_are_short_enough(text: str, most: int, query: str) -> None:
    """Never longer than asked for, a short text is left alone; by bytes as well."""
    assert len(excerpt(text, most, query)) <= most
    assert excerpt(text, 80, query) == text
    assert len(fitting(text, most).encode()) <= most
    assert fitting(text, 400) == text
