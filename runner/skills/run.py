"""The tool that runs a command of a skill to its end: `skill_run`. Source: spec/services, 2.7.

How the command ended is a result, whatever that was. A call that was cut off by a crash is never made again, since
nobody knows what it had done, unless the rules say that commands may run twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from graphagent.agents.model import ToolSpec
from graphagent.agents.tool import ToolContext, ToolResult
from graphagent.errors import ToolError, UsageError
from graphagent.graph.policies import RetryPolicy
from runner.skills.arguments import RunArguments, parsed
from runner.skills.command import plain_argv
from runner.skills.outputs import streams
from runner.skills.running import Commands

ABOUT = (
    "Run a command of a skill in the skill's directory. Put files that are to be kept into out/. How it ended, what it "
    "printed and the files that it left in out/ come back, also if it failed."
)


@dataclass(frozen=True, slots=True)
class RunTool:
    """`skill_run`; see `graphagent.agents.tool.Tool` for the fields."""

    spec: ToolSpec
    commands: Commands
    external: bool = False
    needs_approval: bool = False
    ends_turn: bool = False
    retry: RetryPolicy | None = None
    timeout: float | None = None

    @property
    def reentrant(self) -> bool:
        """True if commands may run twice."""
        return self.commands.rules.repeatable

    def check(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with arguments, or None."""
        return problem(RunArguments, self.spec.name, arguments, self.commands)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Run the command. Raises ToolError for what can't be run, ExecutorUnavailable."""
        commands = self.commands
        asked = parsed(RunArguments, self.spec.name, arguments)
        around = await commands.around(context)
        files = await commands.files(asked, around, self.spec.name)
        async with commands.workspace(around) as workspace:
            ready = await commands.ready(asked, files, workspace, around)
            try:
                ran = await workspace.run(ready.program)
            except UsageError as error:
                raise ToolError(str(error)) from error
            told = streams(ran, commands.rules.stdout_bytes)
            return await commands.left(ready, told, bool(ran.exit_code or ran.stopped), workspace, around)


def run_tool(commands: Commands) -> RunTool:
    """`skill_run`."""
    return RunTool(ToolSpec("skill_run", ABOUT, schema_of(RunArguments)), commands)


def problem(model: type[RunArguments], tool: str, arguments: Mapping[str, Any], commands: Commands) -> str | None:
    """What is wrong with the arguments of a tool that runs commands, or None."""
    try:
        asked = parsed(model, tool, arguments)
        if not commands.rules.shell:
            plain_argv(asked.command, commands.rules)
    except ToolError as error:
        return str(error)
    return None


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The parameters of a tool."""
    schema = model.model_json_schema(by_alias=True)
    return {name: value for name, value in schema.items() if name not in ("title", "description")}
