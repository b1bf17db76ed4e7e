"""The guard on stores of each kind and on each engine: what is stored is what it was, and the turn goes on."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.guarding import AtCalls, calls, read, said

from graphagent import GraphAgent, MessagesState, StateGraph
from graphagent.ids import fresh_id
from graphagent.ledger import Event, SessionKey
from graphagent.models import ScriptedModel
from runner import Runner
from runner.sessions import InMemorySessions, SqlSessions
from runner.summary.upkeep import SummaryOptions

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """A session service, in memory and on each database."""
    if request.param == "memory":
        service: Any = InMemorySessions()
    else:
        postgres = request.param == "postgres"
        url = request.getfixturevalue("shared_postgres_url") if postgres else f"sqlite:///{tmp_path}/s.db"
        service = SqlSessions(url)
    yield service
    await service.aclose()


def hashes(events: list[Event]) -> list[str]:
    """One for each event, of all that is stored of it."""
    return [hashlib.sha256(event.model_dump_json().encode()).hexdigest() for event in events]


async def rescued(sessions: Any, *, engine: Any = "superstep", **options: Any) -> None:
    """Two turns, of which the second is rescued in its middle, and a third: on whatever store and engine."""
    key = SessionKey("app", fresh_id(), "s")
    model = ScriptedModel([calls(3000), "first done", calls(3000), calls(1), "done", "third"], context_window=9000)
    steered = AtCalls(lambda given: "THE SUMMARY")
    graph = (
        StateGraph(MessagesState)
        .add_llm_node("model", model, tools=[read])
        .add_tools_node("tools", [read])
        .set_entry_point("model")
        .add_tools_conditional_edges("model", "tools")
        .add_edge("tools", "model")
    )
    agent = GraphAgent("bot", graph.compile(), engine=engine)
    async with Runner(
        "app", agent, sessions=sessions, summaries=SummaryOptions(summarizer=steered), **options
    ) as runner:
        await runner.run_text(key.user, "s", "question one")
        before = await sessions.get(key)
        for question in ("question two", "question three"):
            await runner.run_text(key.user, "s", question)
        after = await sessions.get(key)
    assert len(steered.inputs) == 1
    assert "question one" in said(model, 2)
    for number in (3, 4, 5):
        assert "THE SUMMARY" in said(model, number)
        assert "question one" not in said(model, number)
        assert said(model, number).count("question two") == 1
    assert hashes(after.events)[: len(before.events)] == hashes(before.events)
    assert [event.seq for event in after.events] == sorted({event.seq for event in after.events})


async def test_rescue_on_each_session_service(sessions: Any) -> None:
    """The summary and the new projection come from the service, and nothing stored is changed."""
    await rescued(sessions)


async def test_rescue_on_each_checkpoint_store(store: Any) -> None:
    """The history is replaced in the state by one write, which each store keeps."""
    await rescued(InMemorySessions(), checkpoints=store)


async def test_rescue_on_each_engine(engine: str) -> None:
    """With and without the debug mode, and where nodes start as soon as they can."""
    await rescued(InMemorySessions(), engine=engine)
