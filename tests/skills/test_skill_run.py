"""Commands of skills, run for real through an agent: how they end, what they leave, what they may not do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.dying import Died, Dying

from graphagent import LLMAgent, MemoryCheckpoints
from graphagent.agents.invocation import RunOptions
from graphagent.agents.tool import ToolContext
from graphagent.errors import ExecutorUnavailable, ToolError, UsageError
from graphagent.execution import CodeExecutor, ExecutionLimits
from graphagent.ledger import SessionKey
from graphagent.models import ScriptedModel
from runner import Runner
from runner.artifacts import InMemoryArtifacts
from runner.execution import LocalExecutor, SandboxExecutor
from runner.sessions import InMemorySessions
from runner.skills import RunRules, SkillDirectory, Skills
from runner.skills.command import directory_for, environment, inside, plain_argv
from runner.skills.outputs import clipped
from runner.skills.running import workspace_key
from runner.skills.staging import Staging

pytestmark = pytest.mark.anyio
KEY = SessionKey("app", "ann", "s1")


@pytest.fixture
async def executor() -> AsyncIterator[LocalExecutor]:
    """An executor that is gone after the test."""
    made = LocalExecutor()
    yield made
    await made.aclose()


class Bench:
    """An agent with the skill `demo` whose model asks for what the test says, and tells the results."""

    def __init__(self, executor: CodeExecutor, root: Path, rules: RunRules | None = None, **options: Any) -> None:
        self.executor, self.root = executor, root
        self.rules = rules or RunRules()
        self.artifacts = options.pop("artifacts", None)
        self.sessions = InMemorySessions()
        self.options = {"profile": "full", **options}

    async def ask(self, *calls: tuple[str, dict[str, Any]], user: str = "ann") -> list[str]:
        """The results of calls, one after the other, as the model reads them."""
        answers: list[Any] = [{"tool_calls": [{"name": name, "arguments": given}]} for name, given in calls]
        model = ScriptedModel([*answers, "done"])
        skills = Skills(SkillDirectory(self.root), executor=self.executor, run=self.rules, **self.options)
        agent = LLMAgent("bot", model, tools=[skills])
        async with Runner("app", agent, sessions=self.sessions, artifacts=self.artifacts) as runner:
            assert await runner.run_text(user, "s1", "go") == "done"
        await skills.aclose()
        return [message.text for message in model.requests[-1].messages if message.role == "tool"][-len(calls) :]

    async def run(self, command: str, user: str = "ann", **arguments: Any) -> dict[str, Any]:
        """The result of one command of the skill."""
        [told] = await self.ask(("skill_run", {"skill": "demo", "command": command, **arguments}), user=user)
        assert not told.startswith("Error"), told
        found: dict[str, Any] = json.loads(told)
        return found

    async def refused(self, command: str, **arguments: Any) -> str:
        """What the model is told of a command that can't be run."""
        [told] = await self.ask(("skill_run", {"skill": "demo", "command": command, **arguments}))
        assert told.startswith("Error"), told
        return told


@pytest.fixture
def demo(root: Path, write_skill) -> Path:
    """A skill with a script."""
    directory: Path = write_skill("demo", "Shows things.", scripts__hello_DOT_py="print('hello')", data_DOT_txt="data")
    return directory


@pytest.fixture
def bench(executor: LocalExecutor, root: Path, demo: Path) -> Bench:
    """An agent with the skill, for commands in a shell."""
    return Bench(executor, root)


# -- how a command ends --------------------------------------------------------------------------


async def test_case_11_an_exit_status_is_a_result(bench: Bench) -> None:
    """A command that exits 3 is a result with that status and what it printed, not an error."""
    told = await bench.run("python3 scripts/hello.py; echo oops >&2; exit 3")
    assert (told["exit_code"], told["stdout"], told["stderr"]) == (3, "hello\n", "oops\n")
    assert told["timed_out"] is False
    assert told["duration_ms"] > 0


async def test_case_12_a_timeout_is_a_result(bench: Bench) -> None:
    """A command that takes longer than it may is ended, and the result says so."""
    told = await bench.run("echo before; sleep 60; echo after", timeout=0.5)
    assert told["timed_out"] is True
    assert told["stdout"] == "before\n"
    assert told["exit_code"] != 0


async def test_case_13_long_output_is_cut_between_characters(bench: Bench) -> None:
    """Of 20 KiB that a command prints, 16 KiB are kept, up to the last whole character, with a warning."""
    told = await bench.run("python3 -c \"print('é' * 10240 + 'x', end='')\"")
    assert told["stdout"] == "é" * 8192
    assert told["warnings"] == ["stdout truncated"]
    odd = await bench.run("python3 -c \"print('x' + 'é' * 10240, end='')\"")
    assert odd["stdout"] == "x" + "é" * 8191
    assert clipped("aé".encode(), 2) == ("a", True)
    assert clipped(b"a\xff", 2) == ("a\ufffd", False)


async def test_case_14_saving_without_a_service_is_a_warning(bench: Bench) -> None:
    """Where nobody keeps artifacts, files come back all the same, with a warning; also outside of a run."""
    told = await bench.run("echo text > out/a.txt", output_files=["out/a.txt"], save_as_artifacts=True)
    [file] = told["output_files"]
    assert (file["name"], file["content"], file["ref"]) == ("out/a.txt", "text\n", "workspace://out/a.txt")
    assert told["warnings"] == ["output files were not saved as artifacts: artifact service is not configured"]
    [tool] = [
        one
        for one in await Skills(SkillDirectory(bench.root), executor=bench.executor, profile="full").tools()
        if one.spec.name == "skill_run"
    ]
    asked = {"skill": "demo", "command": "echo > out/a.txt; cat data.txt", "output_files": ["out/*"]}
    alone: Any = await tool.call(
        {**asked, "save_as_artifacts": True, "omit_inline_content": True},
        ToolContext("c1", "skill_run", None),  # type: ignore[arg-type]
    )
    assert alone.content["stdout"] == "data"
    assert alone.content["output_files"][0]["content"] == "\n"
    assert alone.content["warnings"] == [
        "omit_inline_content has no effect outside of a run",
        "output files were not saved as artifacts: invocation is missing from context",
    ]


async def test_case_15_only_loaded_skills_run(bench: Bench) -> None:
    """With `require_loaded` a command of a skill that isn't loaded is an error; after skill_load it runs."""
    bench.rules = RunRules(require_loaded=True)
    run = ("skill_run", {"skill": "demo", "command": "echo ran"})
    before, loaded, after = await bench.ask(run, ("skill_load", {"skill": "demo"}), run)
    assert 'skill_run requires skill_load first for "demo"' in before
    assert loaded == "loaded: demo"
    assert json.loads(after)["stdout"] == "ran\n"


async def test_case_31_a_cwd_outside_is_the_skills_directory(bench: Bench) -> None:
    """A `cwd` that is absolute or leads out of the skill is the skill's directory, which a warning says."""
    for cwd in ("../x", "/etc", "a/../../..", "~", "$HOME"):
        told = await bench.run("pwd; ls", cwd=cwd)
        assert told["stdout"].splitlines()[0].endswith("/skills/demo"), cwd
        assert "data.txt" in told["stdout"]
        [warning] = told["warnings"]
        assert "ran in the skill's directory" in warning
    assert "warnings" not in await bench.run("pwd", cwd="scripts")
    assert (await bench.run("pwd", cwd="$WORK_DIR"))["stdout"].endswith("/work\n")
    assert "nowhere" in await bench.refused("pwd", cwd="nowhere")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("", "skills/demo"),
        ("scripts/", "skills/demo/scripts"),
        ("skills/demo/scripts", "skills/demo/scripts"),
        ("$WORK_DIR/inputs", "work/inputs"),
        ("${OUTPUT_DIR}", "out"),
        ("$WORKSPACE_DIR/runs", "runs"),
        ("$SKILLS_DIR/other", "skills/other"),
        ("$WORK_DIR/../../x", None),
        ("$WORKSPACE_DIR/..", None),
        ("$RUN_DIR", None),
        ("skills/demo/../other", None),
        ("a\\b", None),
    ],
)
def test_directories_of_commands(asked: str, expected: str | None) -> None:
    """Directories of the workspace go by their variables, all else is below the skill."""
    found = directory_for(asked, "demo")
    assert found.cwd == (expected or "skills/demo")
    assert bool(found.warning) == (expected is None)
    assert inside("../up", "out") is None


# -- where it runs -------------------------------------------------------------------------------


async def test_the_skill_is_staged_once_and_again_after_an_edit(bench: Bench, demo: Path, write_skill) -> None:
    """The skill's files are there with links to the workspace's folders; they are written again only if they changed,
    and a half staged skill is staged again."""
    listed = await bench.run("ls -A; readlink out work inputs; touch mark")
    assert listed["stdout"].split() == [
        *[".venv", "SKILL.md", "data.txt", "inputs", "out", "scripts", "work"],
        *["../../out", "../../work", "../../work/inputs"],
    ]
    assert "mark" in (await bench.run("ls"))["stdout"]
    write_skill("demo", "Shows things.", data_DOT_txt="new data")
    assert (await bench.run("cat data.txt; ls mark"))["stdout"] == "new data"
    workspace = await bench.executor.open(workspace_key(KEY))
    await workspace.remove("skills/.staged/demo")
    await workspace.remove("skills/demo/data.txt")
    assert (await bench.run("cat data.txt"))["stdout"] == "new data"


async def test_staging_at_once_is_done_once(bench: Bench, demo: Path) -> None:
    """Calls side by side stage a skill one after the other: only the first writes, and none sees a part of it."""
    files = await SkillDirectory(bench.root).files("demo")
    workspace = await bench.executor.open("k")
    staging, seen = Staging(), []

    async def stage() -> None:
        await staging.put(workspace, "demo", files)
        seen.append([one.path for one in (await workspace.collect(["skills/demo/**"])).files])
        await workspace.put("skills/demo/mark", b"")

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(stage)
    staged = [f"skills/demo/{one.path}" for one in files]
    assert [sorted(set(paths) - {"skills/demo/mark"}) for paths in seen] == [staged] * 5
    assert await workspace.read("skills/demo/mark") is not None


async def test_users_and_sessions_have_workspaces_of_their_own(bench: Bench) -> None:
    """What one user's command leaves is nowhere in the workspace of another's."""
    await bench.run("echo secret | tee out/a work/b c", user="ann")
    told = await bench.run("ls -R $WORKSPACE_DIR | grep -c -x '[abc]'", user="ben")
    assert told["stdout"] == "0\n"
    keys = {
        workspace_key(SessionKey(*key))
        for key in (("a", "b", "c"), ("a", "b/c", ""), ("a", "b", "d"), ("a/b", "", "c"))
    }
    assert len(keys) == 4


async def test_the_environment_of_a_command(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this process is inherited; what the skill and the model give is there, except what would change how
    programs are loaded; the skill's own programs come after the others, its `.venv` before them."""
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "x")
    bench.rules = RunRules(env=lambda skill: {"KEY_OF": skill, "BOTH": "rules", "LD_PRELOAD": "evil.so"})
    told = await bench.run("env", env={"BOTH": "model", "PATH": "/evil", "DYLD_X": "1", "a b": "1", "BASH_ENV": "f"})
    env = dict(line.split("=", 1) for line in told["stdout"].splitlines())
    assert env["KEY_OF"] == "demo"
    assert env["BOTH"] == "model"
    assert not {"SECRET_OF_THE_SERVER", "LD_PRELOAD", "DYLD_X", "BASH_ENV", "a b"} & set(env)
    path = env["PATH"].split(":")
    assert path[0] == f"{env['SKILLS_DIR']}/demo/.venv/bin"
    assert path[-1] == f"{env['SKILLS_DIR']}/demo/bin"
    assert "/evil" not in path
    assert env["VIRTUAL_ENV"] == f"{env['SKILLS_DIR']}/demo/.venv"
    assert env["SKILL_NAME"] == "demo"
    assert sum("is not passed on" in warning for warning in told["warnings"]) == 5


async def test_input_and_an_editor(bench: Bench) -> None:
    """A command gets its stdin; a program that opens $EDITOR finds the text written; two editors are an error."""
    assert (await bench.run("cat", stdin="typed"))["stdout"] == "typed"
    told = await bench.run('$EDITOR out/message && cat out/message; echo "$VISUAL"', editor_text="it's $HOME\n")
    assert told["stdout"].startswith("it's $HOME\n/")
    assert "give one of them" in await bench.refused("true", editor_text="x", env={"EDITOR": "vi"})


async def test_commands_run_in_the_sandbox(root: Path, demo: Path) -> None:
    """With an isolated executor a skill's commands find its files, write into its folders, and see nothing else."""
    sandbox = SandboxExecutor()
    try:
        await sandbox.open("k")
    except ExecutorUnavailable as error:
        pytest.skip(f"bubblewrap can't be used here: {error}")
    told = await Bench(sandbox, root).run(f"cat data.txt; echo made > out/a; ls {root}")
    assert told["stdout"] == "data"
    assert told["primary_output"]["content"] == "made\n"
    assert told["exit_code"] != 0
    await sandbox.aclose()


# -- lists of commands ---------------------------------------------------------------------------


async def test_with_lists_there_is_no_shell(bench: Bench) -> None:
    """With an allow list a command is one program with arguments: nothing is expanded, and other programs, also by
    another path, and signs of the shell are refused before anything runs."""
    bench.rules = RunRules(allow=("echo", "ls"), deny=("ls",))
    assert (await bench.run("echo '$HOME' * \"a b\""))["stdout"] == "$HOME * a b\n"
    for command in ("cat data.txt", "/bin/echo x", "./echo x", "ECHO x", "''"):
        assert await bench.refused(command)
    assert "'ls' is denied" in await bench.refused("ls")
    for sign in (";", "&", "|", "<", ">", "\n", "\r"):
        assert "only one program" in await bench.refused(f"echo a {sign} ls")
    assert "can't be read" in await bench.refused("echo 'open")
    assert "without a shell" in await bench.refused("echo", editor_text="x")
    warned = await bench.run("echo", env={"IFS": "x", "HOME": "/root", "OK": "1"})
    assert len(warned["warnings"]) == 2


def test_deny_is_by_any_spelling() -> None:
    """A denied command is denied by its name in any case and by any path; an allowed path only as it is written."""
    rules = RunRules(deny=("rm",))
    for command in ("rm -r x", "/bin/rm x", "RM x", "./Rm", "bash -c 'rm x'", "/usr/bin/env rm x", "xargs rm"):
        with pytest.raises(ToolError, match="denied"):
            plain_argv(command, rules)
    assert plain_argv("/bin/ls x", RunRules(allow=("/bin/ls",))) == ("/bin/ls", "x")
    with pytest.raises(ToolError, match="not allowed"):
        plain_argv("ls", RunRules(allow=("/bin/ls",)))
    with pytest.raises(UsageError, match="has no name"):
        RunRules(deny=(" ",))
    assert environment({"A": "b\0"}, "demo", rules)[0] == {}


# -- files ---------------------------------------------------------------------------------------


async def test_what_a_command_makes_is_found(bench: Bench) -> None:
    """Without patterns the first text that the command itself left in `out` is shown; what an earlier one left isn't
    taken for its own."""
    told = await bench.run("echo b > out/b.txt; echo a > out/a.md; printf '\\0' > out/0.bin; echo ' ' > out/00.txt")
    assert told["primary_output"]["name"] == "out/a.md"
    assert told["primary_output"]["content"] == "a\n"
    assert "output_files" not in told
    assert "primary_output" not in await bench.run("true")
    assert (await bench.run("echo B > out/b.txt"))["primary_output"]["content"] == "B\n"


async def test_files_that_are_asked_for(bench: Bench) -> None:
    """Patterns are of the workspace or of the skill's directory; what is no text is named only; nothing outside, and
    nothing through a link that leads out, is collected; limits are said."""
    command = (
        "echo 1 > out/a.txt; printf 'a\\0b' > out/b.txt; printf '\\377' > out/c; echo x > local.txt; ln -s /etc out/d"
    )
    told = await bench.run(command, output_files=["$OUTPUT_DIR/*", "local.txt", "../../../etc/passwd", "out/d/passwd"])
    files = {one["name"]: one for one in told["output_files"]}
    assert set(files) == {"out/a.txt", "out/b.txt", "out/c", "skills/demo/local.txt"}
    assert [name for name, one in files.items() if "content" in one] == ["out/a.txt", "skills/demo/local.txt"]
    assert any("leads out of the workspace" in warning for warning in told["warnings"])
    assert any("workspace refs" in warning for warning in told["warnings"])
    quiet = await bench.run("true", outputs={"globs": ["out/a.txt"], "inline": False})
    assert "content" not in quiet["output_files"][0]
    few = await bench.run("true", outputs={"globs": ["out/*.txt"], "max_files": 1})
    assert len(few["output_files"]) == 1
    assert any("not all output files" in warning for warning in few["warnings"])
    failed = await bench.run("touch out/empty; exit 1", output_files=["out/empty"])
    assert "output_files" not in failed
    assert any("empty output files are left out: out/empty" in warning for warning in failed["warnings"])


async def test_files_become_artifacts_and_inputs(executor: LocalExecutor, root: Path, demo: Path) -> None:
    """Saved files are artifacts of the session under plain names that differ; the event of the result names them; an
    artifact and a file of the workspace can be inputs of a later command."""
    artifacts = InMemoryArtifacts()
    bench = Bench(executor, root, artifacts=artifacts)
    told = await bench.run(
        "mkdir out/x; echo 1 > out/x/a; echo 2 > out/x_a; head -c 3000 /dev/zero > out/large",
        outputs={"globs": ["out/**"], "save": True, "max_file_bytes": 2000},
        artifact_prefix="r-",
    )
    assert sorted(one["name"] for one in told["artifact_files"]) == ["r-2_x_a", "r-x_a"]
    assert any("'out/large' was not saved" in warning for warning in told["warnings"])
    assert await artifacts.names(KEY) == ["r-2_x_a", "r-x_a"]
    session = await bench.sessions.get(KEY)
    assert session is not None
    assert not [key for key in session.state if "artifacts" in key]
    again = await bench.run(
        "cat inputs/r-x_a $WORK_DIR/inputs/sub/copy inputs/b",
        inputs=[
            {"from": "artifact://r-x_a@0"},
            {"from": "workspace://out/x_a", "to": "inputs/sub/copy"},
            {"from": "artifact://r-2_x_a", "to": "$WORK_DIR/inputs/b"},
        ],
    )
    assert sorted(again["stdout"].split()) == ["1", "2", "2"]
    assert [one["to"] for one in again["staged_inputs"]] == [
        "work/inputs/r-x_a",
        "work/inputs/sub/copy",
        "work/inputs/b",
    ]
    for source, to in (
        ("artifact://none", ""),
        ("artifact://r-x_a@7", ""),
        ("workspace://../x", ""),
        ("workspace://none", ""),
        ("host:///etc/passwd", ""),
        ("artifact://r-x_a", "../../x"),
        ("artifact://r-x_a", "$SKILLS_DIR/demo/SKILL.md"),
        ("artifact://r-x_a", "/etc/x"),
    ):
        assert await bench.refused("true", inputs=[{"from": source, "to": to}])


async def test_arguments_that_do_not_fit(bench: Bench) -> None:
    """Wrong arguments are told to the model without running anything, and without their values."""
    assert "command is required" in await bench.refused(" ")
    told = await bench.refused("true", timeout="soon-secret", nonsense=1)
    assert "timeout" in told
    assert "nonsense" in told
    assert "secret" not in told
    [unknown] = await bench.ask(("skill_run", {"skill": "demp", "command": "true"}))
    assert "unknown skill: 'demp'; did you mean 'demo'?" in unknown


# -- a crash in the middle -----------------------------------------------------------------------


@pytest.mark.parametrize("repeatable", [False, True])
async def test_a_command_that_was_cut_off_is_not_run_again(
    executor: LocalExecutor, root: Path, demo: Path, tmp_path: Path, repeatable: bool
) -> None:
    """Killed at every write of a turn, a command that had begun is never run a second time, unless the rules say that
    it may be; a run that can't know whether it ran fails instead of going on."""
    log = tmp_path / "log"
    ends = set()
    for at in range(1, 20):
        for when in ("before", "after"):
            log.write_text("")
            sessions, kept = InMemorySessions(), MemoryCheckpoints()

            def runner(store: Any, sessions: Any = sessions) -> Runner:
                def answer(request: Any) -> Any:
                    call = {"name": "skill_run", "arguments": {"skill": "demo", "command": f"echo ran >> {log}"}}
                    return {"tool_calls": [call]} if request.messages[-1].role == "user" else "done"

                rules = RunRules(repeatable=repeatable, limits=ExecutionLimits(seconds=30))
                skills = Skills(SkillDirectory(root), profile="full", executor=executor, run=rules)
                agent = LLMAgent("bot", ScriptedModel(answer), tools=[skills])
                return Runner("app", agent, sessions=sessions, checkpoints=store)

            dying = Dying(kept, at, when)
            try:
                await runner(dying).run_text("ann", "s1", "go", RunOptions(request_id="r1"))
            except (Died, BaseExceptionGroup):
                assert dying.dead
            if dying.writes < at:
                assert at > 5
                assert ends == ({"done"} if repeatable else {"done", "unknown"})
                return
            stored = await sessions.get(KEY)
            if stored is not None and stored.events and stored.events[-1].text == "done":
                continue
            again = runner(kept)
            events = [event async for event in again.run("ann", "s1", None, RunOptions(answers={}))]
            text = next((event.text for event in reversed(events) if event.text), "")
            ran = log.read_text().count("ran")
            if text == "done":
                ends.add("done")
                assert ran == 1 or (repeatable and ran == 2), (at, when)
            else:
                ends.add("unknown")
                assert ran <= 1, (at, when, text)
                assert events[-1].error is not None
                assert "outcome" in events[-1].error.message, events[-1].error
            await again.close()
    raise AssertionError("the turn has more writes than were tried")
