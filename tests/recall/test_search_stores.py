"""Search in sessions: what the conformance suite can't see: the index itself, several processes, one order for all."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.databases import postgres_schema
from support.hand_clock import HandClock
from support.service_tables import counts, query

from graphagent.errors import ServiceError
from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message
from graphagent.services import SearchableSessions, SessionQuery, SummaryLeases, WindowedSessions
from graphagent.testing.forks import ForkServer
from graphagent.testing.service_help import asks, says
from runner.sessions import InMemorySessions, SqlSessions, Ttl
from runner.sessions.search_text import HEAD, TAIL

pytestmark = pytest.mark.anyio
KEY = SessionKey("app", "user", "s")


@pytest.fixture
def url(fresh_database: str) -> str:
    """The url of a database of each kind that nobody else uses."""
    return fresh_database


async def texts(sessions: Any, text: str, **fields: Any) -> list[str]:
    """What is found for the user of KEY."""
    return [hit.event.text for hit in await sessions.search(KEY.app, KEY.user, SessionQuery(text, **fields))]


def index_rows(url: str) -> int:
    """How many messages have apples, as the index itself has it."""
    if not url.startswith("sqlite"):
        return int(query(url, "SELECT count(*) FROM ga_search WHERE 'appl;' = ANY(ga_tokens(words, marks, ''))")[0][0])
    vocabulary = "CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, ga_search_words, row)"
    return int(query(url, vocabulary, "SELECT coalesce(sum(doc), 0) FROM temp.v WHERE term LIKE '%appl'")[0][0])


def test_all_sessions_have_the_optional_ports() -> None:
    """Sessions in memory and in databases can be searched and read around an event, and give out leases."""
    for service in (InMemorySessions(), SqlSessions("sqlite://")):
        for port in (SearchableSessions, WindowedSessions, SummaryLeases):
            assert isinstance(service, port)


async def test_an_append_that_fails_is_not_in_the_index(url: str) -> None:
    """Event and index are one transaction: what breaks one leaves nothing of the other."""
    async with SqlSessions(url) as sessions:
        await sessions.create(*KEY)
        query(url, "DROP TABLE ga_states", "SELECT 1")
        with pytest.raises(ServiceError):
            await sessions.append(KEY, asks("apples", state_delta={"a": 1}))
        assert "ga_search" not in counts_without_states(url)
        await sessions.append(KEY, asks("apples"))
        assert await texts(sessions, "apples") == ["apples"]


def counts_without_states(url: str) -> dict[str, int]:
    """The number of rows of events and of what they are found by."""
    found = {table: query(url, f"SELECT count(*) FROM {table}")[0][0] for table in ("ga_events", "ga_search")}
    return {table: count for table, count in found.items() if count}


async def test_a_deleted_session_leaves_nothing_in_the_index(url: str) -> None:
    """Neither rows nor words, nor leases."""
    async with SqlSessions(url) as sessions:
        for name in ("s", "t"):
            await sessions.create("app", "user", name)
            for number in range(5):
                await sessions.append(KEY._replace(session=name), asks(f"apples {number}"))
            await sessions.lease_summary(KEY._replace(session=name), "", owner="o", seconds=9)
        assert index_rows(url) == 10
        await sessions.delete(KEY)
        assert index_rows(url) == 5
        await sessions.delete(KEY._replace(session="t"))
    assert counts(url) == {}


async def test_an_expired_session_is_not_found(make: Callable[..., Any]) -> None:
    """At once, and when it is removed the index forgets it."""
    clock = HandClock()
    async with make(ttl=Ttl(session=60), clock=clock) as sessions:
        await sessions.create(*KEY)
        await sessions.append(KEY, asks("apples"))
        assert await texts(sessions, "apples") == ["apples"]
        clock.time += 61
        assert await texts(sessions, "apples") == []
        await sessions.purge()
        await sessions.create(*KEY)
        assert await texts(sessions, "apples") == []


async def test_leases_end_by_the_services_clock(make: Callable[..., Any]) -> None:
    """Who has one keeps it for its seconds, and longer if it takes it again; then others get it."""
    clock = HandClock()
    async with make(clock=clock) as sessions:
        await sessions.create(*KEY)
        assert await sessions.lease_summary(KEY, "a", owner="one", seconds=10)
        clock.time += 9
        assert not await sessions.lease_summary(KEY, "a", owner="two", seconds=10)
        assert await sessions.lease_summary(KEY, "a", owner="one", seconds=10)
        clock.time += 9
        assert not await sessions.lease_summary(KEY, "a", owner="two", seconds=10)
        clock.time += 2
        assert await sessions.lease_summary(KEY, "a", owner="two", seconds=10)


@pytest.mark.kill
async def test_what_another_process_appends_is_found_at_once(url: str) -> None:
    """Two processes write one session at the same time, a third service finds all of it, each event once."""
    async with SqlSessions(url) as sessions:
        await sessions.create(*KEY)
        with ForkServer("support.session_writer:work") as server:
            jobs = [{"what": "append", "key": list(KEY), "url": url, "who": who, "count": 20} for who in ("ab", "cd")]
            server.run(*jobs)
        found = await texts(sessions, "ab cd", limit=100)
        assert sorted(found) == sorted(f"{who} {number}" for who in ("ab", "cd") for number in range(20))
        rows = query(url, "SELECT said, words FROM ga_sessions", "SELECT said, words FROM ga_sessions")
        assert rows == [(40, 80)]


WORDS = ["apple", "pear", "river", "stone", "cloud", "budget", "meeting", "travel", "证书", "茶叶", "Ann", "Bob"]


async def test_every_store_finds_the_same_in_the_same_order(tmp_path: Path) -> None:
    """For the same sessions, events and queries: same hits, same order, same scores."""
    draw = random.Random(7)
    with postgres_schema() as postgres:
        stores: list[Any] = [InMemorySessions(), SqlSessions(f"{tmp_path}/a.db"), SqlSessions(postgres)]
        for number in range(6):
            for store in stores:
                await store.create("app", "user", f"s{number}")
            for _ in range(draw.randrange(5, 60)):
                text = " ".join(draw.choices(WORDS, k=draw.randrange(1, 12)))
                event = asks(f"{draw.choice(['', 'Ann: '])}{text}", filter_key=draw.choice(["", "a", "a/b"]))
                for store in stores:
                    await store.append(SessionKey("app", "user", f"s{number}"), event)
        for _ in range(60):
            one = draw.choice([None, "s1"])
            asked = SessionQuery(
                " ".join(draw.choices(WORDS, k=draw.randrange(1, 6))),
                session=one,
                not_in=draw.choice([None, "s2"]),
                filter_key=draw.choice(["", "a", "a/b"]),
                until=draw.choice([None, 9]),
                limit=draw.choice([1, 5, 30]),
            )
            found = [
                [(hit.key, hit.event, hit.score) for hit in await store.search("app", "user", asked)]
                for store in stores
            ]
            assert found[0] == found[1] == found[2]
        for store in stores:
            await store.aclose()


async def test_c092_nothing_after_the_boundary_is_found(make: Callable[..., Any]) -> None:
    """`until` is a number of an event: the event at it is found, the next one isn't."""
    async with make() as sessions:
        await sessions.create(*KEY)
        for number in range(4):
            await sessions.append(KEY, Event(author="a", state_delta={"n": number}))
            await sessions.append(KEY, asks(f"apples {number}"))
        found = await sessions.search("app", "user", SessionQuery("apples", session="s", until=4, limit=9))
        assert sorted(hit.event.seq for hit in found) == [2, 4]
        assert len(await texts(sessions, "apples", session="s", until=5)) == 2
        assert len(await texts(sessions, "apples", session="s", until=8)) == 4


async def test_c095_a_session_of_many_hits_hides_no_other(make: Callable[..., Any], monkeypatch: Any) -> None:
    """Leaving out a session leaves it out before the newest places of a word are taken."""
    monkeypatch.setattr("runner.sessions.search_sql.MOST_PLACES", 10)
    monkeypatch.setattr("runner.sessions.search_memory.MOST_PLACES", 10)
    async with make() as sessions:
        for name, count in (("old", 1), ("s", 30)):
            await sessions.create("app", "user", name)
            for number in range(count):
                await sessions.append(KEY._replace(session=name), asks(f"apples {name} {number}"))
        assert await texts(sessions, "apples", not_in="s") == ["apples old 0"]
        assert "apples s 0" not in await texts(sessions, "apples", limit=50)


async def test_a_rare_filter_key_is_found_among_many(make: Callable[..., Any]) -> None:
    """One message of a branch in 600 of others that fit the words as well."""
    async with make() as sessions:
        await sessions.create(*KEY)
        for number in range(600):
            key = "app/mine" if number == 300 else "app/theirs"
            await sessions.append(KEY, says(f"apples and pears {number}", filter_key=key))
        assert await texts(sessions, "apples pears", filter_key="app/mine") == ["apples and pears 300"]


async def test_hits_of_a_long_session_keep_apart(make: Callable[..., Any]) -> None:
    """Of two places that fit, both are among the first hits, though one has many messages that fit as well."""
    async with make() as sessions:
        await sessions.create(*KEY)
        for number in range(400):
            about = "the quick fox" if number in (50, 51, 52, 53, 54, 300) else "something else"
            await sessions.append(KEY, says(f"{about}, line {number}"))
        found = await sessions.search("app", "user", SessionQuery("quick fox", limit=3))
        assert {hit.event.seq > 200 for hit in found[:3]} == {True, False}


async def test_beginning_and_end_of_a_long_result_are_found(make: Callable[..., Any]) -> None:
    """Of the result of a tool that is longer than what is indexed."""
    async with make() as sessions:
        await sessions.create(*KEY)
        long = "alpha " + "filler " * (HEAD + TAIL) + "omega"
        await sessions.append(KEY, Event(author="t", messages=(Message.tool(long, "c"),)))
        assert await texts(sessions, "alpha") == [long]
        assert await texts(sessions, "omega") == [long]


async def test_names_that_databases_refuse_are_no_obstacle(make: Callable[..., Any]) -> None:
    """An author or filter key with NUL or a lone surrogate can be appended, as before there was an index."""
    async with make() as sessions:
        await sessions.create(*KEY)
        await sessions.append(KEY, says("apples\0 pears", filter_key="a\0b"))
        assert await texts(sessions, "pears", filter_key="a\0b") == ["apples\0 pears"]
        await sessions.append(KEY, Event(author="x\0y", messages=(Message.assistant("plums"),)))
        assert "plums" in await texts(sessions, "plums")


async def test_messages_beside_the_words_come_after_those_with_them(make: Callable[..., Any]) -> None:
    """An answer that has no word of its question is found beside it."""
    async with make() as sessions:
        await sessions.create(*KEY)
        await sessions.append(KEY, asks("When does the museum open?"))
        await sessions.append(KEY, says("At nine, except on Mondays."))
        assert await texts(sessions, "museum open") == ["When does the museum open?", "At nine, except on Mondays."]
