"""Edge cases 1 to 16 and 18 of spec/context section 19, by number; what each service promises is in the suites."""

from __future__ import annotations

from typing import Any

import pytest

from graphagent.errors import ServiceError, SessionExists, SessionNotFound
from graphagent.ledger import Boundary, Event, SessionKey, Summary
from graphagent.messages import Message, ToolCall
from graphagent.testing.service_help import asks, says
from runner.sessions import Ttl

pytestmark = pytest.mark.anyio


# -- events ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [("app/a", "app/a", True), ("app/a/x", "app/a", True), ("app/b", "app/a", False), ("app/ab", "app/a", False)],
)
def test_c001_a_filter_key_matches_up_and_down(own: str, other: str, expected: bool) -> None:
    """An event is seen by its own key, ancestors and descendants, both ways; a common prefix of letters is none."""
    assert Event(filter_key=own).matches(other) is expected
    assert Event(filter_key=other).matches(own) is expected


def test_c002_an_empty_key_matches_all() -> None:
    """A reader without a key sees every event, an event without a key is seen by every reader."""
    assert Event(filter_key="app/a").matches("")
    assert Event().matches("app/a")
    assert Event().matches("")


def test_c003_only_the_filter_key_decides() -> None:
    """Events have no versions here, so the branch never stands in for the key (as in the reference's old events)."""
    assert not Event(filter_key="x", branch="app/a").matches("app/a")
    assert Event(filter_key="x", branch="app/a").matches("x")


def test_c004_a_clone_is_another_event() -> None:
    """A clone has an id of its own and shares nothing that can be changed; a new store needs no version tags."""
    call = ToolCall(id="c", name="look", arguments={"a": [1]})
    event = Event(messages=(Message.assistant("", tool_calls=(call,)),), extensions={"a": [1]})
    clone = event.clone()
    assert clone.id != event.id
    assert clone.model_copy(update={"id": event.id}) == event
    clone.messages[0].tool_calls[0].arguments["a"].append(2)
    assert event.messages[0].tool_calls[0].arguments == {"a": [1]}


def test_c005_tags_add_up() -> None:
    """Two tags are joined by a semicolon; blanks around one that is sought don't count."""
    event = Event().with_tag("t1").with_tag("t2")
    assert event.tag == "t1;t2"
    assert event.has_tag(" t2 ")
    assert not event.has_tag("t")


# -- sessions ----------------------------------------------------------------------------------------


@pytest.fixture
async def sessions(open_sessions: Any) -> Any:
    """Sessions of each kind, open while the test runs."""
    async with open_sessions() as opened:
        yield opened


@pytest.fixture
async def key(sessions: Any, app: str) -> SessionKey:
    """A new session."""
    return (await sessions.create(app, "u", "s")).key


async def texts(sessions: Any, key: SessionKey, **window: Any) -> list[str]:
    """What the events of a session say."""
    return [event.text for event in (await sessions.get(key, **window)).events]


async def test_c006_partial_events_are_not_stored(sessions: Any, key: SessionKey) -> None:
    """A piece of text is refused, so it is in no session."""
    with pytest.raises(ServiceError, match="partial"):
        await sessions.append(key, Event(partial=True, delta="hel", author="a"))
    assert await texts(sessions, key) == []


async def test_c007_state_only_events_change_the_state_only(open_sessions: Any, app: str, clock: Any) -> None:
    """State and time of change move, the number of events doesn't."""
    async with open_sessions(clock=clock) as sessions:
        key = (await sessions.create(app, "u", "s")).key
        await sessions.append(key, asks("hello"))
        clock.time += 5
        await sessions.append(key, Event(kind="state", state_delta={"a": 1}))
        session = await sessions.get(key)
        assert (len(session.events), session.state, session.updated_at) == (1, {"a": 1}, clock.time)


async def test_c008_without_a_question_there_are_no_events(sessions: Any, key: SessionKey) -> None:
    """A session in which only an agent spoke is read without events; what it said before the first question stays out
    of sight."""
    await sessions.append(key, says("welcome"))
    assert await texts(sessions, key) == []
    await sessions.append(key, asks("hello"))
    assert await texts(sessions, key) == ["hello"]


async def test_c009_the_last_question_is_put_in_front(sessions: Any, key: SessionKey) -> None:
    """Windows of u1 a1 u2 a2 a3: two and three and four events each begin with u2."""
    for text in ("u1", "a1", "u2", "a2", "a3"):
        await sessions.append(key, asks(text) if text[0] == "u" else says(text))
    for last in (2, 3, 4):
        assert await texts(sessions, key, last=last) == ["u2", "a2", "a3"]


async def test_c010_a_time_after_all_events_leaves_the_last_question(sessions: Any, key: SessionKey) -> None:
    """Nothing is that new, so only the last thing that a person said is handed out."""
    for number, text in enumerate(("u1", "a1", "u2", "a2")):
        await sessions.append(key, (asks if text[0] == "u" else says)(text, timestamp=1000.0 + number))
    assert await texts(sessions, key, since=2000.0) == ["u2"]


async def test_c011_no_window_begins_with_an_answer(sessions: Any, key: SessionKey) -> None:
    """Whatever the number of events, the first is a person's; a stored answer stays stored. Nothing is ever trimmed."""
    result = Event(author="a", messages=(Message.tool("42", "c1"),))
    call = Event(author="a", messages=(Message.assistant("", tool_calls=(ToolCall(id="c1", name="look"),)),))
    await sessions.append(key, says("welcome"))
    for event in (asks("u1"), call, result, says("a1")):
        await sessions.append(key, event)
    for last in range(1, 6):
        assert (await sessions.get(key, last=last)).events[0].is_user
    assert (await sessions.get(key)).events[1:3] == [call, result]


async def test_c012_keys_of_other_scopes_are_refused(sessions: Any, key: SessionKey) -> None:
    """A user's state takes no `app:` and no `temp:` key. The state of a session takes `user:` keys, which go to the
    user (the reference refuses them), and `temp:` keys, which are not stored."""
    for bad in ("app:x", "temp:x"):
        with pytest.raises(ServiceError, match=bad):
            await sessions.update_shared_state(key.app, key.user, {bad: 1})
    await sessions.update_state(key, {"user:x": 1, "temp:x": 2})
    assert await sessions.shared_state(key.app, key.user) == {"x": 1}
    assert (await sessions.get(key)).state == {"user:x": 1}


async def test_c013_app_state_is_in_every_session_of_the_app(sessions: Any, key: SessionKey) -> None:
    """`app:k` is read by another user's session, and as `k` in the state of the app."""
    await sessions.append(key, asks("x", state_delta={"app:k": 1}))
    other = await sessions.create(key.app, "other")
    assert other.state == {"app:k": 1}
    assert await sessions.shared_state(key.app) == {"k": 1}


async def test_c014_creating_a_session_again_is_an_error(open_sessions: Any, app: str, clock: Any) -> None:
    """Nothing is overwritten (the reference does); only where the old one has expired a new one begins, without old
    events and summaries."""
    async with open_sessions(clock=clock, ttl=Ttl(session=10)) as sessions:
        key = (await sessions.create(app, "u", "s")).key
        await sessions.append(key, asks("old", state_delta={"a": 1}))
        summary = Summary(text="old", boundary=Boundary(), updated_at=1.0)
        await sessions.put_summary(key, "", summary, after=None)
        with pytest.raises(SessionExists):
            await sessions.create(*key)
        assert await texts(sessions, key) == ["old"]
        clock.time += 10
        again = await sessions.create(*key)
        assert (again.events, again.summaries, again.state) == ([], {}, {})


async def test_c015_an_expired_session_is_gone(open_sessions: Any, app: str, clock: Any) -> None:
    """It is read as None and can't be written. Reading doesn't prolong its life, writing does."""
    async with open_sessions(clock=clock, ttl=Ttl(session=10)) as sessions:
        key = (await sessions.create(app, "u", "s")).key
        clock.time += 9
        await sessions.append(key, asks("hello"))
        clock.time += 9
        assert await texts(sessions, key) == ["hello"]
        clock.time += 1
        assert await sessions.get(key) is None
        assert await sessions.list(app, "u") == []
        for call in (
            sessions.append(key, asks("late")),
            sessions.update_state(key, {"a": 1}),
            sessions.append_track(key, "log", [1]),
        ):
            with pytest.raises(SessionNotFound):
                await call
        assert await sessions.delete(key) is False


async def test_c016_a_session_that_was_read_is_a_copy(sessions: Any, key: SessionKey) -> None:
    """Changing it changes nothing stored."""
    await sessions.append(key, asks("hello", state_delta={"a": {"b": 1}}))
    session = await sessions.get(key)
    session.events.clear()
    session.state["a"]["b"] = 2
    session.summaries["x"] = session
    again = await sessions.get(key)
    assert ([event.text for event in again.events], again.state, again.summaries) == (["hello"], {"a": {"b": 1}}, {})


async def test_c018_the_same_event_is_stored_once(sessions: Any, key: SessionKey) -> None:
    """A second append adds nothing. One that failed left nothing behind, so that the next try stores it, once."""
    event = asks("hello")
    with pytest.raises(SessionNotFound):
        await sessions.append(key._replace(session="none"), event)
    for _ in range(3):
        assert await sessions.append(key, event) == event
    assert await texts(sessions, key) == ["hello"]
