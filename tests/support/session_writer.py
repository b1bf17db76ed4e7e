"""A process that writes a session; a fork server imports this."""

from __future__ import annotations

from typing import Any

import anyio

from graphagent.ledger import SessionKey
from graphagent.testing.forks import Job, Meet
from graphagent.testing.service_help import says
from runner.artifacts import FileArtifacts, SqlArtifacts
from runner.sessions import SqlSessions


def work(job: Job, meet: Meet) -> Any:
    """Append events, or save versions of a file, at the same time as the other process."""
    return anyio.run(_append if job["what"] == "append" else _save, job, meet)


async def _append(job: Job, meet: Meet) -> list[str]:
    key = SessionKey(*job["key"])
    async with SqlSessions(job["url"]) as sessions:
        await sessions.get(key)
        meet()
        for number in range(job["count"]):
            delta = {f"w{job['who']}": number, f"app:w{job['who']}": number}
            await sessions.append(key, says(f"{job['who']} {number}", state_delta=delta))
        session = await sessions.get(key)
        assert session is not None
        return [event.text for event in session.events]


async def _save(job: Job, meet: Meet) -> list[int]:
    key = SessionKey(*job["key"])
    url = job["url"]
    async with SqlArtifacts(url) if "://" in url else FileArtifacts(url) as artifacts:
        await artifacts.names(key)
        meet()
        return [await artifacts.save(key, "a", f"{job['who']} {n}".encode()) for n in range(job["count"])]
