"""The tools that talk to a command of a skill while it runs: `skill_exec` and its companions.

Source: spec/services, 2.8. A program lives in this process, so none is there any more after a crash, and none is ever
started or written to a second time. A session talks to its own programs only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from graphagent.agents.function_tool import FunctionTool, tool
from graphagent.agents.model import ToolSpec
from graphagent.agents.tool import ToolContext, ToolResult
from graphagent.errors import ToolError, UsageError
from graphagent.execution import InteractiveProgram, InteractiveWorkspace, Talk
from graphagent.graph.policies import RetryPolicy
from graphagent.ids import fresh_id
from runner.skills.arguments import ExecArguments, parsed
from runner.skills.run import problem, schema_of
from runner.skills.running import Around, Commands, Ready, workspace_key

ABOUT = (
    "Start a command of a skill that asks for input while it runs, and see what it says first. Talk to it with "
    "skill_write_stdin, look again with skill_poll_session, end it with skill_kill_session."
)
MOST_RUNNING, MOST_ENDED = 8, 64
SETTLE = 0.075
"""Seconds without a word after which a program is taken to wait."""
_MOST_POLLS = 50
_SELECT = re.compile(r"\b(?:enter|choose|select|pick)\b[^.\n]*\b(?:number|option|choice)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"^\s*(?:\[?\(?\d+[\])]|\d+[.:])\s+\S", re.MULTILINE)
_PROMPT = re.compile(r"press (?:enter|return|any key)|type your|\[y/n\]", re.IGNORECASE)

SessionId = Annotated[str, Field(description="As skill_exec returned it.")]
Wait = Annotated[int, Field(ge=0, le=60_000, description="Milliseconds to wait for what it says.")]
Lines = Annotated[int, Field(ge=1, le=1000, description="How many of its last lines to show.")]


@dataclass(slots=True)
class _Running:
    """A program that was started. `owner`: the workspace's key, so of a session; `result`: of one that has ended."""

    program: InteractiveProgram
    owner: str
    ready: Ready
    workspace: InteractiveWorkspace
    offset: int = 0
    result: dict[str, Any] | None = None
    ended: bool = False


@dataclass(slots=True)
class Programs:
    """The programs of a set of skills. Of those that have ended the last ones are kept, of all sessions together."""

    found: dict[str, _Running] = field(default_factory=dict)

    def add(self, one: _Running) -> str:
        """Keep a program; returns its id."""
        id = fresh_id()
        self.found[id] = one
        for old in [id for id, known in self.found.items() if known.ended][:-MOST_ENDED]:
            del self.found[old]
        return id

    def of(self, id: str, owner: str) -> _Running:
        """A program of a session. Raises ToolError."""
        one = self.found.get(id)
        if one is None or one.owner != owner:
            raise ToolError(f"unknown session_id: {id[:80]}")
        return one

    async def running(self, owner: str) -> int:
        """How many of a session have not ended."""
        for one in self.found.values():
            one.ended = one.ended or (await one.program.poll(one.offset, seconds=0)).exit_code is not None
        return sum(one.owner == owner and not one.ended for one in self.found.values())

    async def aclose(self) -> None:
        """End all of them."""
        for one in self.found.values():
            await one.program.kill()
        self.found.clear()


@dataclass(frozen=True, slots=True)
class ExecTool:
    """`skill_exec`; see `graphagent.agents.tool.Tool` for the fields."""

    spec: ToolSpec
    commands: Commands
    programs: Programs
    external: bool = False
    needs_approval: bool = False
    ends_turn: bool = False
    reentrant: bool = False
    retry: RetryPolicy | None = None
    timeout: float | None = None

    def check(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with arguments, or None."""
        return problem(ExecArguments, self.spec.name, arguments, self.commands)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Start the command, and wait a little for what it says. Raises ToolError, ExecutorUnavailable."""
        commands = self.commands
        asked = parsed(ExecArguments, self.spec.name, arguments)
        around = await commands.around(context)
        owner = _owner(around)
        files = await commands.files(asked, around, self.spec.name)
        if await self.programs.running(owner) >= MOST_RUNNING:
            raise ToolError(f"{MOST_RUNNING} programs are running; end one with skill_kill_session first")
        workspace = await around.executor.open(owner)
        if not isinstance(workspace, InteractiveWorkspace):
            raise ToolError(f"executor '{around.executor.name}' can't talk to a program that runs; use skill_run")
        ready = await commands.ready(asked, files, workspace, around)
        try:
            program = await workspace.start(ready.program, tty=asked.tty)
        except UsageError as error:
            raise ToolError(str(error)) from error
        one = _Running(program, owner, ready, workspace)
        id = self.programs.add(one)
        return await _told(commands, around, id, one, _Look(asked.yield_ms, asked.poll_lines))


@dataclass(frozen=True, slots=True)
class _Look:
    milliseconds: int
    lines: int


def exec_tool(commands: Commands, programs: Programs) -> ExecTool:
    """`skill_exec`."""
    return ExecTool(ToolSpec("skill_exec", ABOUT, schema_of(ExecArguments)), commands, programs)


def companion(name: str, commands: Commands, programs: Programs) -> FunctionTool:
    """`skill_write_stdin`, `skill_poll_session` or `skill_kill_session`."""
    makers: dict[str, Callable[[Commands, Programs], FunctionTool]] = {
        "skill_write_stdin": _write_tool,
        "skill_poll_session": _poll_tool,
        "skill_kill_session": _kill_tool,
    }
    return makers[name](commands, programs)


def _write_tool(commands: Commands, programs: Programs) -> FunctionTool:
    async def skill_write_stdin(
        session_id: SessionId,
        ctx: ToolContext,
        *,
        chars: str = "",
        submit: Annotated[bool, Field(description="End it with a line end.")] = False,
        yield_ms: Wait = 400,
        poll_lines: Lines = 40,
    ) -> ToolResult:
        """Give input to a command that runs, and see what it says then."""
        around = await commands.around(ctx)
        one = programs.of(session_id, _owner(around))
        try:
            await one.program.write(f"{chars}\n" if submit else chars)
        except UsageError as error:
            raise ToolError(str(error)) from error
        return await _told(commands, around, session_id, one, _Look(yield_ms, poll_lines))

    return tool(skill_write_stdin)


def _poll_tool(commands: Commands, programs: Programs) -> FunctionTool:
    async def skill_poll_session(
        session_id: SessionId, ctx: ToolContext, *, yield_ms: Wait = 400, poll_lines: Lines = 40
    ) -> ToolResult:
        """See what a command that runs has said since, and whether it has ended."""
        around = await commands.around(ctx)
        one = programs.of(session_id, _owner(around))
        return await _told(commands, around, session_id, one, _Look(yield_ms, poll_lines))

    return tool(skill_poll_session)


def _kill_tool(commands: Commands, programs: Programs) -> FunctionTool:
    async def skill_kill_session(session_id: SessionId, ctx: ToolContext) -> dict[str, Any]:
        """End a command that runs."""
        around = await commands.around(ctx)
        one = programs.of(session_id, _owner(around))
        await one.program.kill()
        one.ended = True
        return {"ok": True, "session_id": session_id, "status": "exited"}

    return tool(skill_kill_session)


async def _told(commands: Commands, around: Around, id: str, one: _Running, look: _Look) -> ToolResult:
    """What a program says, and its result once it has ended."""
    talk = await _heard(one, look.milliseconds / 1000)
    one.offset = talk.next_offset
    shown = "\n".join(talk.output.split("\n")[-look.lines :])
    told: dict[str, Any] = {"status": "running" if talk.exit_code is None else "exited", "session_id": id}
    told |= {"output": shown, "offset": talk.offset, "next_offset": talk.next_offset}
    if talk.exit_code is None:
        asks = interaction(talk.output)
        return ToolResult({**told, **({"interaction": asks} if asks else {})})
    told["exit_code"] = talk.exit_code
    delta: Mapping[str, Any] = {}
    if one.result is None:
        left = await commands.left(one.ready, {"exit_code": talk.exit_code}, talk.exit_code != 0, one.workspace, around)
        one.result, delta = left.content, left.state_delta
        one.ended = True
    return ToolResult({**told, "result": one.result}, state_delta=delta)


async def _heard(one: _Running, seconds: float) -> Talk:
    """What a program says until it is quiet for a moment, or has ended; one that never is quiet is left talking."""
    talk = await one.program.poll(one.offset, seconds=seconds)
    for _ in range(_MOST_POLLS):
        if talk.exit_code is not None or talk.next_offset == talk.offset:
            break
        more = await one.program.poll(talk.next_offset, seconds=SETTLE)
        talk = Talk(talk.output + more.output, talk.offset, more.next_offset, more.exit_code)
        if not more.output:
            break
    return talk


def interaction(output: str) -> dict[str, Any] | None:
    """Whether what a program says asks for input: a `selection` of something numbered, or a `prompt`."""
    last = output.rstrip().rpartition("\n")[2].strip()
    if not last:
        return None
    hint = {"needs_input": True, "hint": last[:200]}
    if _SELECT.search(output) or len(_NUMBERED.findall(output)) >= 2:
        return {**hint, "kind": "selection"}
    if last.endswith((":", "?")) or _PROMPT.search(output):
        return {**hint, "kind": "prompt"}
    return None


def _owner(around: Around) -> str:
    """The workspace of the session. Raises ToolError without one."""
    if around.session is None:
        raise ToolError("a program can be talked to only in a run in a session")
    return workspace_key(around.session.key)
