"""The tools with which a model works in the workspace of its session. Source: spec/services, 3.11 and 3.13.

How a command ended is a result, whatever that was. A call that was cut off by a crash is never made again, since nobody
knows what it had done, unless the rules say that commands may run twice. A program that goes on between calls lives in
this process, so none is there any more after a crash.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from graphagent.agents.function_tool import FunctionTool, tool
from graphagent.agents.model import ToolSpec
from graphagent.agents.tool import Asking, Tool, ToolContext, ToolResult
from graphagent.errors import PathEscape, ToolError, UsageError
from graphagent.execution import CodeExecutor, InteractiveWorkspace, Program, Ran, Talk
from graphagent.graph.policies import RetryPolicy
from runner.execution.exec_arguments import ExecArguments, ExecRules, asked_for, shown
from runner.execution.keeping import keep_file
from runner.execution.keys import workspace_key
from runner.execution.talking import Programs, Running

ABOUT = (
    "Run a command line in the workspace, with sh. Its output and exit code come back, also if it failed. Put files "
    "that are to be kept into out/."
)
TALKING = frozenset({"workspace_write_stdin", "workspace_kill_session"})
FIRST_WORDS = 1000
"""Milliseconds that a program on a terminal has for its first words."""

SessionId = Annotated[str, Field(description="As workspace_exec returned it.")]
Wait = Annotated[int, Field(ge=0, le=60_000, description="Milliseconds to wait for its end.")]
KeptPath = Annotated[str, Field(description="The file, below work/, out/ or runs/.")]


class WorkspaceTools:
    """A workspace for an agent: `LLMAgent(..., tools=[WorkspaceTools()])`.

    `executor`: where commands run, None takes `Runner(executor=...)`; `rules`: what they may do. The workspace is the
    session's, and the one that commands of its skills run in; it lasts as long as the executor, or until it is
    discarded. A run without a session has no workspace.
    """

    name = ""

    def __init__(self, executor: CodeExecutor | None = None, *, rules: ExecRules | None = None) -> None:
        self._executor = executor
        self._programs = Programs()
        self._talks: dict[CodeExecutor, bool] = {}
        self._rules = rules or ExecRules()
        self._tools: tuple[Tool, ...] = (
            ExecTool(ToolSpec("workspace_exec", ABOUT, _schema()), self, self._rules, self._programs),
            _write_tool(self, self._rules, self._programs),
            _kill_tool(self, self._programs),
            _save_tool(self),
        )

    async def tools(self) -> Sequence[Tool]:
        """All tools that the set may offer."""
        return self._tools

    async def offered(self, asking: Asking) -> Sequence[Tool]:
        """The tools for a request: none without a session, or to a node with an output schema; those that the executor
        and the services can serve. Raises UsageError without an executor."""
        invocation = asking.invocation
        if asking.structured or invocation is None or invocation.session is None:
            return ()
        executor = self._executor or invocation.services.executor
        if executor is None:
            raise UsageError(
                f"agent '{invocation.agent.name}' is offered 'workspace_exec', and there is nothing to run it with: "
                "WorkspaceTools(executor=...), or Runner(executor=...)"
            )
        if executor not in self._talks:
            workspace = await executor.open(workspace_key(invocation.session.key))
            self._talks[executor] = isinstance(workspace, InteractiveWorkspace)
        without = frozenset() if self._talks[executor] else TALKING
        without |= frozenset() if invocation.services.artifacts is not None else {"workspace_save_artifact"}
        return [one for one in self._tools if one.spec.name not in without]

    def overview(self, names: Collection[str]) -> str:
        """Nothing: the tools say themselves what they are for."""
        return ""

    async def aclose(self) -> None:
        """End the programs that are talked to; an executor is closed by who made it."""
        await self._programs.aclose()

    def around(self, context: ToolContext) -> tuple[CodeExecutor, str]:
        """The executor of a call, and the key of its workspace. Raises ToolError if there is none."""
        invocation = context.invocation
        if invocation is None or invocation.session is None:
            raise ToolError(f"'{context.name}' was called outside of a run in a session; there is no workspace")
        executor = self._executor or invocation.services.executor
        if executor is None:
            raise ToolError(f"'{context.name}' has nothing to run commands with")
        return executor, workspace_key(invocation.session.key)


@dataclass(frozen=True, slots=True)
class ExecTool:
    """`workspace_exec`; see `graphagent.agents.tool.Tool` for the fields."""

    spec: ToolSpec
    workspaces: WorkspaceTools
    rules: ExecRules
    programs: Programs
    external: bool = False
    needs_approval: bool = False
    ends_turn: bool = False
    retry: RetryPolicy | None = None
    timeout: float | None = None

    @property
    def reentrant(self) -> bool:
        """True if commands may run twice."""
        return self.rules.repeatable

    def check(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with arguments, or None."""
        try:
            asked_for(arguments, self.rules)
        except ToolError as error:
            return str(error)
        return None

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """Run the command. Raises ToolError for what can't be run, ExecutorUnavailable."""
        asked, program = asked_for(arguments, self.rules)
        executor, owner = self.workspaces.around(context)
        workspace = await executor.open(owner)
        try:
            if not asked.talked_to:
                return _ended(await workspace.run(program), self.rules)
            if not isinstance(workspace, InteractiveWorkspace):
                raise ToolError(
                    f"executor '{executor.name}' can't talk to a program that runs: leave out background, tty"
                )
            return await self._started(workspace, owner, asked, program)
        except (UsageError, PathEscape) as error:
            raise ToolError(str(error)) from error

    async def _started(
        self, workspace: InteractiveWorkspace, owner: str, asked: ExecArguments, program: Program
    ) -> dict[str, Any]:
        await self.programs.check_room(owner)
        one = Running(await workspace.start(program, tty=asked.tty), owner)
        id = self.programs.add(one)
        first = 0 if asked.background else FIRST_WORDS
        wait = first if asked.yield_time_ms is None else asked.yield_time_ms
        return _told(id, await one.heard(wait / 1000), self.rules)


def _write_tool(workspaces: WorkspaceTools, rules: ExecRules, programs: Programs) -> FunctionTool:
    async def workspace_write_stdin(
        session_id: SessionId,
        ctx: ToolContext,
        *,
        chars: Annotated[str, Field(description="What it reads; empty: only see what it has said.")] = "",
        submit: Annotated[bool, Field(description="End it with a line end.")] = False,
        yield_time_ms: Wait = 200,
    ) -> dict[str, Any]:
        """Give input to a command that runs, and see what it says then."""
        one = programs.of(session_id, workspaces.around(ctx)[1])
        if chars or submit:
            try:
                await one.program.write(f"{chars}\n" if submit else chars)
            except UsageError as error:
                raise ToolError(str(error)) from error
        return _told(session_id, await one.heard(yield_time_ms / 1000), rules)

    return tool(workspace_write_stdin)


def _kill_tool(workspaces: WorkspaceTools, programs: Programs) -> FunctionTool:
    async def workspace_kill_session(session_id: SessionId, ctx: ToolContext) -> dict[str, Any]:
        """End a command that runs, with all that it started."""
        one = programs.of(session_id, workspaces.around(ctx)[1])
        ran = await one.program.kill()
        one.ended = True
        return {"status": "exited", "session_id": session_id, "exit_code": ran.exit_code}

    return tool(workspace_kill_session, reentrant=True)


def _save_tool(workspaces: WorkspaceTools) -> FunctionTool:
    async def workspace_save_artifact(path: KeptPath, ctx: ToolContext) -> ToolResult:
        """Keep a file of the workspace as an artifact; each time it is kept it is a new version."""
        executor, key = workspaces.around(ctx)
        return await keep_file(await executor.open(key), path, ctx)

    return tool(workspace_save_artifact)


def _ended(ran: Ran, rules: ExecRules) -> dict[str, Any]:
    """A command that has ended, as the model is told."""
    text, cut = shown(ran.stdout + ran.stderr, rules.output_bytes)
    told: dict[str, Any] = {"status": "exited", "output": text, "exit_code": ran.exit_code}
    if ran.stopped:
        told |= {"stopped": f"the command was ended: it reached its limit of {ran.stopped}", "timed_out": ran.timed_out}
    if cut or ran.truncated:
        told |= {"truncated": True, "total_bytes": len(ran.stdout) + len(ran.stderr)}
    return told


def _told(id: str, talk: Talk, rules: ExecRules) -> dict[str, Any]:
    """What a program has said, and how it stands, as the model is told."""
    text, cut = shown(talk.output.encode("utf-8", "replace"), rules.output_bytes)
    told: dict[str, Any] = {
        "status": "running" if talk.exit_code is None else "exited",
        "session_id": id,
        "output": text,
        "offset": talk.offset,
        "next_offset": talk.next_offset,
    }
    if talk.exit_code is not None:
        told["exit_code"] = talk.exit_code
    return {**told, "truncated": True} if cut else told


def _schema() -> dict[str, Any]:
    schema = ExecArguments.model_json_schema(by_alias=False)
    return {name: value for name, value in schema.items() if name not in ("title", "description")}
