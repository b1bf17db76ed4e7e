"""A conversation of which memories are kept, to kill: every write of either service and every question to the extractor
is a point at which the process may kill itself. A fork server imports this."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

import anyio

from graphagent import LLMAgent
from graphagent.agents.model import ModelRequest
from graphagent.ledger import SessionKey
from graphagent.models import ScriptedModel
from graphagent.testing.forks import Job, Meet
from graphagent.testing.kills import KillPoints
from runner import Runner
from runner.memory import MemoryExtraction, ModelExtractor, SqlMemory, worker
from runner.memory.delta import CURSOR
from runner.sessions import SqlSessions

USER, SESSION = "ann", "s1"
SAID = ("I like tea, and I met Ben on 7 May 2023", "I like green tea now, and forget Ben")

for module in ("sqlalchemy", "sqlmodel", "alembic.command", "runner.sql.postgres"):
    importlib.import_module(module)
worker.LEASE = 0.2  # a life is not to wait long for the one that was killed


class Killing:
    """A service with a point before and after each of some calls."""

    def __init__(self, inner: Any, points: KillPoints, *calls: str) -> None:
        self._inner = inner
        self._points = points
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in self._calls:
            return found

        async def call(*args: Any, **options: Any) -> Any:
            self._points.reach(f"before {name}")
            result = await found(*args, **options)
            self._points.reach(f"after {name}")
            return result

        return call


def extractor(job: Job, points: KillPoints) -> ModelExtractor:
    """Finds what is in SAID, by what is said and what is remembered; each question is a line in a log."""
    log = os.open(f"{job['folder']}/{job['app']}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def answer(request: ModelRequest) -> str:
        points.reach("question")
        text = request.messages[-1].text
        ids = {name: found[1] for name in ("tea", "Ben") if (found := re.search(rf"\[(\w+)\][^\n]* .*{name}", text))}
        items = []
        if SAID[0] in text:
            items += [
                '{"type": "add", "memory": "likes tea", "topics": ["drinks"], "location": "Oslo"}',
                '{"type": "add", "memory": "met Ben", "kind": "episode", "event_time": "2023-05-07"}',
            ]
        if SAID[1] in text:
            items += [
                f'{{"type": "update", "id": "{ids.get("tea", "?")}", "memory": "likes green tea"}}',
                f'{{"type": "delete", "id": "{ids.get("Ben", "?")}"}}',
                '{"type": "add", "memory": "asked to forget something"}',
            ]
        os.write(log, f"{[said for said in SAID if said in text]}\n".encode())
        return f'{{"operations": [{", ".join(items)}]}}'

    return ModelExtractor(ScriptedModel(answer))


def live(job: Job, meet: Meet) -> dict[str, Any]:
    """One life: extract what was left, say what has not been said, close, and tell what is remembered."""
    return anyio.run(_live, job)


async def _live(job: Job) -> dict[str, Any]:
    points = KillPoints.of(job)
    key = SessionKey(job["app"], USER, SESSION)
    async with SqlSessions(job["url"]) as kept, SqlMemory(job["url"]) as memory:
        sessions: Any = Killing(kept, points, "update_state")
        memories: Any = Killing(memory, points, "add", "update", "delete")
        before = await kept.get(key)
        said = [] if before is None else [event.text for event in before.events if event.is_user]
        extraction = MemoryExtraction(extractor=extractor(job, points))
        agent = LLMAgent("bot", ScriptedModel(lambda request: "noted"))
        for text in SAID:
            async with Runner(key.app, agent, sessions=sessions, memory=memories, extraction=extraction) as runner:
                assert runner.extraction is not None
                if said:
                    await runner.extraction.extract(key)
                if text not in said:
                    await runner.run_text(key.user, key.session, text)
        found = await memory.load(key.app, key.user)
        session = await kept.get(key)
    assert session is not None
    told = sorted((one.text, one.topics, one.kind, one.event_time, one.location) for one in found)
    return {"memories": told, "read": session.state[CURSOR]["seq"], "points": points.count}
