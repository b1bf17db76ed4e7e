"""What a model says of a command to run in its workspace, and what commands may do. Source: spec/services, 3.11."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from graphagent.errors import PathEscape, ToolError, UsageError
from graphagent.execution import KIB, ExecutionLimits, Program
from runner.execution.beneath import parts_of
from runner.execution.globs import relative
from runner.execution.policy import NO_POLICY, CommandPolicy, scrubbed

SECONDS = 300.0
"""Seconds that a command may take unless less is asked for."""
FOLDERS = ("skills", "work", "out", "runs")
_GLOBS = frozenset("*?[]{}")
_BRACED = re.compile(r"^\$\{\w+\}")
_TOGETHER = 'exec 2>&1; exec sh -c "$1"'
"""Has both streams in one, in the order in which they were written."""


class ExecArguments(BaseModel):
    """The arguments of `workspace_exec`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str = Field(description="A command line for sh.")
    cwd: str = Field(default=".", description="A directory of the workspace: . or below work, out, runs, skills.")
    env: dict[str, str] = Field(default_factory=dict)
    stdin: str = ""
    timeout: float = Field(
        default=0,
        ge=0,
        description="Seconds; 0: as long as is allowed.",
        validation_alias=AliasChoices("timeout", "timeout_sec", "timeoutSec"),
    )
    background: bool = Field(default=False, description="Start it, and come back at once with a session_id.")
    yield_time_ms: int | None = Field(
        default=None,
        ge=0,
        le=60_000,
        description="Come back after so many milliseconds if it still runs, with a session_id.",
        validation_alias=AliasChoices("yield_time_ms", "yieldMs"),
    )
    tty: bool = Field(
        default=False, description="Give it a terminal, to talk to it.", validation_alias=AliasChoices("tty", "pty")
    )

    @property
    def talked_to(self) -> bool:
        """True if the command may go on running after the call."""
        return self.background or self.tty or self.yield_time_ms is not None


@dataclass(frozen=True, slots=True)
class ExecRules:
    """What `workspace_exec` may do. `policy`: which commands; without one, whatever the shell takes. `limits`: of each
    command; `output_bytes`: of its output that the model is shown, the first and the last half. `repeatable`: every
    command may run twice: one that was cut off by a crash is then run again when the run goes on, else never. Raises
    UsageError for bounds of nothing."""

    policy: CommandPolicy = NO_POLICY
    limits: ExecutionLimits = field(default_factory=lambda: ExecutionLimits(seconds=SECONDS))
    output_bytes: int = 16 * KIB
    repeatable: bool = False

    def __post_init__(self) -> None:
        if self.limits.seconds <= 0 or self.output_bytes < 1:
            raise UsageError("ExecRules: a command may take more than 0 seconds, and is shown with 1 byte or more")


def asked_for(arguments: Mapping[str, Any], rules: ExecRules) -> tuple[ExecArguments, Program]:
    """What is asked for, and its program. Raises ToolError for arguments that don't fit, without their values, and for
    what the rules refuse; nothing has been run then."""
    try:
        asked = ExecArguments.model_validate(dict(arguments))
    except ValidationError as error:
        told = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False))
        raise ToolError(f"the arguments of tool 'workspace_exec' don't fit: {'; '.join(told)}") from error
    if not asked.command.strip():
        raise ToolError("command is required")
    return asked, program_of(asked, rules)


def program_of(asked: ExecArguments, rules: ExecRules) -> Program:
    """The program for a command. Raises ToolError."""
    command = rules.policy.checked(asked.command) if rules.policy.active else asked.command
    env = scrubbed(asked.env) if rules.policy.active else dict(asked.env)
    limits = rules.limits
    seconds = min(asked.timeout, limits.seconds) if asked.timeout else limits.seconds
    bounds = replace(limits, seconds=seconds)
    argv = ("sh", "-c", _TOGETHER, "workspace_exec", command)
    return Program(argv, directory(asked.cwd), env, asked.stdin.encode("utf-8", "replace"), bounds)


def directory(asked: str) -> str:
    """A working directory as a path of the workspace. Raises ToolError for one outside, or with a glob in it."""
    where = asked.strip() or "."
    if _GLOBS & set(_BRACED.sub("", where)):
        raise ToolError(f"cwd {asked[:200]!r} has a glob in it; name one directory")
    try:
        parts = parts_of(relative(where))
    except (PathEscape, UsageError) as error:
        raise ToolError(f"cwd {asked[:200]!r}: {error}") from error
    if parts and parts[0] not in FOLDERS:
        raise ToolError(f"cwd {asked[:200]!r} is not '.', nor below {', '.join(FOLDERS)}")
    return "/".join(parts) or "."


def shown(output: bytes, most: int) -> tuple[str, bool]:
    """Output as a model reads it, and whether something is left out: then it is the first and the last half."""
    if len(output) <= most:
        return output.decode("utf-8", "replace"), False
    half = max(1, most // 2)
    head = output[:half].decode("utf-8", "ignore")
    tail = output[-half:].decode("utf-8", "ignore")
    return f"{head}\n...[output truncated]...\n{tail}", True
