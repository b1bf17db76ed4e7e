"""What a model says of a command to run, and what runs may do. Source: spec/services, 2.7."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphagent.errors import ToolError, UsageError
from graphagent.execution import KIB, MIB, CollectLimits, ExecutionLimits

SECONDS = 300.0
"""Seconds that a command may take unless less is asked for."""


class RunInput(BaseModel):
    """A file to be there before the command runs."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    source: str = Field(alias="from", description="artifact://name, artifact://name@version, or workspace://path")
    to: str = Field(default="", description="Where, such as inputs/data.csv; by default in inputs/.")
    mode: Literal["copy"] = "copy"


class RunOutputs(BaseModel):
    """Which files are collected after the command, and what becomes of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    globs: list[str] = Field(description="Patterns such as out/**/*.csv.")
    inline: bool = Field(default=True, description="Show what is text.")
    save: bool = Field(default=False, description="Keep them as artifacts.")
    name_template: str = Field(default="{name}", description="The artifacts' names.")
    max_files: int = Field(default=100, ge=1, le=100)
    max_file_bytes: int = Field(default=4 * MIB, ge=1, le=64 * MIB)
    max_total_bytes: int = Field(default=64 * MIB, ge=1, le=64 * MIB)

    @property
    def limits(self) -> CollectLimits:
        """How much is taken out of the workspace."""
        return CollectLimits(self.max_files, self.max_file_bytes, self.max_total_bytes)


class RunArguments(BaseModel):
    """The arguments of `skill_run`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    skill: str = Field(description="The name of the skill, as it is listed.")
    command: str = Field(description="What to run, in the skill's directory.")
    cwd: str = Field(default="", description="Another directory in it, or below $WORK_DIR or $OUTPUT_DIR.")
    env: dict[str, str] = Field(default_factory=dict)
    stdin: str = ""
    editor_text: str = Field(default="", description="What a program that opens $EDITOR finds written.")
    output_files: list[str] = Field(default_factory=list, description="Files to show, such as out/report.txt.")
    timeout: float = Field(default=0, ge=0, description="Seconds; 0: as long as is allowed.")
    save_as_artifacts: bool = Field(default=False, description="Keep the output files.")
    omit_inline_content: bool = Field(default=False, description="Name the output files only.")
    artifact_prefix: str = ""
    inputs: list[RunInput] = Field(default_factory=list)
    outputs: RunOutputs | None = None


class ExecArguments(RunArguments):
    """The arguments of `skill_exec`."""

    tty: bool = Field(default=False, description="Give it a terminal.")
    yield_ms: int = Field(default=1000, ge=0, le=60_000, description="How long to wait for what it says.")
    poll_lines: int = Field(default=40, ge=1, le=1000, description="How many of its last lines to show.")


@dataclass(frozen=True, slots=True)
class RunRules:
    """What `skill_run` may do.

    `require_loaded`: only commands of skills that are loaded. `allow`, `deny`: names of commands; with either there is
    no shell, a command is one program with its arguments, and without `allow` shells and other programs that start any
    program are denied too. What keeps a command from doing harm is the executor, not a list. `env`: gives the
    environment of a skill's commands by the skill's name, such as keys that it needs; what a command sets itself counts
    more. `limits`: of each command; `stdout_bytes`: of each stream that the model is shown. `repeatable`: every command
    may run twice: one that was cut off by a crash is then run again when the run goes on, else never.
    """

    require_loaded: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    env: Callable[[str], Mapping[str, str]] | None = None
    limits: ExecutionLimits = field(default_factory=lambda: ExecutionLimits(seconds=SECONDS))
    stdout_bytes: int = 16 * KIB
    repeatable: bool = False

    def __post_init__(self) -> None:
        if self.limits.seconds <= 0 or self.stdout_bytes < 1:
            raise UsageError("RunRules: a command may take more than 0 seconds, and is shown with 1 byte or more")
        if not all(name.strip() for name in (*self.allow, *self.deny)):
            raise UsageError("RunRules: a command in `allow` or `deny` has no name, so that it would never fit")

    @property
    def shell(self) -> bool:
        """True if commands are given to a shell."""
        return not (self.allow or self.deny)


Asked = TypeVar("Asked", bound=RunArguments)


def parsed(model: type[Asked], tool: str, arguments: Mapping[str, Any]) -> Asked:
    """The arguments of a call. Raises ToolError, which doesn't repeat their values."""
    try:
        found = model.model_validate(dict(arguments))
    except ValidationError as error:
        told = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False))
        raise ToolError(f"the arguments of tool '{tool}' don't fit: {'; '.join(told)}") from error
    for name in ("skill", "command"):
        if not getattr(found, name).strip():
            raise ToolError(f"{name} is required")
    return found
