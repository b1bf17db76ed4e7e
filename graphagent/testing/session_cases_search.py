"""What session services promise that find events by what was said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphagent.errors import ServiceError, UsageError
from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message, ToolCall
from graphagent.services import SessionQuery
from graphagent.testing.service_help import asks, fresh_key, opened, refused, says

Sessions = Callable[[], Any]


async def _made(sessions: Any, *events: Event, key: SessionKey | None = None) -> SessionKey:
    key = key or fresh_key()
    await sessions.create(*key)
    for event in events:
        await sessions.append(key, event)
    return key


async def _first(sessions: Any, key: SessionKey, text: str, **fields: Any) -> str | None:
    """The text of the best hit."""
    found = await sessions.search(key.app, key.user, SessionQuery(text, **fields))
    return found[0].event.text if found else None


async def what_was_appended_is_found_at_once(factory: Sessions) -> None:
    """By other forms of its words, as it is stored, with its session; what has none of the words around isn't."""
    async with opened(factory) as sessions:
        key = await _made(sessions, asks("the certificate serial is 42"))
        [hit] = await sessions.search(key.app, key.user, SessionQuery("Which SERIALS have the certificates?"))
        session = await sessions.get(key)
        assert session is not None
        assert (hit.key, hit.event, hit.event.seq) == (key, session.events[0], 1)
        assert 0 < hit.score <= 1
        assert await _first(sessions, key, "banana") is None


async def the_best_is_first(factory: Sessions) -> None:
    """An event with more of the words, and rarer ones, is before others; there are no more hits than asked for."""
    async with opened(factory) as sessions:
        filler = [says(f"we talk about the weather number {n}") for n in range(30)]
        key = await _made(sessions, *filler[:15], asks("the blue door has code 77"), *filler[15:])
        found = await sessions.search(key.app, key.user, SessionQuery("code of the blue door, number", limit=3))
        assert found[0].event.text == "the blue door has code 77"
        assert len(found) == 3
        scores = [hit.score for hit in found]
        assert scores == sorted(scores, reverse=True)
        assert await sessions.search(key.app, key.user, SessionQuery("code blue door", min_score=1.01)) == []


async def words_that_say_nothing_find_nothing(factory: Sessions) -> None:
    """A blank text, stop words only, signs only; a limit of none is refused."""
    async with opened(factory) as sessions:
        key = await _made(sessions, asks("what is it and who was that?"))
        for text in ("", "  \n", "what is it", "?!", '"'):
            assert await _first(sessions, key, text) is None
        await refused(UsageError, sessions.search(key.app, key.user, SessionQuery("x", limit=0)))
        await refused(ServiceError, sessions.search("", key.user, SessionQuery("x")))


async def a_query_has_no_syntax(factory: Sessions) -> None:
    """Quotes, operators, columns and wildcards of full-text languages are only signs between words."""
    async with opened(factory) as sessions:
        key = await _made(sessions, asks("red apples"), asks("green pears"))
        for text in (
            '"red',
            "red AND NOT red",
            "words:red*",
            "(red | ",
            "red' OR 1=1 --",
            "NEAR(red, 2)",
            "^red &!",
            "%red_\\",
        ):
            assert await _first(sessions, key, text) == "red apples", text


async def only_the_users_own_sessions_are_searched(factory: Sessions) -> None:
    """Never those of another user or app, whatever the query says."""
    async with opened(factory) as sessions:
        key = await _made(sessions, asks("my secret is pineapple"))
        for other in (key._replace(user="other"), key._replace(app=f"{key.app}-2")):
            await _made(sessions, asks("nothing here"), key=other)
            assert await _first(sessions, other, "secret pineapple") is None
            assert await _first(sessions, other, "secret pineapple", session=key.session) is None
            assert await _first(sessions, other, "nothing here") == "nothing here"


async def a_query_says_which_sessions(factory: Sessions) -> None:
    """All of the user's, one, or all but one; a session that isn't there has nothing."""
    async with opened(factory) as sessions:
        key = await _made(sessions, asks("apples in session one"))
        other = await _made(sessions, asks("apples in session two"), key=fresh_key(key.app))

        async def found(**fields: Any) -> set[str]:
            hits = await sessions.search(key.app, key.user, SessionQuery("apples", **fields))
            return {hit.key.session for hit in hits}

        assert await found() == {key.session, other.session}
        assert await found(session=other.session) == {other.session}
        assert await found(not_in=other.session) == {key.session}
        assert await found(session=key.session, not_in=key.session) == set()
        assert await found(session="nowhere") == set()
        assert await found(not_in="nowhere") == {key.session, other.session}


async def a_query_says_which_events(factory: Sessions) -> None:
    """Those that a filter key sees, up to a number, of some roles."""
    async with opened(factory) as sessions:
        key = await _made(
            sessions,
            asks("apples one"),
            says("apples two", filter_key="app/a"),
            says("apples three", filter_key="app/ab"),
            Event(author="t", messages=(Message.tool("apples four", "c", name="t"),), filter_key="app/a/b"),
        )

        async def found(**fields: Any) -> set[str]:
            query = SessionQuery("apples", session=key.session, **fields)
            return {hit.event.text.split()[1] for hit in await sessions.search(key.app, key.user, query)}

        assert await found() == {"one", "two", "three", "four"}
        assert await found(filter_key="app/a") == {"one", "two", "four"}
        assert await found(filter_key="app/a/b") == {"one", "two", "four"}
        assert await found(filter_key="app") == {"one", "two", "three", "four"}
        assert await found(until=2) == {"one", "two"}
        assert await found(until=0) == set()
        assert await found(roles=frozenset({"user"})) == {"one"}
        assert await found(roles=frozenset({"tool"})) == {"four"}
        assert await found(roles=frozenset()) == set()


async def what_nobody_reads_is_not_found(factory: Sessions) -> None:
    """Calls of tools, reasoning and state are not; system messages only if their role is asked for."""
    async with opened(factory) as sessions:
        call = ToolCall(id="1", name="apples", arguments={"apples": "apples"})
        key = await _made(
            sessions,
            Event(author="a", messages=(Message.assistant("apples", tool_calls=(call,)),)),
            Event(author="a", messages=(Message.assistant("fine", reasoning="apples"),)),
            Event(author="a", state_delta={"apples": "apples"}),
            Event(author="a", messages=(Message.system("apples"),)),
        )
        assert await _first(sessions, key, "apples") is None
        assert await _first(sessions, key, "apples", roles=frozenset({"system"})) == "apples"


async def what_is_removed_is_not_found(factory: Sessions) -> None:
    """A deleted session is gone at once, and one of the same name begins empty."""
    async with opened(factory) as sessions:
        key = await _made(sessions, asks("apples"))
        await sessions.delete(key)
        assert await _first(sessions, key, "apples") is None
        await _made(sessions, asks("pears"), key=key)
        assert await _first(sessions, key, "apples") is None
        assert await _first(sessions, key, "pears") == "pears"


async def an_event_is_found_once(factory: Sessions) -> None:
    """Appending it again, or one that is refused, changes nothing of what is found."""
    async with opened(factory) as sessions:
        event = asks("apples")
        key = await _made(sessions, event, event)
        await refused(
            ServiceError, sessions.append(key, Event(author="u", messages=(Message.user("x"),), state_delta={"a": {1}}))
        )
        found = await sessions.search(key.app, key.user, SessionQuery("apples x"))
        assert [hit.event.id for hit in found] == [event.id]


async def two_characters_of_chinese_are_found(factory: Sessions) -> None:
    """A word of two characters in one of 200 messages without blanks, and one character alone."""
    async with opened(factory) as sessions:
        filler = [asks(f"今天天气很好我们去公园散步第{n}次") for n in range(200)]
        key = await _made(sessions, *filler[:120], asks("服务器的证书昨天过期了"), asks("他爱喝茶"), *filler[120:])
        assert await _first(sessions, key, "证书") == "服务器的证书昨天过期了"
        assert await _first(sessions, key, "茶") == "他爱喝茶"
        assert await _first(sessions, key, "我的证书在哪里") == "服务器的证书昨天过期了"


async def a_speaker_is_found_by_name(factory: Sessions) -> None:
    """Where the query names who speaks, what that person said comes first."""
    async with opened(factory) as sessions:
        key = await _made(
            sessions,
            asks("Bob: the budget is too small"),
            asks("Ann: the budget is fine"),
            asks("[Turn 3] Carol: the budget grows"),
        )
        for name in ("Ann", "Bob", "Carol"):
            text = await _first(sessions, key, f"What did {name} think of the budget?")
            assert text is not None
            assert f"{name}:" in text
        assert await _first(sessions, key, "carol") == "[Turn 3] Carol: the budget grows"


CASES = (
    what_was_appended_is_found_at_once,
    the_best_is_first,
    words_that_say_nothing_find_nothing,
    a_query_has_no_syntax,
    only_the_users_own_sessions_are_searched,
    a_query_says_which_sessions,
    a_query_says_which_events,
    what_nobody_reads_is_not_found,
    what_is_removed_is_not_found,
    an_event_is_found_once,
    two_characters_of_chinese_are_found,
    a_speaker_is_found_by_name,
)
