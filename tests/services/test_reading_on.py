"""Reading a session on from a copy: only what came since is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.service_tables import query

from graphagent.ledger import Event, Session, SessionKey
from graphagent.services import read_again
from graphagent.testing.service_help import asks
from runner.held import HeldSessions
from runner.sessions import InMemorySessions, SqlSessions
from runner.sessions.statements import EVENT, HELD, REFRESH, SESSION

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
    """Those that were used longest ago go; of sessions with more events than that the last one is held beside them, one
    that has none isn't; what a run does to its copy doesn't change the held one."""
    async with SqlSessions(empty) as sessions:
        held = HeldSessions(sessions, 5)
        for name, count in (("longer", 9), ("a", 2), ("b", 2), ("c", 2), ("long", 6), ("none", 0)):
            made = await sessions.create("app", "ann", name)
            made.events.extend(asks(str(number)) for number in range(count))
            held.put(made)
            made.events.clear()
        found = {name: held.take(SessionKey("app", "ann", name)) for name in ("longer", "a", "b", "c", "long", "none")}
        assert {name: copy and len(copy.events) for name, copy in found.items()} == {
            **dict.fromkeys(("longer", "a", "none")),
            **dict.fromkeys(("b", "c"), 2),
            "long": 6,
        }
        assert held.take(SessionKey("app", "ann", "b")) is None
        assert held.take(SessionKey("app", "ann", "long")) is None


async def test_nothing_is_held_for_a_service_that_reads_all() -> None:
    """A service that can't read on from a copy gets no copies kept."""

    class ReadsAll:
        """The part of a service that reads sessions whole."""

        get = InMemorySessions.get

    made = await InMemorySessions().create(*KEY)
    made.events.append(asks("hello"))
    held = HeldSessions(ReadsAll(), 5)  # type: ignore[arg-type]
    held.put(made)
    assert held.take(KEY) is None


async def test_reading_on_costs_what_is_new(empty: str) -> None:
    """Reading on doesn't look at the events that are held: after a gap among them, told by their numbers, and after an
    event without content, which has no such number, the outcome is that of reading all."""
    async with SqlSessions(empty) as sessions:
        await sessions.create(*KEY)
        for number in range(6):
            await sessions.append(KEY, asks(str(number)))
            await sessions.append(KEY, Event(author="bot", state_delta={"step": number}))
        whole = await sessions.get(KEY)
        assert whole is not None
        for events in (whole.events, whole.events[2:], whole.events[:3], [*whole.events[:2], *whole.events[3:]]):
            assert await sessions.refresh(whole.model_copy(update={"events": list(events)})) == whole
        rows = query(empty, "SELECT shown FROM ga_events ORDER BY place")
        assert [row[0] for row in rows] == [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]


async def test_reading_on_from_a_long_copy_costs_no_more(tmp_path: Path) -> None:
    """SQLite takes as many steps for it, whether 50 events are held or 1,000."""
    steps = []
    async with SqlSessions(f"sqlite:///{tmp_path}/s.db") as sessions:
        for name, count in (("short", 50), ("long", 1000)):
            copy = await sessions.create("app", "ann", name)
            for number in range(count):
                copy.events.append(await sessions.append(copy.key, asks(str(number))))
            steps.append(_steps(tmp_path / "s.db", copy))
    assert abs(steps[1] - steps[0]) < 20


def _steps(file: Path, copy: Session) -> int:
    """Instructions of SQLite's machine to read on from a copy."""
    first, last, counted = copy.events[0], copy.events[-1], []
    held = (first.seq, copy.created_at, last.seq, last.id, len(copy.events), first.seq)
    connection = sqlite3.connect(file)
    connection.set_progress_handler(lambda: counted.append(1), 1)
    rows = connection.execute(REFRESH, [*copy.key, 0.0, *held, *copy.key, 0.0]).fetchall()
    connection.close()
    assert [row[0] for row in rows] == [SESSION, HELD]
    return len(counted)
