"""What runs read of their sessions, and how many appends of one run a database has to do with at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest
from support.run_agents import APP, KEY, SESSION, USER, Sessions, all_of, outcome, says

from graphagent import LLMAgent, ParallelAgent
from graphagent.ledger import Event, SessionKey
from graphagent.models import ScriptedModel
from graphagent.testing.service_help import asks
from runner import Runner
from runner.runner import RunnerPolicy
from runner.sessions import SqlSessions
from runner.sessions.statements import EVENT

pytestmark = pytest.mark.anyio


class Watched(SqlSessions):
    """Sessions that count the rows of events that they read."""

    rows = 0

    def __init__(self, url: str) -> None:
        super().__init__(url)
        run = self._database.run

        async def counting(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
            found = await run(sql, parameters)
            self.rows += sum(len(row) > 1 and row[0] == EVENT for row in found)
            return found

        self._database.run = counting  # type: ignore[method-assign]


@pytest.mark.parametrize(("held", "rows"), [(4_000, 2), (0, 40)])
async def test_a_long_session_is_read_on(tmp_path: Path, held: int, rows: int) -> None:
    """A turn reads what the one before added and what was just said, however long the session is; a policy that holds
    nothing has it read from the beginning, once."""
    sessions = Watched(f"sqlite:///{tmp_path}/s.db")
    agent = LLMAgent("bob", ScriptedModel(lambda request: str(len(request.messages))))
    policy = RunnerPolicy(held_events=held)
    async with sessions, Runner(APP, agent, sessions=sessions, policy=policy) as runner:
        for turn in range(20):
            assert await runner.run_text(USER, SESSION, "and?") == str(2 * turn + 1)
        sessions.rows = 0
        assert await runner.run_text(USER, SESSION, "and?") == "41"
        assert sessions.rows == rows


async def test_what_others_do_to_a_session_is_seen(tmp_path: Path) -> None:
    """A copy that is held keeps no run from seeing what another process appended, or that the session is a new one."""
    url = f"sqlite:///{tmp_path}/s.db"
    seen: list[list[str]] = []

    def answer(request: Any) -> str:
        seen.append([message.text for message in request.messages])
        return "yes"

    agent = LLMAgent("bob", ScriptedModel(answer))
    async with (
        SqlSessions(url) as sessions,
        SqlSessions(url) as others,
        Runner(APP, agent, sessions=sessions) as runner,
    ):
        await runner.run_text(USER, SESSION, "one")
        await others.append(KEY, asks("aside"))
        await runner.run_text(USER, SESSION, "two")
        await others.delete(KEY)
        await runner.run_text(USER, SESSION, "three")
    assert seen == [["one"], ["one", "yes", "aside", "two"], ["three"]]


class Narrow(Sessions):
    """Sessions that note how many appends go on at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0

    async def append(self, key: SessionKey, event: Event) -> Event:
        """Append, after others had time to come in between."""
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        self.now -= 1
        return await super().append(key, event)


async def test_a_wide_run_appends_in_a_line() -> None:
    """Branches that end together take one connection of the database, not one each: a session's appends are in a line
    there anyway, and other sessions want connections too."""
    agents = [LLMAgent(f"a{number}", ScriptedModel([says(f"{number}").text])) for number in range(12)]
    sessions = Narrow()
    async with Runner(APP, ParallelAgent("all", agents), sessions=sessions) as runner:
        events = await all_of(runner)
        assert outcome(events) == "completed"
        session = await sessions.get(KEY)
    assert session is not None
    assert {event.text for event in session.events} >= {f"{number}" for number in range(12)}
    assert sessions.most == 1
