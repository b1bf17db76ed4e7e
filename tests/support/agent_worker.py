"""A turn of an agent in a process that may be killed at any write; a fork server imports this."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import anyio

from graphagent import ChainAgent, LLMAgent, SqlCheckpoints, tool
from graphagent.agents import ModelRequest
from graphagent.ledger import SessionKey
from graphagent.models.scripted import ScriptedModel
from graphagent.testing.forks import Job, Meet
from graphagent.testing.kills import KillingStore, KillPoints
from runner.sessions import SqlSessions
from support.agent_runs import Talk

for module in ("sqlalchemy", "sqlmodel", "alembic.command", "graphagent.checkpoint.sql.postgres"):
    importlib.import_module(module)


class Outside:
    """What is done outside of the database, one line each, and the points around it."""

    def __init__(self, job: Job, points: KillPoints) -> None:
        self.log = Path(job["folder"]) / f"{job['lineage']}.log"
        self.points = points

    def does(self, what: str) -> None:
        """Do something that can't be undone."""
        self.points.reach(f"before {what}")
        with self.log.open("a") as log:
            log.write(f"{what}\n")
        self.points.reach(f"after {what}")


def agent_of(outside: Outside) -> ChainAgent:
    """Two agents in a row; the first uses two tools in turn."""

    @tool
    def pay(bill: str) -> str:
        """Pay a bill."""
        outside.does(f"pay {bill}")
        return f"paid {bill}"

    def say(request: ModelRequest) -> Any:
        outside.does(f"ask {len(request.messages)}")
        results = [message.text for message in request.messages if message.role == "tool"]
        if len(results) < 2 and request.tools:
            return {
                "tool_calls": [{"id": f"c{len(results)}", "name": "pay", "arguments": {"bill": f"b{len(results)}"}}]
            }
        return f"{len(request.messages)} messages, {', '.join(results)}"

    payer = LLMAgent("payer", ScriptedModel(say), tools=[pay])
    return ChainAgent("office", [payer, LLMAgent("teller", ScriptedModel(say))])


def live(job: Job, meet: Meet) -> dict[str, Any]:
    """One life of a turn: it begins, or goes on from where the process before came to."""
    points = KillPoints.of(job)

    async def run() -> dict[str, Any]:
        async with SqlCheckpoints(job["url"]) as store, SqlSessions(job["url"]) as sessions:
            killing: Any = KillingStore(store, points)
            key = SessionKey("app", "ann", job["lineage"])
            talk = Talk(agent_of(Outside(job, points)), killing, sessions, key=key, said_id="said")
            store_event = talk.persist

            async def persist(event: Any) -> None:
                points.reach("before event")
                await store_event(event)
                points.reach("after event")

            talk.persist = persist  # type: ignore[method-assign]
            begun = await store.history(talk.lineage, "office", limit=1)
            events = await (talk.answer() if begun else talk.say("pay all"))
            session = await talk.session()
            error = events[-1].error
            return {
                "error": error and error.code,
                "texts": [event.text for event in session.events if event.text],
                "ids": len({event.id for event in session.events}) == len(session.events),
                "calls": [call.id for e in session.events for m in e.messages for call in m.tool_calls],
                "points": points.count,
            }

    return anyio.run(run)
