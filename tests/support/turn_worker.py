"""A turn of a conversation to kill: a model asks for a tool and for another agent, which has a tool of its own.

A fork server imports this. Every write of the checkpoint store and of the session service, every call of a model and
every effect of a tool is a point at which the process may kill itself.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import anyio

from graphagent import LLMAgent, SqlCheckpoints, tool
from graphagent.agents import AgentTool, ToolOptions
from graphagent.agents.model import ModelRequest
from graphagent.ledger import Event, Session, SessionKey
from graphagent.models import ScriptedModel
from graphagent.testing.forks import Job, Meet
from graphagent.testing.kills import KillingStore, KillPoints
from runner import Runner
from runner.outcome import OUTCOME
from runner.sessions import SqlSessions
from support.talks import faults

APP, USER = "app", "ann"
SAID = ("go", "more")

for module in (
    "sqlalchemy",
    "sqlmodel",
    "alembic.command",
    "runner.sql.postgres",
    "graphagent.checkpoint.sql.postgres",
):
    importlib.import_module(module)


class KillingSessions:
    """A session service with a point before and after each append."""

    def __init__(self, inner: SqlSessions, points: KillPoints) -> None:
        self.inner = inner
        self.points = points

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def append(self, key: SessionKey, event: Event) -> Event:
        """Append between two points."""
        self.points.reach(f"before event {event.author} {event.kind}")
        stored = await self.inner.append(key, event)
        self.points.reach(f"after event {event.author} {event.kind}")
        return stored


class Stage:
    """The agents, and what they do outside: a log in a file, written in one go."""

    def __init__(self, path: str, points: KillPoints) -> None:
        self.points = points
        self.wrong: list[str] = []
        self._log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def act(self, name: str) -> str:
        """Do something that can't be undone."""
        self.points.reach(f"effect begins {name}")
        os.write(self._log, f"{name}\n".encode())
        self.points.reach(f"effect ends {name}")
        return f"did {name}"

    def asked(self, name: str, *calls: str) -> Any:
        """A model that asks for tools until it has results."""

        def answer(request: ModelRequest) -> Any:
            self.points.reach(f"model {name}")
            self.wrong += faults(request.messages)
            if request.messages[-1].role == "tool":
                return f"{name} is done"
            return {"tool_calls": [{"name": call, "arguments": {"request": "do"}} for call in calls]}

        return ScriptedModel(answer)

    def agent(self) -> LLMAgent:
        """`bot` asks for `pay` and for `expert` side by side; `expert` asks for `note`."""

        @tool
        async def pay(request: str) -> str:
            """Pay."""
            return self.act("pay")

        @tool
        async def note(request: str) -> str:
            """Note it down."""
            return self.act("note")

        expert = LLMAgent("expert", self.asked("expert", "note"), tools=[note], description="Knows it.")
        tools = [pay, AgentTool(expert)]
        return LLMAgent("bot", self.asked("bot", "pay", "expert"), tools=tools, tool_options=ToolOptions(parallel=True))


def live(job: Job, meet: Meet) -> dict[str, Any]:
    """One life: go on where the one before it was cut off, say what has not been said, and tell what is stored."""
    return anyio.run(_live, job)


async def _live(job: Job) -> dict[str, Any]:
    points = KillPoints.of(job)
    stage = Stage(f"{job['folder']}/{job['lineage']}.log", points)
    key = SessionKey(APP, USER, job["lineage"])
    async with SqlSessions(job["url"]) as kept, SqlCheckpoints(job["url"]) as store:
        sessions = KillingSessions(kept, points)
        async with Runner(APP, stage.agent(), sessions=sessions, checkpoints=KillingStore(store, points)) as runner:
            before = await kept.get(key)
            said = [] if before is None else [event.text for event in before.events if event.is_user]
            ended = [await _say(runner, key, None)] if said else []
            ended += [await _say(runner, key, text) for text in SAID if text not in said]
        found = await kept.get(key)
    assert found is not None
    state = {"events": told(found), "wrong": stage.wrong, "ids": len({event.id for event in found.events})}
    status = next((one for one in ended if one != "completed"), "completed")
    return {"status": status, "reason": str(ended), "state": state, "points": points.count, "seconds": 0.0}


async def _say(runner: Runner, key: SessionKey, text: str | None) -> str:
    """How a turn ended; `unknown` if it is for a person to say whether a tool did its work."""
    events = [event async for event in runner.run(key.user, key.session, text)]
    error = events[-1].error
    unknown = error is not None and error.code == "EffectUnknown"
    return "unknown" if unknown else str(events[-1].extensions[OUTCOME])


def told(session: Session) -> list[str]:
    """The events in words."""
    return [
        f"{e.author}: {e.text}" + "".join(f" >{c.name}" for m in e.messages for c in m.tool_calls)
        for e in session.events
    ]
