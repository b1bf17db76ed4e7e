"""`graphagent sessions summaries`: what stands for the older events of a session."""

from __future__ import annotations

from pathlib import Path

import anyio
from cli_help import Call
from support.rolling import Steered, say, talk

from graphagent.ledger import SessionKey
from runner.sessions import SqlSessions
from runner.summary.rolling import RollingSummary

KEY = SessionKey("app", "ann", "s1")
WHERE = ("--app", "app", "--user", "ann", "--db", "s.db")


def filled(folder: Path) -> None:
    """A session with a summary, an attempt that failed, and one event more."""

    async def fill() -> None:
        async with SqlSessions(f"sqlite:///{folder}/s.db") as sessions:
            await sessions.create(*KEY)
            await talk(sessions, key=KEY)
            await RollingSummary(sessions, Steered(lambda given: "They spoke.\nOf Oslo.")).summarize(KEY, "app")
            await say(sessions, KEY, "more", "app")
            await RollingSummary(sessions, Steered(lambda given: ValueError("model is down"))).summarize(KEY, "app")

    anyio.run(fill)


def test_text_boundary_and_attempts(folder: Path, call: Call) -> None:
    """Each summary with up to which event it goes and how many came since; the newest attempts first, with why."""
    filled(folder)
    found = call("sessions", "summaries", "s1", *WHERE, "--json").data
    assert found["summaries"]["app"]["text"] == "They spoke.\nOf Oslo."
    assert found["summaries"]["app"]["boundary"]["seq"] == 3
    assert found["summaries"]["app"]["events_since"] == 1
    assert [one["outcome"] for one in found["attempts"]] == ["failed", "updated"]
    assert "model is down" in found["attempts"][0]["reason"]
    assert found["attempts"][1]["up_to"] == 3
    text = call("sessions", "summaries", "s1", *WHERE, "--limit", "1").out
    assert "app: up to number 3" in text
    assert "1 event(s) since" in text
    assert "    Of Oslo." in text
    assert "model is down" in text
    assert "updated" not in text


def test_a_session_without_one(folder: Path, call: Call) -> None:
    """It says so; an unknown session is an error with those that there are."""

    async def fill() -> None:
        async with SqlSessions(f"sqlite:///{folder}/s.db") as sessions:
            await sessions.create(*KEY)

    anyio.run(fill)
    assert call("sessions", "summaries", "s1", *WHERE).out.strip() == "session 's1' has no summary"
    assert "s1" in call("sessions", "summaries", "s2", *WHERE).err
    assert "which session" in call("sessions", "summaries", *WHERE).err
