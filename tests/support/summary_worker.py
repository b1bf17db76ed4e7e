"""A process that sums up a session with a model on a server; a fork server imports this."""

from __future__ import annotations

import importlib
import os
import signal
import threading
from typing import Any

import anyio

from graphagent.ledger import SessionKey, Summary
from graphagent.models import LiteLLMModel
from graphagent.testing.forks import Job, Meet
from runner.sessions import SqlSessions
from runner.summary.locks import SummaryLocks
from runner.summary.rolling import RollingSummary
from runner.summary.summarizer import ModelSummarizer

for module in ("litellm", "sqlalchemy", "sqlmodel", "runner.sql.postgres"):
    importlib.import_module(module)


class Dying(SqlSessions):
    """Sessions with which the process is killed before or after a summary is stored."""

    when = ""

    async def put_summary(self, key: SessionKey, filter_key: str, summary: Summary, *, after: Summary | None) -> bool:
        """Store it, if there is time."""
        if self.when == "before":
            _kill()
        done = await super().put_summary(key, filter_key, summary, after=after)
        if self.when == "after":
            _kill()
        return done


def work(job: Job, meet: Meet) -> Any:
    """Sum up at the same time as the other process; what became of it, and what it took. `die`: where the process is
    killed, or after how many seconds."""
    return anyio.run(_sum_up, job, meet)


async def _sum_up(job: Job, meet: Meet) -> tuple[str, str, int]:
    die = job.get("die", "")
    model = LiteLLMModel("openai/small", api_base=job["server"], api_key="k", retries=0, timeout=30.0)
    async with Dying(job["url"]) as sessions:
        locks = SummaryLocks(sessions, lease=job.get("lease", 30.0))
        rolling = RollingSummary(sessions, ModelSummarizer(model, checks=(), timeout=3.0), locks=locks)
        key = SessionKey(*job["key"])
        await rolling.read(key)
        if isinstance(die, float):
            threading.Timer(die, _kill).start()
        else:
            sessions.when = die
        meet()
        attempt = await rolling.summarize(key, "app")
        return attempt.outcome, attempt.reason, attempt.spent.calls


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
