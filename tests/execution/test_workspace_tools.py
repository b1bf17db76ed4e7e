"""The tools of a workspace, called by an agent: what a model may run, talk to and keep."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.dying import Died, Dying

from graphagent import LLMAgent, MemoryCheckpoints
from graphagent.agents.invocation import RunOptions
from graphagent.errors import ToolError, UsageError
from graphagent.execution import MIB, ExecutionLimits, Program, Ran, Workspace
from graphagent.ledger import SessionKey
from graphagent.models import ScriptedModel
from runner import Runner
from runner.artifacts import InMemoryArtifacts
from runner.execution import CommandPolicy, ExecRules, LocalExecutor, WorkspaceTools
from runner.execution.exec_arguments import directory, shown
from runner.execution.keys import workspace_key
from runner.execution.talking import MOST_RUNNING
from runner.sessions import InMemorySessions
from runner.skills.running import workspace_key as key_of_skills

pytestmark = pytest.mark.anyio
KEY = SessionKey("app", "ann", "s1")


class Bench:
    """An agent with the tools. Each call of `ask` is a turn; the workspace and its programs outlive it."""

    def __init__(self, executor: LocalExecutor, rules: ExecRules | None = None) -> None:
        self.executor, self.rules = executor, rules
        self.tools = WorkspaceTools(executor, rules=rules)
        self.artifacts = InMemoryArtifacts()
        self.sessions = InMemorySessions()
        self.offered: list[str] = []

    async def ask(self, tool: str, user: str = "ann", **arguments: Any) -> Any:
        """The result of a call as the model reads it: text if it is an error."""
        model = ScriptedModel([{"tool_calls": [{"name": tool, "arguments": arguments}]}, "done"])
        agent = LLMAgent("bot", model, tools=[self.tools])
        async with Runner("app", agent, sessions=self.sessions, artifacts=self.artifacts) as runner:
            assert await runner.run_text(user, "s1", "go") == "done"
        self.offered = [one.name for one in model.requests[0].tools]
        text = model.requests[-1].messages[-1].text
        return text if text.startswith("Error") else json.loads(text)

    async def exec(self, command: str, **more: Any) -> Any:
        """The result of a command."""
        return await self.ask("workspace_exec", command=command, **more)

    async def room(self, user: str = "ann") -> Workspace:
        """The workspace of a user's session."""
        return await self.executor.open(workspace_key(SessionKey("app", user, "s1")))


@pytest.fixture
async def executor() -> AsyncIterator[LocalExecutor]:
    """An executor that is gone after the test."""
    made = LocalExecutor()
    yield made
    await made.aclose()


@pytest.fixture
async def bench(executor: LocalExecutor) -> AsyncIterator[Bench]:
    """An agent with a workspace."""
    made = Bench(executor)
    yield made
    await made.tools.aclose()


async def test_how_a_command_ended_is_a_result(bench: Bench) -> None:
    """Both streams in their order, exit code, input, environment and directory; also if it failed or took too long."""
    found = await bench.exec(
        "echo a; echo b >&2; cat; echo $OWN; pwd; exit 3", stdin="in\n", env={"OWN": "own"}, cwd="out"
    )
    assert found["output"].startswith("a\nb\nin\nown\n")
    assert found["output"].endswith("/out\n")
    assert (found["status"], found["exit_code"]) == ("exited", 3)
    found = await bench.exec("sleep 1000", timeoutSec=0.2)
    assert found["timed_out"]
    assert "limit of time" in found["stopped"]
    assert (await bench.exec("test -f out/kept"))["exit_code"] == 1
    await bench.exec("touch out/kept")
    assert (await bench.exec("test -f out/kept"))["exit_code"] == 0
    assert set(bench.offered) == {
        "workspace_exec",
        "workspace_write_stdin",
        "workspace_kill_session",
        "workspace_save_artifact",
    }


async def test_case_31_a_working_directory_outside_is_an_error(bench: Bench) -> None:
    """`../x` and `work/*` are refused, and so is what is no directory of the workspace; nothing runs."""
    for cwd in ("../x", "work/*", "/etc", "home", "work/../../x", "$HOME", "work\\..", "${RUN}", ".put"):
        told = await bench.exec("touch ran", cwd=cwd)
        assert told.startswith("Error"), cwd
    assert "glob" in await bench.exec("touch ran", cwd="work/*")
    await bench.exec("ln -s /tmp out/away; mkdir work/sub")
    assert "escapes workspace" in await bench.exec("touch ran", cwd="out/away")
    assert "no directory" in await bench.exec("touch ran", cwd="work/none")
    assert not (await (await bench.room()).collect(["**/ran"])).files
    for cwd in (".", "", "work/sub", "$WORK_DIR/sub", "${WORK_DIR}/sub", "./work"):
        assert (await bench.exec("true", cwd=cwd))["exit_code"] == 0, cwd


@pytest.mark.parametrize(
    "bad",
    [{}, {"command": " "}, {"command": 3}, {"command": "true", "timeout": -1}, {"command": "a", "x": 1}],
    ids=repr,
)
async def test_arguments_that_do_not_fit(bench: Bench, bad: dict[str, Any]) -> None:
    """The model is told what is wrong."""
    assert (await bench.ask("workspace_exec", **bad)).startswith("Error")


async def test_what_only_a_system_refuses_is_told(bench: Bench) -> None:
    """A NUL in a command, and a variable without a name, are results that the model reads."""
    assert "NUL" in await bench.exec("echo \0")
    assert "environment variable" in await bench.exec("true", env={"": "1"})


async def test_a_policy_decides_before_anything_runs(executor: LocalExecutor) -> None:
    """Only listed programs, no shell, and an environment without what steers them."""
    rules = ExecRules(CommandPolicy(allow=("ls", "cat", "printenv")))
    bench = Bench(executor, rules)
    for command in ("touch out/x", "ls > out/x", "ls | sh", "cat $(ls)", "ls && touch out/x"):
        assert (await bench.exec(command)).startswith("Error"), command
    assert not (await (await bench.room()).collect(["out/**"])).files
    found = await bench.exec("ls -d work | cat; printenv", env={"LD_PRELOAD": "x", "PATH": "/", "OWN": "1"})
    assert found["exit_code"] == 0
    lines = found["output"].splitlines()
    assert lines[0] == "work"
    assert "OWN=1" in lines
    assert not any(line.startswith("LD_PRELOAD") or line == "PATH=/" for line in lines)


async def test_long_output_keeps_both_ends(executor: LocalExecutor) -> None:
    """The model is shown the first and the last half, and told how much there was."""
    bench = Bench(executor, ExecRules(output_bytes=20))
    found = await bench.exec("echo first; seq 1000; echo last")
    assert found["output"].startswith("first\n")
    assert found["output"].endswith("last\n")
    assert "[output truncated]" in found["output"]
    assert found["truncated"]
    assert found["total_bytes"] == 3893 + 11
    assert shown("é".encode() * 10, 7) == ("é\n...[output truncated]...\né", True)


async def test_a_command_that_goes_on_is_talked_to(bench: Bench) -> None:
    """Started on a terminal, given input, asked again after its end; another user's session doesn't know it."""
    found = await bench.exec("read name; echo hello $name; exit 4", tty=True, yield_time_ms=0)
    assert found["status"] == "running"
    id = found["session_id"]
    assert "unknown session_id" in await bench.ask("workspace_write_stdin", user="bob", session_id=id, chars="x")
    assert "unknown session_id" in await bench.ask("workspace_kill_session", user="bob", session_id=id)
    told = await bench.ask("workspace_write_stdin", session_id=id, chars="ann", submit=True, yield_time_ms=20_000)
    assert (told["status"], told["exit_code"]) == ("exited", 4)
    assert "hello ann" in told["output"]
    assert told["offset"] == found["next_offset"]
    assert "has ended" in await bench.ask("workspace_write_stdin", session_id=id, chars="x")


async def test_a_command_in_the_background_is_ended(bench: Bench) -> None:
    """It goes on after its turn until it is killed; one that ends in its time is a result at once; there are not more
    than so many."""
    found = await bench.exec("echo up; sleep 1000", background=True)
    told = await bench.ask("workspace_write_stdin", session_id=found["session_id"], yield_time_ms=0)
    assert told["status"] == "running"
    for _ in range(2):
        killed = await bench.ask("workspace_kill_session", session_id=found["session_id"])
        assert killed["exit_code"] < 0
    assert (await bench.exec("echo a", yield_time_ms=20_000))["status"] == "exited"
    for _ in range(MOST_RUNNING):
        assert (await bench.exec("sleep 1000", background=True))["status"] == "running"
    assert "are running" in await bench.exec("sleep 1000", background=True)


async def test_case_37_which_files_are_kept_as_artifacts(bench: Bench) -> None:
    """One of 65 MiB is refused, and so is one that isn't there; `/out/a.txt` is `out/a.txt`."""
    room = await bench.room()
    await room.run(Program(("truncate", "-s", "65M", "out/big"), limits=ExecutionLimits(file_bytes=100 * MIB)))
    await room.put("out/a.txt", b"one")
    assert f"at most {64 * MIB}" in await bench.ask("workspace_save_artifact", path="out/big")
    assert "no file 'out/none'" in await bench.ask("workspace_save_artifact", path="out/none")
    first = await bench.ask("workspace_save_artifact", path="out/a.txt")
    assert first == {
        "path": "out/a.txt",
        "saved_as": "a.txt",
        "version": 0,
        "ref": "artifact://a.txt@0",
        "mime_type": "text/plain",
        "size_bytes": 3,
    }
    await room.put("out/a.txt", b"two")
    assert (await bench.ask("workspace_save_artifact", path="/out/a.txt"))["ref"] == "artifact://a.txt@1"
    assert await bench.artifacts.names(KEY) == ["a.txt"]
    kept = await bench.artifacts.load(KEY, "a.txt", 0)
    assert kept is not None
    assert kept.data == b"one"


async def test_what_is_no_file_to_keep(bench: Bench) -> None:
    """Directories, globs, other places, and links that lead out."""
    room = await bench.room()
    await room.run(Program(("sh", "-c", "mkdir work/d; ln -s /etc/passwd out/l; echo x > skills/s")))
    for path in ("work/d", "out/*", "skills/s", "../x", "out", "", "out/l", "work/../../x"):
        assert (await bench.ask("workspace_save_artifact", path=path)).startswith("Error"), path
    assert await bench.artifacts.names(KEY) == []


async def test_where_there_is_nothing_to_work_with(executor: LocalExecutor) -> None:
    """Without a session no tool is offered, without artifacts none that keeps, without an executor the run says so."""
    model = ScriptedModel(["done", "done", "done"])
    async with Runner("app", LLMAgent("bot", model, tools=[WorkspaceTools()]), executor=executor) as runner:
        await runner.run_text("ann", "s1", "go")
    assert "workspace_save_artifact" not in {one.name for one in model.requests[-1].tools}
    async with Runner("app", LLMAgent("bot", model, tools=[WorkspaceTools()])) as runner:
        events = [event async for event in runner.run("ann", "s1", "go")]
    assert events[-1].error is not None
    assert "Runner(executor=...)" in events[-1].error.message
    with pytest.raises(UsageError, match="more than 0 seconds"):
        ExecRules(output_bytes=0)
    with pytest.raises(ToolError):
        directory("work/[a]")


class Silent:
    """An executor whose programs can't be talked to: what another executor may be like."""

    name, isolated = "silent", True

    def __init__(self, executor: LocalExecutor) -> None:
        self._executor = executor

    async def open(self, key: str) -> Any:
        """A workspace without `start`."""
        return Mute(await self._executor.open(key))


class Mute:
    """A workspace that only runs programs to their end."""

    def __init__(self, room: Workspace) -> None:
        self._room, self.key = room, room.key

    async def run(self, program: Program) -> Ran:
        """As the other one does."""
        return await self._room.run(program)


async def test_an_executor_that_can_not_talk(executor: LocalExecutor) -> None:
    """The tools for talking aren't offered, and a command that would need them is told so."""
    bench = Bench(Silent(executor))  # type: ignore[arg-type]
    assert "can't talk" in await bench.exec("true", background=True)
    assert (await bench.exec("echo a"))["output"] == "a\n"
    assert set(bench.offered) == {"workspace_exec", "workspace_save_artifact"}


def test_the_workspace_is_the_one_of_the_sessions_skills() -> None:
    """Commands of skills and of these tools meet in one workspace, and no two sessions do."""
    assert workspace_key(KEY) == key_of_skills(KEY)
    keys = [
        SessionKey("a", "b", "c"),
        SessionKey("a", "b,", "c"),
        SessionKey("a/b", "", "c"),
        SessionKey("a", "c", "b"),
    ]
    assert len({workspace_key(key) for key in keys}) == len(keys)


@pytest.mark.parametrize("repeatable", [False, True])
async def test_a_command_is_not_repeated_after_a_crash(
    executor: LocalExecutor, tmp_path: Path, repeatable: bool
) -> None:
    """Dead at each write of a turn, before and after it: going on, the command has run at most once and the run says
    that its outcome is not known, unless commands may run twice; then it runs again, and the turn ends."""
    ends = set()
    for at in range(1, 30):
        for when in ("before", "after"):
            log = tmp_path / f"log-{at}-{when}"
            log.write_text("")
            sessions, kept = InMemorySessions(), MemoryCheckpoints()
            tools = WorkspaceTools(executor, rules=ExecRules(repeatable=repeatable))
            asks = {"tool_calls": [{"name": "workspace_exec", "arguments": {"command": f"echo ran >> {log}"}}]}

            def answer(request: Any, asks: Any = asks) -> Any:
                return "done" if request.messages[-1].role == "tool" else asks

            def runner(store: Any, tools: Any = tools, answer: Any = answer, sessions: Any = sessions) -> Runner:
                agent = LLMAgent("bot", ScriptedModel(answer), tools=[tools])
                return Runner("app", agent, sessions=sessions, checkpoints=store)

            dying = Dying(kept, at, when)
            try:
                await runner(dying).run_text("ann", "s1", "go", RunOptions(request_id="r1"))
            except (Died, BaseExceptionGroup):
                assert dying.dead
            if dying.writes < at:
                assert ends == ({"done"} if repeatable else {"done", "unknown"})
                return
            stored = await sessions.get(KEY)
            if stored is not None and stored.events and stored.events[-1].text == "done":
                continue
            again = runner(kept)
            events = [event async for event in again.run("ann", "s1", None, RunOptions(answers={}))]
            done = any(event.text == "done" for event in events)
            ends.add("done" if done else "unknown")
            assert log.read_text().count("ran") <= (2 if repeatable else 1), (at, when)
            if not done:
                assert "outcome" in events[-1].error.message, events[-1].error
            await again.close()
    raise AssertionError("the turn has more writes than were tried")
