"""What every session service promises beside events: state, lists, summaries, tracks, copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from graphagent.errors import ServiceError, UsageError
from graphagent.ledger import Boundary, Event, Session, Summary
from graphagent.messages import Message, ToolCall
from graphagent.services import SessionService
from graphagent.testing.service_help import asks, fresh_key, opened, refused, says

Sessions = Callable[[], SessionService]


async def _got(sessions: SessionService, key: Any, **window: Any) -> Session:
    session = await sessions.get(key, **window)
    assert session is not None
    return session


def _summary(text: str) -> Summary:
    boundary = Boundary(filter_key="app/a", cutoff_at=12.5, last_event_id="e1")
    return Summary(text=text, boundary=boundary, updated_at=13.25, topics=("t", "ü"))


async def state_has_three_scopes(factory: Sessions) -> None:
    """`app:` keys are seen by all users of the app, `user:` keys by all sessions of the user, bare ones by the session
    (spec/context case 13)."""
    async with opened(factory) as sessions:
        key = fresh_key()
        mate, stranger = key._replace(session="mate"), key._replace(user="stranger")
        created = await sessions.create(*key, state={"app:k": 1, "user:k": 2, "k": 3})
        assert created.state == {"app:k": 1, "user:k": 2, "k": 3}
        assert (await sessions.create(*mate)).state == {"app:k": 1, "user:k": 2}
        assert (await sessions.create(*stranger)).state == {"app:k": 1}
        await sessions.append(mate, asks("x", state_delta={"app:k": 4, "user:k": 5, "k": 6}))
        await sessions.update_state(stranger, {"user:k": 7, "k": None})
        assert (await _got(sessions, key)).state == {"app:k": 4, "user:k": 5, "k": 3}
        assert (await _got(sessions, mate)).state == {"app:k": 4, "user:k": 5, "k": 6}
        assert (await _got(sessions, stranger)).state == {"app:k": 4, "user:k": 7, "k": None}
        assert await sessions.shared_state(key.app) == {"k": 4}
        assert await sessions.shared_state(key.app, key.user) == {"k": 5}
        assert await sessions.shared_state(f"{key.app}-other") == {}
        await sessions.delete(key)
        assert (await sessions.create(*key)).state == {"app:k": 4, "user:k": 5}


async def shared_state_is_of_one_scope(factory: Sessions) -> None:
    """Keys with the prefix of another scope are refused, the own prefix is taken off (spec/context case 12)."""
    async with opened(factory) as sessions:
        key = fresh_key()
        await sessions.create(*key)
        for user, bad in ((key.user, "app:x"), (key.user, "temp:x"), (None, "user:x"), (None, "temp:x")):
            assert f"'{bad}'" in await refused(
                ServiceError, sessions.update_shared_state(key.app, user, {"good": 1, bad: 1})
            )
        await sessions.update_shared_state(key.app, None, {"app:a": 1, "b": 2})
        await sessions.update_shared_state(key.app, key.user, {"user:a": 3})
        assert await sessions.shared_state(key.app) == {"a": 1, "b": 2}
        assert (await _got(sessions, key)).state == {"app:a": 1, "app:b": 2, "user:a": 3}


async def scratch_is_never_stored(factory: Sessions) -> None:
    """`temp:` keys are in no state and in no stored event, however they come."""
    async with opened(factory) as sessions:
        key = fresh_key()
        created = await sessions.create(*key, state={"temp:a": 1})
        stored = await sessions.append(key, asks("x", state_delta={"temp:a": "secret", "b": 1}))
        await sessions.update_state(key, {"temp:c": 1})
        session = await _got(sessions, key)
        assert created.state == {}
        assert stored.state_delta == {"b": 1}
        assert (session.state, session.events) == ({"b": 1}, [stored])


async def both_updates_survive(factory: Sessions) -> None:
    """Writers of different keys with handles of their own don't undo each other (dev cases C151 and C153)."""
    async with opened(factory) as sessions, opened(factory) as others:
        key = fresh_key()
        await sessions.create(*key)

        async def write(service: SessionService, name: str) -> None:
            for number in range(10):
                await service.update_state(key, {name: number, f"app:{name}": number, f"user:{name}": number})

        async with anyio.create_task_group() as tasks:
            for place, service in enumerate((sessions, others) * 2):
                tasks.start_soon(write, service, f"w{place}")
        expected = {f"{prefix}w{place}": 9 for prefix in ("", "app:", "user:") for place in range(4)}
        assert (await _got(others, key)).state == expected


async def what_is_read_is_a_copy(factory: Sessions) -> None:
    """Changing a session that was read, or an event that was given, changes nothing stored (spec/context case 16)."""
    call = ToolCall(id="c", name="look", arguments={"deep": [1]})
    given = Event(author="agent", messages=(Message.assistant("", tool_calls=(call,)),), state_delta={"a": {"b": [1]}})
    async with opened(factory) as sessions:
        key = fresh_key()
        await sessions.create(*key)
        await sessions.append(key, asks("hello"))
        returned = await sessions.append(key, given)
        await sessions.append_track(key, "log", [{"a": [1]}])
        await sessions.put_summary(key, "", _summary("s"), after=None)
        before = (await _got(sessions, key)).model_dump_json()
        read = await _got(sessions, key)
        listed = (await sessions.list(key.app, key.user))[0]
        for event in (given, returned, read.events[1]):
            event.messages[0].tool_calls[0].arguments["deep"].append(2)
            event.state_delta["a"]["b"].append(2)
        for state in (read.state, listed.state):
            state["a"]["b"].append(2)
            state["new"] = 1
        read.events.clear()
        read.summaries.clear()
        read.tracks["log"][0]["a"].append(2)
        assert (await _got(sessions, key)).model_dump_json() == before


async def lists_are_ordered_and_paged(factory: Sessions) -> None:
    """The last changed first, then by id downwards; without events and tracks, with state and summaries."""
    async with opened(factory) as sessions:
        key = fresh_key()
        names = ["b", "a", "Z", "ü", "c"]
        for name in names:
            await sessions.create(key.app, key.user, name, state={"n": name})
        await sessions.create(key.app, "other", "x")
        await anyio.sleep(0.002)
        await sessions.append(key._replace(session="a"), asks("x", state_delta={"app:k": 1}))
        await sessions.append_track(key._replace(session="a"), "log", [1])
        await sessions.put_summary(key._replace(session="a"), "", _summary("s"), after=None)
        found = await sessions.list(key.app, key.user)
        assert found[0].id == "a"
        expected = sorted(found, key=lambda session: (session.updated_at, session.id), reverse=True)
        assert [session.id for session in found] == [session.id for session in expected]
        assert sorted(session.id for session in found) == sorted(names)
        assert all(session.events == [] and session.tracks == {} for session in found)
        assert all(session.state == {"app:k": 1, "n": session.id} for session in found)
        assert found[0].summaries == {"": _summary("s")}
        assert await sessions.list(key.app, key.user, offset=1, limit=2) == found[1:3]
        assert await sessions.list(key.app, key.user, offset=4, limit=9) == found[4:]
        assert await sessions.list(key.app, key.user, offset=5) == []
        await refused(UsageError, sessions.list(key.app, key.user, offset=-1))
        await refused(UsageError, sessions.list(key.app, key.user, limit=0))


async def a_deleted_session_leaves_nothing(factory: Sessions) -> None:
    """After a delete the same id begins anew, and the neighbours are whole."""
    async with opened(factory) as sessions:
        key = fresh_key()
        mate = key._replace(session="mate")
        for one in (key, mate):
            await sessions.create(*one, state={"a": 1})
            await sessions.append(one, asks("hello"))
            await sessions.append_track(one, "log", [1])
            await sessions.put_summary(one, "", _summary("s"), after=None)
        before = await _got(sessions, mate)
        assert await sessions.delete(key) is True
        assert await sessions.delete(key) is False
        assert await sessions.get(key) is None
        assert await _got(sessions, mate) == before
        again = await sessions.create(*key)
        assert (again.events, again.state, again.summaries, again.tracks) == ([], {}, {}, {})


async def a_summary_is_put_after_the_one_it_follows(factory: Sessions) -> None:
    """Of two that follow the same one only the first is stored; each filter key has its own."""
    async with opened(factory) as sessions, opened(factory) as others:
        key = fresh_key()
        await sessions.create(*key)
        first, second, third = _summary("1"), _summary("2"), _summary("3")
        assert await sessions.put_summary(key, "app/a", first, after=None) is True
        assert await others.put_summary(key, "app/a", second, after=None) is False
        assert await others.put_summary(key, "app/a", second, after=third) is False
        assert await others.put_summary(key, "app/a", second, after=first) is True
        assert await sessions.put_summary(key, "app/a", third, after=first) is False
        assert await sessions.put_summary(key, "", third, after=None) is True
        assert (await _got(sessions, key)).summaries == {"app/a": second, "": third}

        won = []

        async def put(service: SessionService, text: str) -> None:
            won.append(await service.put_summary(key, "race", _summary(text), after=None))

        async with anyio.create_task_group() as tasks:
            for place, service in enumerate((sessions, others) * 3):
                tasks.start_soon(put, service, str(place))
        assert sum(won) == 1


async def tracks_are_logs_beside_the_conversation(factory: Sessions) -> None:
    """Items keep their order, of one call and of several; `last` takes so many of each track."""
    async with opened(factory) as sessions, opened(factory) as others:
        key = fresh_key()
        await sessions.create(*key)
        await sessions.append_track(key, "ui", [{"n": 0}, {"n": 1}])
        await sessions.append(key, asks("hello"))
        await others.append_track(key, "ui", iter([{"n": 2}]))
        await sessions.append_track(key, "ü/log", [None])
        await sessions.append_track(key, "empty", [])
        session = await _got(others, key)
        assert session.tracks == {"ui": [{"n": 0}, {"n": 1}, {"n": 2}], "ü/log": [None]}
        assert [event.text for event in session.events] == ["hello"]
        assert (await _got(sessions, key, last=2)).tracks == {"ui": [{"n": 1}, {"n": 2}], "ü/log": [None]}
        assert (await _got(sessions, key, last=0)).tracks == {}
        await sessions.append(key, says("after"))
        assert (await _got(sessions, key, since=4e9)).tracks == {}


CASES = (
    state_has_three_scopes,
    shared_state_is_of_one_scope,
    scratch_is_never_stored,
    both_updates_survive,
    what_is_read_is_a_copy,
    lists_are_ordered_and_paged,
    a_deleted_session_leaves_nothing,
    a_summary_is_put_after_the_one_it_follows,
    tracks_are_logs_beside_the_conversation,
)
