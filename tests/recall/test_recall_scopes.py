"""Which events `session_search` finds: scopes, what a summary hides, and what is tried when too little is found."""

from __future__ import annotations

from typing import Any

import pytest
from support.recalling import APP, KEY, USER, Canned, hit, invocation, result, said, stored, summary, use

from graphagent.errors import ServiceError, ToolError
from graphagent.ledger import Boundary, Event, SessionKey, Summary
from graphagent.services import SessionQuery
from runner.recall import Searcher, Wanted
from runner.recall.hidden import hidden_from
from runner.recall.search import in_session
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio

OTHER = SessionKey(APP, USER, "s2")


def talk(count: int = 6) -> list[Event]:
    """Events e1, e2, ... of a session."""
    return [said(f"e{n}", f"word{n} said", role="user" if n % 2 else "assistant", at=n) for n in range(1, count + 1)]


async def ids(sessions: Canned, text: str = "word", scope: Any = "current_hidden", **fields: Any) -> list[str]:
    """The ids of what is found, best first."""
    wanted = Wanted(text, scope, **fields)
    return [found.event.id for found in await Searcher(sessions, KEY, APP).find(wanted)]


async def test_c091_without_a_summary_nothing_is_hidden() -> None:
    """Nothing is found, and the service's search is not called; also for a boundary that covers nothing."""
    sessions = Canned(lambda query: [hit(event) for event in events])
    events = await stored(sessions, talk())
    assert await ids(sessions) == []
    await sessions.put_summary(KEY, APP, summary(0), after=None)
    assert await ids(sessions) == []
    assert sessions.queries == []


async def test_c092_the_boundary_is_the_end_of_what_is_hidden() -> None:
    """A hit behind the boundary doesn't count, whatever the service says; the one at the boundary does."""
    sessions = Canned(lambda query: [hit(event, 1 / event.seq) for event in events])
    events = await stored(sessions, talk(), covered=3)
    assert await ids(sessions) == ["e1", "e2", "e3"]
    assert sessions.queries[0] == SessionQuery(
        "word", session="s1", filter_key=APP, until=3, limit=sessions.queries[0].limit
    )


async def test_c092_a_boundary_from_elsewhere_goes_by_time() -> None:
    """Without a number what is older is hidden, and the event that the boundary names."""
    sessions = Canned(lambda query: [hit(event, 1 / event.seq) for event in events])
    events = await stored(sessions, talk())
    told = summary(0, cutoff_at=3.0, last_event_id="e3")
    await sessions.put_summary(KEY, APP, told, after=None)
    assert await ids(sessions) == ["e1", "e2", "e3"]
    assert sessions.queries[0].until is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("word2 said", ["e2"]), ("word", ["e3", "e2", "e1"]), ("word4", []), ("word2 absent", ["e2"])],
)
async def test_c093_words_are_looked_for_when_the_search_finds_nothing(text: str, expected: list[str]) -> None:
    """The hidden events are read and their words compared; those behind the boundary stay out of it."""
    sessions = Canned()
    await stored(sessions, talk(), covered=3)
    assert await ids(sessions, text) == expected
    assert sessions.queries


async def test_c093_the_score_of_the_scan() -> None:
    """The whole query as it stands gives 1.9."""
    sessions = Canned()
    await stored(sessions, [said("e1", "the certificate serial is 42"), said("e2", "and then")], covered=1)
    found = await use("session_search", await invocation(sessions), query="certificate serial", min_score=0.1)
    assert found["scope"] == "current_hidden"
    assert [(one["event_id"], one["score"]) for one in found["results"]] == [("e1", 1.9)]


@pytest.mark.parametrize(
    ("given", "limit", "scope", "mode"),
    [
        pytest.param({"top_k": 0}, 5, "current_hidden", "hybrid", id="c094 zero"),
        pytest.param({"top_k": -3}, 5, "current_hidden", "hybrid", id="c094 negative"),
        pytest.param({"top_k": 50}, 10, "current_hidden", "hybrid", id="c094 fifty"),
        pytest.param(
            {"top_k": 7, "scope": "galaxy", "mode": "dense"}, 7, "current_hidden", "hybrid", id="c094 unknown"
        ),
        pytest.param({"scope": "all_sessions", "mode": "words"}, 5, "all_sessions", "words", id="c094 known"),
    ],
)
def test_c094_what_a_model_asks_for(given: dict[str, Any], limit: int, scope: str, mode: str) -> None:
    """Numbers outside of the range are taken as the nearest that makes sense, unknown words as the default."""
    wanted = Wanted.of(" a \n b ", **given)
    assert wanted == Wanted("a b", scope, limit, mode, further=wanted.further)  # type: ignore[arg-type]
    assert wanted.most == 10 if given.get("top_k", 0) <= 0 else limit


async def test_c095_all_sessions_are_merged() -> None:
    """What is hidden here and what was said elsewhere: each event once, the best first, so many as were asked for."""
    events = talk()

    def answer(query: SessionQuery) -> list[Any]:
        here = [hit(events[n], score) for n, score in ((0, 0.4), (1, 0.9), (0, 0.6), (5, 1.0))]
        return here if query.session else [hit(said("o1", "x"), 0.8, OTHER), hit(said("o1", "x"), 0.7, OTHER)]

    sessions = Canned(answer)
    events = await stored(sessions, events, covered=3)
    assert await ids(sessions, scope="all_sessions") == ["e2", "o1", "e1"]
    assert await ids(sessions, scope="all_sessions", limit=2) == ["e2", "o1"]
    assert [query.not_in for query in sessions.queries[:2]] == [None, "s1"]


async def test_c095_other_sessions_are_the_users_own() -> None:
    """The current session is not among the others, and nobody else's session ever is, whatever a service returns."""
    keys = [KEY, OTHER, SessionKey(APP, "bob", "s2"), SessionKey("app2", USER, "s2")]
    sessions = Canned(lambda query: [hit(said(f"x{n}", "word"), 0.5, key) for n, key in enumerate(keys)])
    await stored(sessions, talk(), covered=6)
    assert await ids(sessions, scope="other_sessions") == ["x1"]
    assert await ids(sessions, scope="current_session") == ["x0"]
    assert (sessions.queries[0].not_in, sessions.queries[0].until) == ("s1", None)


async def test_c096_enough_hits_need_no_further_query() -> None:
    """A full answer, or two hits for a plain question: nothing else is asked."""
    sessions = Canned(lambda query: [hit(event) for event in events])
    events = await stored(sessions, talk(), covered=6)
    assert len(await ids(sessions, "alpha, bravo and charlie", limit=5)) == 5
    sessions.answer = lambda query: [hit(event) for event in events[:2]]
    await ids(sessions, "alpha bravo charlie")
    assert [query.text for query in sessions.queries] == ["alpha, bravo and charlie", "alpha bravo charlie"]


async def test_c096_clauses_are_asked_for_when_a_compound_question_finds_too_little() -> None:
    """The parts are asked one after the other, until there are enough hits."""
    sessions = Canned(lambda query: [hit(events[len(sessions.queries) - 1], 0.5)])
    events = await stored(sessions, talk(), covered=6)
    assert await ids(sessions, "alpha bravo and charlie delta", limit=3) == ["e1", "e3", "e2"]
    assert [query.text for query in sessions.queries] == [
        "alpha bravo and charlie delta",
        "alpha bravo",
        "charlie delta",
    ]


async def test_c096_the_first_part_that_finds_something_is_enough_after_nothing() -> None:
    """A question that finds nothing is broadened until something is found."""
    sessions = Canned(lambda query: [hit(events[0])] if query.text == "bravo charlie delta echo" else [])
    events = await stored(sessions, talk(), covered=6)
    assert await ids(sessions, "Alpha bravo charlie delta echo foxtrot") == ["e1"]
    assert len(sessions.queries) == 4


async def test_c096_an_error_of_a_further_query_is_an_error() -> None:
    """A search that fails half way doesn't pass half an answer off as a whole one."""

    def answer(query: SessionQuery) -> list[Any]:
        if query.text != "alpha and bravo":
            raise ServiceError("the database is gone")
        return [hit(events[0])]

    sessions = Canned(answer)
    events = await stored(sessions, talk(), covered=6)
    with pytest.raises(ServiceError, match="the database is gone"):
        await ids(sessions, "alpha and bravo")


async def test_a_part_is_worth_what_it_asks() -> None:
    """A service's scores are for one search: what fits a part of the question well doesn't come before what fits all
    of it, and a score too low after that doesn't count."""
    found = {"alpha bravo charlie and delta": (0, 0.8), "alpha bravo charlie": (1, 1.0), "delta": (2, 1.0)}
    sessions = Canned(lambda query: [hit(events[n], score) for n, score in [found.get(query.text, (0, 0.1))]])
    events = await stored(sessions, talk(), covered=6)
    assert await ids(sessions, "alpha bravo charlie and delta") == ["e1", "e2", "e3"]
    assert await ids(sessions, "alpha bravo charlie and delta", min_score=0.5) == ["e1", "e2"]


async def test_the_question_is_no_answer_to_itself() -> None:
    """In the current session the question of the turn that goes on is left out, and so is what the tools found."""
    sessions = Canned(lambda query: [hit(event) for event in events])
    events = await stored(
        sessions,
        [
            said("e1", "the serial is 42", request_id="r1", at=1),
            result("e2", "c1", '{"results": ["the serial is 42"]}', name="session_search", timestamp=2.0),
            result("e3", "c2", "serial 43", timestamp=3.0),
            said("e4", "what is the serial?", request_id="r2", at=4),
        ],
    )
    found = await Searcher(sessions, KEY, APP, "r2").find(Wanted("serial", "current_session"))
    assert [one.event.id for one in found] == ["e3", "e1"]
    sessions.answer = lambda query: ()
    found = await Searcher(sessions, KEY, APP, "r2").find(Wanted("serial", "current_session"))
    assert [one.event.id for one in found] == ["e3", "e1"]


def test_which_summary_hides() -> None:
    """That of the reader's key; else those below it, each what it covers; else that of the whole session. One without
    text hides nothing."""
    summaries = {
        "": summary(9, ""),
        "app/a": summary(2, "app/a"),
        "app/b": summary(4, "app/b"),
        "apple": summary(7, "apple"),
    }
    below = hidden_from("app", summaries)
    assert (below.until, len(below.boundaries)) == (4, 2)
    assert below.covers(said("x", "", key="app/b", seq=3))
    assert not below.covers(said("x", "", key="app/a", seq=3))
    assert not below.covers(said("x", "", key="app", seq=1))
    assert hidden_from("app/a", summaries).until == 2
    assert hidden_from("", summaries).until == hidden_from("other", summaries).until == 9
    blank = Summary(text=" ", boundary=Boundary(filter_key="app/a", seq=2), updated_at=1.0)
    assert hidden_from("app/a", {**summaries, "app/a": blank}).until == 9
    assert hidden_from("app", {}).boundaries == ()


async def test_blank_queries_ask_nobody() -> None:
    """A blank query finds nothing without a search, whatever the scope."""
    sessions = Canned()
    await stored(sessions, talk(), covered=6)
    found = await use("session_search", await invocation(sessions), query=" \n", scope="all_sessions")
    assert found == {"scope": "current_hidden", "results": []}
    assert sessions.queries == []


async def test_what_a_person_searches() -> None:
    """One session, or all of a user; what the tools found is left out of both."""
    events = [said("e1", "blue"), result("e2", "c1", "blue", name="session_load")]
    sessions = Canned(lambda query: [hit(event) for event in events])
    await stored(sessions, events)
    for session in ("s1", None):
        found = await in_session(sessions, APP, USER, session, Wanted("blue", limit=20))
        assert [one.event.id for one in found] == ["e1"]
    assert await in_session(sessions, APP, USER, None, Wanted("")) == []


async def test_a_service_that_cannot_search() -> None:
    """The model is told, instead of an empty result that would say that nothing was said."""

    class Plain:
        """A session service with nothing but the sessions."""

        def __init__(self, sessions: InMemorySessions) -> None:
            self.get = sessions.get

    sessions = InMemorySessions()
    await stored(sessions, talk())
    plain: Any = Plain(sessions)
    with pytest.raises(ToolError, match="Plain can't search sessions"):
        await use("session_search", await invocation(plain), query="x")
    with pytest.raises(ToolError, match="Plain can't read around an event"):
        await use("session_load", await invocation(plain), event_id="e1")
    with pytest.raises(ToolError, match="outside of an agent's run"):
        await use("session_search", None, query="x")
    with pytest.raises(ToolError, match="without a session"):
        await use("session_load", await invocation(sessions, key=OTHER), event_id="e1")
