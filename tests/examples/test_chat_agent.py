"""The calendar agent: what its demo prints, with a script and with a model behind a real socket."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.openai_server import Answer, call, chunk, openai_server, says

from examples.chat_agent.agent import agent
from examples.chat_agent.demo import main
from examples.chat_agent.script import HELP

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
TALK = """\
> How many days are there from 2026-01-31 to 2026-03-01?
  days_between(start="2026-01-31", end="2026-03-01")
  weekday(day="2026-03-01")
    -> 29
    -> Sunday
From 2026-01-31 to 2026-03-01 it is 29 days. 2026-03-01 is a Sunday.
> And what did you say that day of the week is?
  weekday(day="2026-03-01")
    -> Sunday
2026-03-01 is a Sunday.
"""


def test_the_demo_talks_in_two_turns(capsys: pytest.CaptureFixture[str]) -> None:
    """Calls in their order, results under them, an answer a turn; the second turn needs the first."""
    assert main([]) == 0
    assert capsys.readouterr().out == TALK


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Hello", HELP),
        ("Which day is 2026-13-01?", "don't fit: 'day' Input should be a valid date"),
        ("2026-03-01 until 2026-02-27", "From 2026-03-01 to 2026-02-27 it is -2 days."),
    ],
)
def test_what_a_message_leads_to(capsys: pytest.CaptureFixture[str], message: str, shown: str) -> None:
    """No date: no tool; no such date: the tool's error is told; dates backwards: a negative number."""
    assert main([message]) == 0
    assert shown in capsys.readouterr().out


def test_the_talk_goes_on_in_another_process(tmp_path: Path) -> None:
    """With --db and --session the date of the first process is there in the second; in another session it is not."""
    start = [sys.executable, "-W", "error", "-m", "examples.chat_agent.demo", "--db", "sqlite:///talk.db"]
    shown = []
    for session, message in (("a", "Which day is 2026-03-01?"), ("a", "Once more?"), ("b", "Once more?")):
        done = subprocess.run(
            [*start, "--session", session, message],
            cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        shown.append(done.stdout.splitlines()[-1])

    assert shown == ["2026-03-01 is a Sunday.", "2026-03-01 is a Sunday.", HELP]


def test_it_is_a_graph_of_two_nodes() -> None:
    """Model and tools, and the ways between them."""
    assert list(agent.graph.nodes) == ["model", "tools"]
    assert agent.graph.warnings == ()


@pytest.mark.anyio
async def test_the_demo_talks_with_a_real_model(tmp_path: Path) -> None:
    """`--model` goes through litellm over a socket: the model is shown both tools, and what the one it called said."""

    def answer(body: dict[str, Any]) -> Answer:
        if body["messages"][-1]["role"] == "tool":
            return says("It is a ", body["messages"][-1]["content"], ".")
        return Answer([chunk(tool_calls=[call(0, "c1", "weekday", '{"day": "2026-03-01"}')]), chunk("tool_calls")])

    command = [sys.executable, "-m", "examples.chat_agent.demo", "Which day is 2026-03-01?", "--model", "openai/small"]
    async with openai_server(answer) as server:
        environment = {**ENVIRONMENT, "OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "none"}
        done = await anyio.run_process(command, env=environment, cwd=tmp_path)
    asked = server.requests[0]

    assert done.stdout.decode().splitlines()[-1] == "It is a Sunday."
    assert [one["function"]["name"] for one in asked["tools"]] == ["days_between", "weekday"]
    assert [one["role"] for one in server.requests[1]["messages"]] == ["system", "user", "assistant", "tool"]


def test_the_block_in_the_docs_runs(tmp_path: Path) -> None:
    """The program in docs/agents.md runs as it stands, and prints the answer."""
    text = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    block = text.partition("```python\n")[2].partition("```")[0]
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "All is well.\n"
