"""Sessions that outlive the process, checkpoints that don't: what a default Runner on a database has."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphagent import LLMAgent, ParallelAgent
from graphagent.agents.agent import Agent
from graphagent.ledger import SessionKey
from graphagent.models import ScriptedModel
from runner import Runner
from runner.sessions import SqlSessions

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("wide", [False, True], ids=["one agent", "two branches"])
async def test_a_later_process_loses_no_answer(tmp_path: Path, wide: bool) -> None:
    """Each turn in a process of its own, with the checkpoints in memory: the answers of all turns are in the session.
    Their ids once were those of the first turn, so that later ones were taken for repetitions and left out."""
    agents = [LLMAgent(name, ScriptedModel([f"{name} {turn}" for turn in range(3)])) for name in ("a", "b")]
    agent: Agent = ParallelAgent("both", agents) if wide else agents[0]
    async with SqlSessions(f"sqlite:///{tmp_path}/s.db") as sessions:
        for turn in range(3):
            async with Runner("app", agent, sessions=sessions) as runner:
                async for _ in runner.run("ann", "s", f"question {turn}"):
                    pass
        session = await sessions.get(SessionKey("app", "ann", "s"))
    assert session is not None
    said = ["a"] if not wide else ["a", "b"]
    expected = [f"{name} {turn}" for turn in range(3) for name in ["question", *said]]
    assert sorted(event.text for event in session.events) == sorted(expected)
