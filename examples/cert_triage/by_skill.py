"""The diagnosis by a skill: a graph of one node runs the skill's script on the facts, and no model is asked.

The file that the script leaves is an artifact of the sample's session, a new version each time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from examples.cert_triage.desk import USER, key_of
from examples.cert_triage.graph import report_of
from examples.cert_triage.samples import Sample
from examples.cert_triage.state import TriageState
from examples.cert_triage.talk import APP
from graphagent import END, START, GraphAgent, StateGraph
from graphagent.agents import ProgramResult, RunOptions
from graphagent.errors import ExecutorUnavailable, RunError
from graphagent.execution import CodeExecutor
from runner import Runner
from runner.artifacts import SqlArtifacts
from runner.execution import LocalExecutor, SandboxExecutor
from runner.sessions import SqlSessions
from runner.skills import SkillDirectory

SKILLS = Path(__file__).with_name("skills")
DIAGNOSIS = "diagnosis.md"


class DiagnosisState(BaseModel):
    """The facts of a triage, and what the skill's script made of them."""

    facts: dict[str, Any] = {}
    result: ProgramResult | None = None


graph = (
    StateGraph(DiagnosisState, name="diagnosis")
    .add_skill_node(
        "diagnose",
        "diagnose-tls",
        ["python3", "scripts/report.py"],
        key="result",
        input_mapper=lambda state: state.facts,
        save=True,
    )
    .add_edge(START, "diagnose")
    .add_edge("diagnose", END)
    .compile()
)


async def opened_executor() -> CodeExecutor:
    """The sandbox, or where there can't be one this machine: the script is this example's own."""
    sandbox = SandboxExecutor()
    try:
        await sandbox.open("probe")
    except ExecutorUnavailable:
        return LocalExecutor()
    return sandbox


async def diagnose(database: str, sample: Sample, states: list[TriageState]) -> tuple[str, list[tuple[int, str]]]:
    """The executor that was there, and of each state of the triage the version and the text of its diagnosis; the
    versions begin anew."""
    sessions, artifacts, executor = SqlSessions(database), SqlArtifacts(database), await opened_executor()
    session = f"{sample.name}-diagnosis"
    key = key_of(sample)._replace(session=session)
    made: list[tuple[int, str]] = []
    try:
        await artifacts.delete(key, DIAGNOSIS)
        agent = GraphAgent("diagnosis", graph)
        services: dict[str, Any] = {"sessions": sessions, "artifacts": artifacts, "executor": executor}
        async with Runner(APP, agent, skills=SkillDirectory(SKILLS), **services) as runner:
            for state in states:
                facts = report_of(state).model_dump(mode="json")
                options = RunOptions(state={"facts": facts})
                last = [event async for event in runner.run(USER, session, "diagnose", options)][-1]
                if last.extensions["outcome"] != "completed":
                    raise RunError(
                        f"the diagnosis is {last.extensions['outcome']}: {last.error and last.error.message}"
                    )
                found = await artifacts.load(key, DIAGNOSIS)
                assert found is not None
                made.append((found.version, found.data.decode()))
    finally:
        await executor.aclose()
        await sessions.aclose()
        await artifacts.aclose()
    return executor.name, made
