"""The demo's way to the agent: a Runner whose sessions, checkpoints and artifacts lie in one SQLite file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from examples.cert_triage.samples import Sample
from examples.cert_triage.talk import APP, REPORT_NAME, TalkState
from graphagent import GraphAgent, SqlCheckpoints
from graphagent.agents import RunOptions, session_lineage
from graphagent.ledger import Event, SessionKey
from runner import Runner
from runner.artifacts import SqlArtifacts
from runner.sessions import SqlSessions

USER = "operator"
FOLLOW_UP = "What about yesterday's certificate?"


@dataclass(frozen=True)
class Told:
    """How a run ended (`error`: why, if it failed), its last words, and the state that it left."""

    outcome: str
    text: str
    error: str
    interrupts: tuple[dict[str, object], ...]
    state: TalkState


def key_of(sample: Sample) -> SessionKey:
    """Each sample is talked about in a session of its own."""
    return SessionKey(APP, USER, sample.name)


class Desk:
    """A Runner with its services; see `opened_desk`."""

    def __init__(self, agent: GraphAgent, runner: Runner, artifacts: SqlArtifacts, store: SqlCheckpoints) -> None:
        self._agent = agent
        self._runner = runner
        self._artifacts = artifacts
        self._store = store

    async def check(self, sample: Sample, folder: str) -> Told:
        """Ask for a check, in a session that nothing was said in before."""
        await self._runner.delete_session(USER, sample.name)
        await self._artifacts.delete(key_of(sample), REPORT_NAME)
        asked = f"Check {sample.bundle} for {sample.host} trusting {sample.ca_file} into {folder}"
        return await self._run(sample, asked, RunOptions())

    async def answer(self, sample: Sample, answer: str) -> Told:
        """Answer the question that the check stopped at."""
        return await self._run(sample, None, RunOptions(answers={"approve": answer}))

    async def ask(self, sample: Sample, question: str) -> Told:
        """Say something else in the session."""
        return await self._run(sample, question, RunOptions())

    async def _run(self, sample: Sample, said: str | None, options: RunOptions) -> Told:
        text, last = "", Event()
        async for event in self._runner.run(USER, sample.name, said, options):
            if event.is_final and event.kind == "message":
                text = event.text
            last = event
        lineage = session_lineage(key_of(sample))
        state = await self._agent.executor(self._store).state(lineage, namespace=self._agent.name)
        error = last.error.message if last.error is not None else ""
        questions = tuple(dict(one) for one in last.interrupts)
        return Told(last.extensions["outcome"], text, error, questions, state)


@asynccontextmanager
async def opened_desk(agent: GraphAgent, database: str) -> AsyncIterator[Desk]:
    """A desk while the block runs. What was said at an earlier one, in whatever process, is found again."""
    sessions, artifacts = SqlSessions(database), SqlArtifacts(database)
    try:
        async with (
            SqlCheckpoints(database) as store,
            Runner(APP, agent, sessions=sessions, artifacts=artifacts, checkpoints=store) as runner,
        ):
            yield Desk(agent, runner, artifacts, store)
    finally:
        await sessions.aclose()
        await artifacts.aclose()
