"""What every session service promises about events, one function a promise; `service_suites` makes tests of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from graphagent.errors import ServiceError, SessionExists, SessionNotFound, UsageError
from graphagent.ids import fresh_id
from graphagent.ledger import Boundary, ErrorInfo, Event, SessionKey, Summary, TokenUsage
from graphagent.messages import Message, ToolCall
from graphagent.services import SessionService, read_again
from graphagent.testing.service_help import asks, fresh_key, opened, refused, says

Sessions = Callable[[], SessionService]

NASTY: dict[str, Any] = {
    "texts": ["", "\0\x1f\u2028'\"\\%s?", "früh 早上好 👩‍👩‍👧", "\ufeff\ud7ff\ue000"],
    "numbers": [0, -1, 2**53 + 1, -(2**80), 0.1, 1e308, 5e-324, -0.0],
    "others": [True, False, None, [], {}, [[[]]], {"": {"a.b": {"$": 1}}}],
}
"""Plain data that a careless encoding changes."""


async def _made(sessions: SessionService, *events: Event, state: dict[str, Any] | None = None) -> SessionKey:
    key = fresh_key()
    await sessions.create(*key, state=state)
    for event in events:
        await sessions.append(key, event)
    return key


async def _texts(sessions: SessionService, key: SessionKey, **window: Any) -> list[str]:
    session = await sessions.get(key, **window)
    assert session is not None
    return [event.text for event in session.events]


async def what_is_not_there_is_refused(factory: Sessions) -> None:
    """An unknown session is None, has nothing to delete, and can't be written."""
    async with opened(factory) as sessions:
        key = fresh_key()
        summary = Summary(text="x", boundary=Boundary(), updated_at=1.0)
        assert await sessions.get(key) is None
        assert await sessions.delete(key) is False
        assert await sessions.list(key.app, key.user) == []
        for call in (
            sessions.append(key, asks("hello")),
            sessions.update_state(key, {"a": 1}),
            sessions.append_track(key, "log", [1]),
            sessions.put_summary(key, "", summary, after=None),
        ):
            assert f"'{key.session}'" in await refused(SessionNotFound, call)


async def a_session_has_an_id_of_its_own(factory: Sessions) -> None:
    """Fresh ids differ; the same id of another user or app is another session."""
    async with opened(factory) as sessions:
        key = fresh_key()
        ids = {(await sessions.create(key.app, key.user)).id for _ in range(3)}
        assert len(ids) == 3
        others = [key, key._replace(user="other"), key._replace(app=f"{key.app}-2")]
        for other in others:
            made = await sessions.create(*other)
            assert made.key == other
            await sessions.append(other, asks(other.user + other.app))
        for other in others:
            assert await _texts(sessions, other) == [other.user + other.app]


async def a_taken_id_is_refused(factory: Sessions) -> None:
    """Creating a session that is there raises SessionExists and changes nothing; spec/context case 14 differs."""
    async with opened(factory) as sessions:
        key = await _made(sessions, asks("hello"), state={"a": 1})
        assert f"'{key.session}'" in await refused(SessionExists, sessions.create(*key, state={"a": 2}))
        session = await sessions.get(key)
        assert session is not None
        assert (session.state, [event.text for event in session.events]) == ({"a": 1}, ["hello"])


async def names_that_no_database_holds_are_refused(factory: Sessions) -> None:
    """Blank names, NUL and lone surrogates are refused before anything is written."""
    async with opened(factory) as sessions:
        for bad in ("", " ", "a\0b", "a\ud800"):
            for key in (SessionKey(bad, "u", "s"), SessionKey("a", bad, "s"), SessionKey("a", "u", bad)):
                await refused(ServiceError, sessions.create(*key))
                await refused(ServiceError, sessions.get(key))
                await refused(ServiceError, sessions.append(key, asks("x")))
        key = await _made(sessions)
        await refused(ServiceError, sessions.append(key, asks("x", id="")))
        await refused(ServiceError, sessions.append_track(key, "", [1]))


async def an_event_comes_back_equal(factory: Sessions) -> None:
    """Every field of an event is read as it was written, to the last bit; so are odd names."""
    call = ToolCall(id="c1", name="look", arguments=NASTY)
    event = Event(
        kind="tool_result",
        author="agent/ü'\"",
        messages=(
            Message.user([{"type": "text", "text": "early"}, {"type": "image_url", "image_url": NASTY}]),
            Message.assistant("", tool_calls=(call,), reasoning="because\n", name="n"),
            Message.tool("7", "c1", id="m1"),
        ),
        request_id="r",
        invocation_id="i",
        parent_invocation_id="p",
        branch="a/b",
        filter_key="app/a",
        tag="t1;t2",
        timestamp=1_700_000_000.123_456_7,
        state_delta={"own": NASTY},
        usage=TokenUsage(input_tokens=1, output_tokens=2, cached_tokens=3),
        finish_reason="tool_calls",
        error=ErrorInfo(type="api_error", message="no", code="429"),
        skip_summarization=True,
        long_running_tool_ids=frozenset({"c3", "c1", "c2"}),
        interrupts=({"key": "approve", "payload": NASTY},),
        extensions={"x": NASTY},
    )
    async with opened(factory) as sessions, opened(factory) as others:
        key = SessionKey(f"app {fresh_id()}", "user:?%s'\";--", "früh 👋 ' \" % / \\ ..")
        await sessions.create(*key)
        stored = await sessions.append(key, event)
        assert stored == event
        for service in (sessions, others):
            session = await service.get(key)
            assert session is not None
            assert session.events == [event]
            assert session.events[0].numbered(0).model_dump_json() == event.model_dump_json()
            assert repr(session.state["own"]) == repr(NASTY)


async def numbers_grow_with_appends(factory: Sessions) -> None:
    """An appended event has its number in the session, the same for every reader; later ones have higher numbers,
    whatever their time, and one that comes twice keeps its own."""
    async with opened(factory) as sessions, opened(factory) as others:
        key = await _made(sessions)
        first = await sessions.append(key, asks("one", timestamp=9.0))
        await others.append_track(key, "log", [1, 2])
        await sessions.append(key, Event(state_delta={"k": 1}))
        second = await others.append(key, says("two", timestamp=3.0))
        again = await sessions.append(key, first.numbered(7))
        assert 0 < first.seq < second.seq
        assert again.seq == first.seq
        for service in (sessions, others):
            session = await service.get(key)
            assert session is not None
            assert [event.seq for event in session.events] == [first.seq, second.seq]


async def data_that_would_change_is_refused(factory: Sessions) -> None:
    """What JSON can't hold is refused with its place and nothing is written; a tuple becomes a list."""
    bad: list[Any] = [{1, 2}, b"x", object(), {1: 2}, float("nan"), float("inf"), "\ud800", asks("x")]
    async with opened(factory) as sessions:
        key = await _made(sessions)
        for value in bad:
            for fields in ({"state_delta": {"a": [value]}}, {"extensions": {"a": [value]}}):
                text = await refused(ServiceError, sessions.append(key, asks("x", **fields)))
                assert "a" in text
            await refused(ServiceError, sessions.update_state(key, {"a": [value]}))
            await refused(ServiceError, sessions.append_track(key, "log", [1, value]))
        await refused(ServiceError, sessions.append(key, asks("\ud800")))
        await refused(ServiceError, sessions.append(key, asks("x", timestamp=float("nan"))))
        session = await sessions.get(key)
        assert session is not None
        assert (session.events, session.state, session.tracks) == ([], {}, {})
        stored = await sessions.append(key, asks("x", state_delta={"a": (1, (2,))}))
        assert stored.state_delta == {"a": [1, [2]]}


async def partial_events_are_refused(factory: Sessions) -> None:
    """A piece of text that is still coming is never stored (spec/context case 6); of one that brings state the state
    is, and the whole event of the same id still has its place."""
    async with opened(factory) as sessions:
        key = await _made(sessions, asks("hello"))
        event = Event(author="agent", partial=True, delta="h")
        assert event.id in await refused(ServiceError, sessions.append(key, event))
        await sessions.append(key, event.model_copy(update={"state_delta": {"a": 1}}))
        session = await sessions.get(key)
        assert session is not None
        assert (len(session.events), session.state) == (1, {"a": 1})
        await sessions.append(key, says("hi", id=event.id))
        assert await _texts(sessions, key) == ["hello", "hi"]


async def an_event_without_content_changes_the_state_only(factory: Sessions) -> None:
    """Events and their number stay, state and time of change move (spec/context case 7)."""
    async with opened(factory) as sessions:
        key = await _made(sessions, asks("hello"))
        before = await sessions.get(key)
        await anyio.sleep(0.002)
        await sessions.append(key, Event(kind="state", author="agent", state_delta={"a": 1}))
        await sessions.append(key, Event(kind="completion", author="app"))
        after = await sessions.get(key)
        assert before is not None
        assert after is not None
        assert (after.events, after.state) == (before.events, {"a": 1})
        assert after.updated_at > before.updated_at


async def an_event_is_there_once(factory: Sessions) -> None:
    """A second append with the same id adds nothing, changes no state, and returns what is stored (case 18)."""
    async with opened(factory) as sessions, opened(factory) as others:
        key = await _made(sessions)
        first = await sessions.append(key, asks("one", state_delta={"a": 1}))
        silent = await sessions.append(key, Event(kind="state", state_delta={"b": 1}))
        await sessions.update_state(key, {"a": 2, "b": 2})
        for service in (sessions, others):
            assert await service.append(key, first) == first
            assert await service.append(key, first.model_copy(update={"messages": ()})) == first
            assert await service.append(key, silent) == silent
            session = await service.get(key)
            assert session is not None
            assert (session.events, session.state) == ([first], {"a": 2, "b": 2})
        other = key._replace(session="another")
        await sessions.create(*other)
        assert await sessions.append(other, first) == first
        assert await _texts(others, other) == ["one"]


async def many_bring_the_same_event(factory: Sessions) -> None:
    """Of writers that bring one event at the same moment, all succeed and one adds it."""
    event = asks("one", state_delta={"a": 1})
    found = []
    async with opened(factory) as sessions, opened(factory) as others, anyio.create_task_group() as tasks:
        key = await _made(sessions)

        async def bring(service: SessionService) -> None:
            found.append(await service.append(key, event))
            assert await _texts(service, key) == ["one"]

        for service in (sessions, others) * 4:
            tasks.start_soon(bring, service)
    assert found == [event] * 8


async def order_is_kept(factory: Sessions) -> None:
    """Writers side by side on two handles lose and double nothing; each keeps its order, all readers see one order."""
    async with opened(factory) as sessions, opened(factory) as others:
        key = await _made(sessions, asks("start"))

        async def write(service: SessionService, name: str) -> None:
            for number in range(10):
                await service.append(key, says(f"{name} {number}", state_delta={name: number, "all": name}))

        async with anyio.create_task_group() as tasks:
            for place, service in enumerate((sessions, others) * 3):
                tasks.start_soon(write, service, f"w{place}")
        found = await _texts(sessions, key)
        assert found == await _texts(others, key)
        for place in range(6):
            assert [text for text in found if text.startswith(f"w{place} ")] == [f"w{place} {n}" for n in range(10)]
        assert len(found) == 61
        session = await others.get(key)
        assert session is not None
        assert {name: value for name, value in session.state.items() if name != "all"} == {f"w{n}": 9 for n in range(6)}
        assert session.state["all"] == found[-1].partition(" ")[0]


async def a_window_begins_with_a_question(factory: Sessions) -> None:
    """`last` and `since` never leave an answer without a question in front (spec/context cases 8 to 11)."""
    texts = ["u1", "a1", "u2", "a2", "a3"]
    events = [(asks if text[0] == "u" else says)(text, timestamp=1000.0 + number) for number, text in enumerate(texts)]
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, texts),
        ({"last": 1}, ["u2", "a3"]),
        ({"last": 2}, ["u2", "a2", "a3"]),
        ({"last": 3}, ["u2", "a2", "a3"]),
        ({"last": 4}, ["u2", "a2", "a3"]),
        ({"last": 5}, texts),
        ({"last": 99}, texts),
        ({"last": 0}, []),
        ({"since": 1001.0}, ["u2", "a2", "a3"]),
        ({"since": 1000.0}, texts),
        ({"since": 1003.0}, ["u2", "a2", "a3"]),
        ({"since": 9999.0}, ["u2"]),
        ({"since": 1000.0, "last": 1}, ["u2", "a3"]),
        ({"since": 1004.0, "last": 3}, ["u2", "a3"]),
    ]
    async with opened(factory) as sessions:
        key = await _made(sessions, *events[:3], Event(kind="state", state_delta={"a": 1}), *events[3:])
        for wanted, expected in cases:
            assert await _texts(sessions, key, **wanted) == expected, wanted
        silent = await _made(sessions, says("hello"), says("anyone?"))
        assert await _texts(sessions, silent) == []
        assert await _texts(sessions, silent, last=1) == []
        await sessions.append(silent, asks("yes"))
        assert await _texts(sessions, silent) == ["yes"]
        await refused(UsageError, sessions.get(key, last=-1))


async def equal_times_are_no_conflict(factory: Sessions) -> None:
    """Fifty events of one instant, the session read between them, are all there in order (dev case C148)."""
    async with opened(factory) as sessions, opened(factory) as others:
        key = await _made(sessions)
        for number in range(50):
            await (sessions, others)[number % 2].append(key, asks(str(number), timestamp=1000.0))
            assert len(await _texts(others, key)) == number + 1
        assert await _texts(sessions, key) == [str(number) for number in range(50)]


async def a_copy_is_read_on(factory: Sessions) -> None:
    """Reading again what somebody holds gives what `get` gives, whatever of the session the copy has: all of it, a
    window, all but something in the middle, or one of that name from before. (`RefreshableSessions` read less.)"""
    async with opened(factory) as sessions, opened(factory) as others:
        key = await _made(sessions, says("before"), *(asks(str(number)) for number in range(5)))
        copies = [await sessions.get(key), await sessions.get(key, last=2), await sessions.get(key, last=0)]
        other = await others.append(key, says("of another", state_delta={"n": 1}))
        mine = await sessions.append(key, asks("mine"))
        await others.append_track(key, "log", [1])
        await others.append(key, Event(author="agent", state_delta={"n": 2}))
        for copy in [*copies, await sessions.get(key)]:
            assert copy is not None
            events = list(copy.events)
            for more in ([], [mine], [other, mine], [other]):
                copy.events[:] = [*events, *more]
                assert await read_again(sessions, copy) == await others.get(key)
        known = await sessions.get(key)
        assert known is not None
        await others.delete(key)
        assert await read_again(sessions, known) is None
        await others.create(*key)
        for number in range(len(known.events)):
            await others.append(key, asks(f"new {number}", id=known.events[number].id))
        assert await read_again(sessions, known) == await others.get(key)


CASES = (
    what_is_not_there_is_refused,
    a_session_has_an_id_of_its_own,
    a_taken_id_is_refused,
    names_that_no_database_holds_are_refused,
    an_event_comes_back_equal,
    numbers_grow_with_appends,
    data_that_would_change_is_refused,
    partial_events_are_refused,
    an_event_without_content_changes_the_state_only,
    an_event_is_there_once,
    many_bring_the_same_event,
    order_is_kept,
    a_window_begins_with_a_question,
    equal_times_are_no_conflict,
    a_copy_is_read_on,
)
