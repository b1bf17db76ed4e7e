"""What session services promise that read around an event, and that give out leases of summaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio

from graphagent.errors import AnchorNotFound, SessionNotFound, UsageError
from graphagent.ids import fresh_id
from graphagent.ledger import Event
from graphagent.messages import Message, ToolCall
from graphagent.testing.service_help import asks, fresh_key, opened, refused, says

Sessions = Callable[[], Any]


def calls(*ids: str) -> Event:
    """An event in which an agent asks for tools, with a text."""
    return Event(
        author="agent",
        messages=(Message.assistant("let me see", tool_calls=tuple(ToolCall(id=i, name="t") for i in ids)),),
    )


def results(**texts: str) -> Event:
    """An event with the results of calls."""
    return Event(
        author="agent", kind="tool_result", messages=tuple(Message.tool(t, i, name="t") for i, t in texts.items())
    )


async def _talk(sessions: Any) -> tuple[Any, list[Event]]:
    key = fresh_key()
    await sessions.create(*key)
    events = [
        asks("one"),
        calls("c1"),
        results(c1="the result"),
        Event(author="agent", state_delta={"a": 1}),
        says("two"),
        asks("three"),
        asks("   "),
        says("four"),
    ]
    return key, [await sessions.append(key, event) for event in events]


async def a_window_has_the_messages_around_an_event(factory: Sessions) -> None:
    """In order; calls, state and what has no visible text don't count, and the event itself is always there."""
    async with opened(factory) as sessions:
        key, events = await _talk(sessions)
        one, call, result, state, two, three, blank, four = events

        async def around(event: Event, before: int, after: int, roles: Any = ()) -> list[Event]:
            found = await sessions.window(key, event.id, before=before, after=after, roles=roles)
            assert [known.seq for known in found] == sorted(known.seq for known in found)
            return list(found)

        assert await around(two, 0, 0) == [two]
        assert await around(two, 1, 1) == [result, two, three]
        assert await around(two, 9, 9) == [one, result, two, three, four]
        assert await around(two, 2, 2, {"user"}) == [one, two, three]
        assert await around(two, 2, 2, ["assistant", "tool"]) == [result, two, four]
        assert await around(call, 1, 1) == [one, call, result]
        assert await around(state, 1, 1) == [result, state, two]
        assert await around(blank, 1, 1) == [three, blank, four]
        assert await around(one, 3, 0) == [one]


async def a_window_around_nothing_is_refused(factory: Sessions) -> None:
    """An unknown event or session is AnchorNotFound, a negative number UsageError."""
    async with opened(factory) as sessions:
        key, events = await _talk(sessions)
        assert "nowhere" in await refused(AnchorNotFound, sessions.window(key, "nowhere"))
        other = key._replace(user="other")
        await refused(AnchorNotFound, sessions.window(other, events[0].id))
        await refused(UsageError, sessions.window(key, events[0].id, before=-1))
        await refused(UsageError, sessions.window(key, events[0].id, after=-1))


async def the_newest_result_of_a_call_is_found(factory: Sessions) -> None:
    """Among several results of an event too, without text too; a call without a result has none."""
    async with opened(factory) as sessions:
        key = fresh_key()
        await sessions.create(*key)
        first = await sessions.append(key, results(a="1", b="2"))
        await sessions.append(key, asks("a and b"))
        newest = await sessions.append(key, results(b=""))
        await sessions.append(key, calls("c"))
        assert await sessions.tool_result(key, "a") == first
        assert await sessions.tool_result(key, "b") == newest
        assert await sessions.tool_result(key, "c") is None
        assert await sessions.tool_result(fresh_key(key.app), "a") is None


async def one_owner_has_the_lease_of_a_summary(factory: Sessions) -> None:
    """It can keep and give back what it has; others get it then, or when the time is over; keys don't meet."""
    async with opened(factory) as sessions:
        key = fresh_key()
        await sessions.create(*key)

        async def lease(owner: str, filter_key: str = "app/a", seconds: float = 60) -> bool:
            return bool(await sessions.lease_summary(key, filter_key, owner=owner, seconds=seconds))

        assert await lease("one")
        assert not await lease("two")
        assert await lease("one")
        assert await lease("two", "")
        await sessions.release_summary(key, "app/a", owner="two")
        assert not await lease("two")
        await sessions.release_summary(key, "app/a", owner="one")
        await sessions.release_summary(key, "app/a", owner="one")
        assert await lease("two", seconds=-1)
        assert await lease("three")


async def a_lease_ends_with_its_session(factory: Sessions) -> None:
    """A session that isn't there has none to give, one that is made again gives it anew."""
    async with opened(factory) as sessions:
        key = fresh_key()
        await refused(SessionNotFound, sessions.lease_summary(key, "", owner="one", seconds=60))
        await sessions.release_summary(key, "", owner="one")
        await sessions.create(*key)
        assert await sessions.lease_summary(key, "", owner="one", seconds=60)
        await sessions.delete(key)
        await sessions.create(*key)
        assert await sessions.lease_summary(key, "", owner="two", seconds=60)


async def one_of_many_gets_the_lease(factory: Sessions) -> None:
    """Of those who ask at the same moment."""
    async with opened(factory) as sessions:
        key = fresh_key()
        await sessions.create(*key)
        got: list[bool] = []

        async def ask() -> None:
            got.append(await sessions.lease_summary(key, "", owner=fresh_id(), seconds=60))

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(ask)
        assert sum(got) == 1


WINDOWS = (
    a_window_has_the_messages_around_an_event,
    a_window_around_nothing_is_refused,
    the_newest_result_of_a_call_is_found,
)
LEASES = (one_owner_has_the_lease_of_a_summary, a_lease_ends_with_its_session, one_of_many_gets_the_lease)
