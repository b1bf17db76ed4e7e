"""Commands of skills that are talked to while they run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graphagent import LLMAgent
from graphagent.execution import CodeExecutor, Program, Ran, Workspace
from graphagent.models import ScriptedModel
from runner import Runner
from runner.execution import LocalExecutor
from runner.sessions import InMemorySessions
from runner.skills import SkillDirectory, Skills
from runner.skills.interactive import MOST_RUNNING, interaction

pytestmark = pytest.mark.anyio
ASK = """
name = input("Your name: ")
print("1) red")
print("2) blue")
colour = input("Choose a number\\n")
open("out/answer.txt", "w").write(f"{name} {colour}")
raise SystemExit(4)
"""
WAIT = {"yield_ms": 20_000}


@pytest.fixture
async def executor() -> AsyncIterator[LocalExecutor]:
    """An executor that is gone after the test."""
    made = LocalExecutor()
    yield made
    await made.aclose()


class Bench:
    """An agent with the skill `demo` and all tools. Each call of `ask` is a turn; programs outlive it."""

    def __init__(self, executor: CodeExecutor, root: Path) -> None:
        self.skills = Skills(SkillDirectory(root), profile="full", executor=executor)
        self.sessions = InMemorySessions()
        self.offered: list[str] = []

    async def ask(self, tool: str, user: str = "ann", **arguments: Any) -> Any:
        """The result of a call as the model reads it: text if it is an error."""
        model = ScriptedModel([{"tool_calls": [{"name": tool, "arguments": arguments}]}, "done"])
        async with Runner("app", LLMAgent("bot", model, tools=[self.skills]), sessions=self.sessions) as runner:
            await runner.run_text(user, "s1", "go")
        self.offered = [one.name for one in model.requests[0].tools]
        text = model.requests[-1].messages[-1].text
        return text if text.startswith("Error") else json.loads(text)


@pytest.fixture
async def bench(executor: LocalExecutor, root: Path, write_skill) -> AsyncIterator[Bench]:
    """A bench whose skill has a script that asks."""
    write_skill("demo", ask_DOT_py=ASK)
    made = Bench(executor, root)
    yield made
    await made.skills.aclose()


@pytest.mark.parametrize("tty", [False, True])
async def test_a_program_is_talked_to_over_turns(bench: Bench, tty: bool) -> None:
    """A program that asks waits for the answer, also into the next turn; what it asks for is told, and in the end its
    status and the files that it left."""
    first = await bench.ask("skill_exec", skill="demo", command="python3 -u ask.py", tty=tty, **WAIT)
    assert first["status"] == "running"
    assert first["output"].endswith("Your name: ")
    assert first["interaction"] == {"needs_input": True, "kind": "prompt", "hint": "Your name:"}
    id = first["session_id"]
    second = await bench.ask("skill_write_stdin", session_id=id, chars="Ann", submit=True, **WAIT)
    assert second["interaction"]["kind"] == "selection"
    assert second["offset"] == first["next_offset"]
    third = await bench.ask("skill_write_stdin", session_id=id, chars="2\n", **WAIT)
    while third["status"] == "running":
        third = await bench.ask("skill_poll_session", session_id=id, **WAIT)
    assert (third["status"], third["exit_code"]) == ("exited", 4)
    assert third["result"]["primary_output"]["content"] == "Ann 2"
    again = await bench.ask("skill_poll_session", session_id=id)
    assert again["result"] == third["result"]
    assert "ended" in await bench.ask("skill_write_stdin", session_id=id, chars="x")


async def test_programs_belong_to_their_session(bench: Bench) -> None:
    """Another user's session can neither hear, answer nor end a program; who has it can end it."""
    [started] = [await bench.ask("skill_exec", skill="demo", command="python3 -u ask.py", **WAIT)]
    id = started["session_id"]
    for tool in ("skill_poll_session", "skill_write_stdin", "skill_kill_session"):
        assert f"unknown session_id: {id}" in await bench.ask(tool, user="ben", session_id=id)
    assert "unknown session_id: nothing" in await bench.ask("skill_poll_session", session_id="nothing")
    told = await bench.ask("skill_kill_session", session_id=id)
    assert told == {"ok": True, "session_id": id, "status": "exited"}
    assert (await bench.ask("skill_poll_session", session_id=id))["status"] == "exited"


async def test_a_session_has_only_so_many_programs(bench: Bench) -> None:
    """A session that has as many programs as it may is told to end one; others can start theirs, and one that ends by
    itself makes room."""
    waiting = {"skill": "demo", "command": "read x", "yield_ms": 0}
    ids = [(await bench.ask("skill_exec", **waiting))["session_id"] for _ in range(MOST_RUNNING)]
    assert f"{MOST_RUNNING} programs are running" in await bench.ask("skill_exec", **waiting)
    assert (await bench.ask("skill_exec", user="ben", **waiting))["status"] == "running"
    ended = await bench.ask("skill_write_stdin", session_id=ids[0], submit=True, **WAIT)
    while ended["status"] == "running":
        ended = await bench.ask("skill_poll_session", session_id=ids[0], **WAIT)
    assert (await bench.ask("skill_exec", **waiting))["status"] == "running"


async def test_only_the_last_lines_are_shown(bench: Bench) -> None:
    """Of what a program says only so many of its last lines are shown; offsets count all of it."""
    told = await bench.ask("skill_exec", skill="demo", command="seq 100; read x", poll_lines=3, **WAIT)
    assert told["output"] == "99\n100\n"
    assert told["next_offset"] == len("".join(f"{number}\n" for number in range(1, 101)))


class OneShot:
    """An executor whose workspaces run programs to their end only."""

    name, isolated = "one-shot", False

    def __init__(self, inner: LocalExecutor) -> None:
        self.inner = inner

    async def open(self, key: str) -> Workspace:
        """A workspace without `start`."""
        room = await self.inner.open(key)

        class Plain:
            put, read, remove, collect = room.put, room.read, room.remove, room.collect
            key = room.key

            async def run(self, program: Program) -> Ran:
                return await room.run(program)

        return Plain()

    async def discard(self, key: str) -> None:
        """Passed on."""
        await self.inner.discard(key)

    async def aclose(self) -> None:
        """Passed on."""
        await self.inner.aclose()


async def test_talking_is_offered_where_it_can_be_done(executor: LocalExecutor, root: Path, write_skill) -> None:
    """Where the executor can't talk to programs, those four tools aren't offered; one that is called all the same says
    why, and `skill_run` works."""
    write_skill("demo")
    bench = Bench(OneShot(executor), root)
    told = await bench.ask("skill_exec", skill="demo", command="true")
    assert "executor 'one-shot' can't talk to a program that runs" in told
    assert bench.offered == ["skill_load", "skill_list_docs", "skill_select_docs", "skill_run"]
    assert (await bench.ask("skill_run", skill="demo", command="echo ran"))["stdout"] == "ran\n"


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("Name: ", "prompt"),
        ("Sure?", "prompt"),
        ("Press Enter to go on...", "prompt"),
        ("Please enter the number of your choice\n> ", "selection"),
        ("1. red\n2. blue\n> ", "selection"),
        ("[1] red\n[2] blue\n", "selection"),
        ("building 10%\n", ""),
        ("", ""),
    ],
)
def test_what_asks_for_input(output: str, kind: str) -> None:
    """A question at the end, or a numbered choice, is taken as one for input; plain progress isn't."""
    found = interaction(output)
    assert ("" if found is None else found["kind"]) == kind
