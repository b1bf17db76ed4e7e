"""Reading a session on from a copy: only what came since is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from graphagent.ledger import SessionKey
from graphagent.services import read_again
from graphagent.testing.service_help import asks
from runner.held import HeldSessions
from runner.sessions import InMemorySessions, SqlSessions
from runner.sessions.statements import EVENT

pytestmark = pytest.mark.anyio

KEY = SessionKey("app", "ann", "s")


async def test_events_that_are_held_are_not_read_again(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long session the database sends the rows of the events that are new, and nothing else of them."""
    async with SqlSessions(empty) as sessions:
        await sessions.create(*KEY)
        for number in range(30):
            await sessions.append(KEY, asks(str(number)))
        copy = await sessions.get(KEY)
        assert copy is not None
        await sessions.append(KEY, asks("new"))
        sent: list[tuple[Any, ...]] = []
        run = sessions._database.run

        async def noted(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
            rows = await run(sql, parameters)
            sent.extend(row for row in rows if row[0] == EVENT)
            return rows

        monkeypatch.setattr(sessions._database, "run", noted)
        again = await read_again(sessions, copy)
        assert again is not None
        assert [event.text for event in again.events] == [*map(str, range(30)), "new"]
        assert len(sent) == 1
        assert again.events[0] is copy.events[0]
        assert len(copy.events) == 30


async def test_sessions_are_held_up_to_a_number_of_events(empty: str) -> None:
    """Those that were used longest ago go; a session with too many events is not held, nor one that has none; what a
    run does to its copy doesn't change the held one."""
    async with SqlSessions(empty) as sessions:
        held = HeldSessions(sessions, 5)
        for name, count in (("a", 2), ("b", 2), ("c", 2), ("long", 6), ("none", 0)):
            made = await sessions.create("app", "ann", name)
            made.events.extend(asks(str(number)) for number in range(count))
            held.put(made)
            made.events.clear()
        found = {name: held.take(SessionKey("app", "ann", name)) for name in ("a", "b", "c", "long", "none")}
        assert {name: copy and len(copy.events) for name, copy in found.items()} == {
            **dict.fromkeys(("a", "long", "none")),
            **dict.fromkeys(("b", "c"), 2),
        }
        assert held.take(SessionKey("app", "ann", "b")) is None


async def test_nothing_is_held_for_a_service_that_reads_all() -> None:
    """A service that can't read on from a copy gets no copies kept."""
    sessions = InMemorySessions()
    made = await sessions.create(*KEY)
    made.events.append(asks("hello"))
    held = HeldSessions(sessions, 5)
    held.put(made)
    assert held.take(KEY) is None
