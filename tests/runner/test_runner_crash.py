"""A process that is killed in the middle of a run, and the run that goes on in another one."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from support.run_agents import APP, KEY, SESSION, USER, all_of, outcome

from graphagent import SqlCheckpoints
from graphagent.agents.function_tool import tool
from graphagent.agents.invocation import RunOptions
from graphagent.agents.llm_agent import LLMAgent
from graphagent.agents.model import Delta, ModelRequest, ToolCallDelta
from runner import Runner
from runner.sessions import SqlSessions

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
DIES = "GRAPHAGENT_TEST_DIES"


class Model:
    """Asks for a tool, then answers; the process dies where the environment says: in that model call."""

    name = "dying"
    context_window = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The answer to the last message."""
        answered = request.messages[-1].role == "tool"
        if os.environ.get(DIES) == ("answer" if answered else "call"):
            os._exit(9)
        if answered:
            yield Delta("fine", finish_reason="stop")
        else:
            call = ToolCallDelta(0, "c1", "note", "{}")
            yield Delta(tool_calls=(call,), finish_reason="tool_calls")


def agent_with(log: Path) -> LLMAgent:
    """An agent whose tool writes a line."""

    @tool
    async def note() -> str:
        """Writes a line."""
        with log.open("a") as file:
            file.write("ran\n")
        return "noted"

    return LLMAgent("agent", Model(), tools=[note])


WORKER = """
import sys, anyio
from pathlib import Path
sys.path[:0] = {path!r}
from support.run_agents import APP, all_of
from test_runner_crash import agent_with
from graphagent import SqlCheckpoints
from runner import Runner
from runner.sessions import SqlSessions

async def main(url, log, session):
    async with SqlCheckpoints(url) as kept:
        async with Runner(APP, agent_with(Path(log)), sessions=SqlSessions(url), checkpoints=kept) as runner:
            await all_of(runner, session=session)

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.kill
@pytest.mark.parametrize("dies", ["call", "answer"])
async def test_a_killed_run_goes_on(database: str, lineage: str, tmp_path: Path, dies: str) -> None:
    """`message=None` takes up a run whose process died: the tool runs once, and each event is in the session once."""
    log = tmp_path / "log"
    source = WORKER.format(path=[str(HERE), str(HERE.parent), str(HERE.parent.parent)])
    environment = {**os.environ, DIES: dies}
    command = [sys.executable, "-c", source, database, str(log), lineage]
    assert (await anyio.run_process(command, env=environment, check=False)).returncode == 9
    sessions = SqlSessions(database)
    async with SqlCheckpoints(database) as kept:
        async with Runner(APP, agent_with(log), sessions=sessions, checkpoints=kept) as runner:
            assert outcome(await all_of(runner, None, session=lineage)) == "completed"
        found = await sessions.get(KEY._replace(session=lineage))
        await sessions.aclose()
    assert found is not None
    assert [event.text for event in found.events] == ["hello", "", "noted", "fine"]
    assert log.read_text() == "ran\n"


async def test_nothing_to_go_on_with_is_said() -> None:
    """`message=None` in a session in which nothing ran is refused, and leaves nothing behind."""
    async with Runner(APP, LLMAgent("agent", Model())) as runner:
        with pytest.raises(Exception, match="no lineage"):
            await runner.run_text(USER, SESSION, None, RunOptions())
