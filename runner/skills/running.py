"""A command of a skill before and after it runs: what is around it, its files and its program, what it left behind.

Source: spec/services, 2.7 and 2.9.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import anyio

from graphagent.agents.invocation import Invocation
from graphagent.agents.tool import ToolContext, ToolResult
from graphagent.errors import ServiceError, ToolError
from graphagent.execution import CodeExecutor, Program, Workspace
from graphagent.ids import fresh_id
from graphagent.ledger import Session, SessionKey
from graphagent.skills import SkillFile, SkillRepository
from runner.skills.arguments import RunArguments, RunRules
from runner.skills.command import directory_for, environment, plain_argv, shell_argv
from runner.skills.outputs import (
    AUTO,
    AUTO_LIMITS,
    EXPLICIT_LIMITS,
    Known,
    announced,
    patterns_of,
    primary,
    save,
    seen_before,
    settled_files,
    shown,
    without_known,
)
from runner.skills.shelf import Call, Shelf
from runner.skills.staging import Staging, put_inputs


class Around(NamedTuple):
    """What a call has around it; a call outside of a run has less."""

    repository: SkillRepository
    executor: CodeExecutor
    call_id: str
    invocation: Invocation | None = None
    session: Session | None = None


class Ready(NamedTuple):
    """A program that can be started. `known`: files that were in `out` before, where those are looked for that the
    program makes; `patterns`: of the files that were asked for; `staged`: inputs that were put there."""

    asked: RunArguments
    program: Program
    patterns: tuple[str, ...]
    known: Known
    staged: tuple[dict[str, str], ...]
    warnings: tuple[str, ...]

    @property
    def automatic(self) -> bool:
        """True if no files were asked for."""
        return self.asked.outputs is None and not self.asked.output_files


@dataclass(frozen=True, slots=True)
class Commands:
    """What the tools that run commands share."""

    shelf: Shelf
    executor: CodeExecutor | None
    rules: RunRules
    staging: Staging = field(default_factory=Staging)

    # -- before ----------------------------------------------------------------------------------

    async def around(self, context: ToolContext) -> Around:
        """What a call has around it. Raises ToolError if that isn't enough."""
        invocation = context.invocation
        executor = self.executor
        if executor is None and invocation is not None:
            executor = invocation.services.executor
        if executor is None:
            raise ToolError(f"'{context.name}' has nothing to run commands with")
        if invocation is not None and invocation.session is not None:
            call = await self.shelf.call(context)
            return Around(call.repository, executor, context.call_id, invocation, call.session)
        if invocation is not None:
            return Around(await self.shelf.repository(invocation), executor, context.call_id, invocation)
        if self.shelf.source is None or callable(self.shelf.source):
            raise ToolError(f"'{context.name}' was called outside of an agent's run; there are no skills")
        return Around(self.shelf.source, executor, context.call_id)

    @asynccontextmanager
    async def workspace(self, around: Around) -> AsyncGenerator[Workspace]:
        """The workspace of the session; without one, a workspace for this call alone."""
        if around.session is not None:
            yield await around.executor.open(workspace_key(around.session.key))
            return
        key = f"call-{fresh_id()}"
        try:
            yield await around.executor.open(key)
        finally:
            with anyio.CancelScope(shield=True):
                await around.executor.discard(key)

    async def files(self, asked: RunArguments, around: Around, tool: str) -> list[SkillFile]:
        """The files of the skill, if commands of it may be run now. Raises ToolError."""
        skill = asked.skill.strip()
        try:
            files = await around.repository.files(skill)
        except ServiceError as error:
            raise ToolError(str(error)) from error
        if self.rules.require_loaded and around.invocation is not None and around.session is not None:
            call = Call(around.invocation, around.session, around.repository)
            if not await self.shelf.is_loaded(call, skill):
                raise ToolError(f'{tool} requires skill_load first for "{skill}"')
        return files

    async def ready(self, asked: RunArguments, files: list[SkillFile], workspace: Workspace, around: Around) -> Ready:
        """Put everything in place. Raises ToolError for what can't be run; nothing has been run then."""
        skill = asked.skill.strip()
        where = directory_for(asked.cwd, skill)
        env, refused = environment(asked.env, skill, self.rules)
        if asked.editor_text and {"EDITOR", "VISUAL"} & set(asked.env):
            raise ToolError("editor_text and an EDITOR or VISUAL in env were both given: give one of them")
        if asked.editor_text and not self.rules.shell:
            raise ToolError("editor_text can't be used here: commands run without a shell")
        argv = plain_argv(asked.command, self.rules) if not self.rules.shell else ()
        await self.staging.put(workspace, skill, files)
        if self.rules.shell:
            argv = shell_argv(asked.command, skill, await _editor(workspace, asked.editor_text))
        artifacts = None if around.invocation is None else around.invocation.services.artifacts
        key = None if around.session is None else around.session.key
        staged = await put_inputs(workspace, asked.inputs, artifacts, key)
        limits = self.rules.limits
        if asked.timeout:
            limits = replace(limits, seconds=min(asked.timeout, limits.seconds))
        program = Program(argv, where.cwd, env, asked.stdin.encode(), limits)
        patterns, elsewhere = patterns_of(asked, where.cwd)
        automatic = asked.outputs is None and not asked.output_files
        known = await seen_before(workspace) if automatic else {}
        warnings = (*([where.warning] if where.warning else []), *refused, *elsewhere)
        return Ready(asked, program, tuple(patterns), known, tuple(staged), warnings)

    # -- after -----------------------------------------------------------------------------------

    async def left(
        self, ready: Ready, told: dict[str, Any], failed: bool, workspace: Workspace, around: Around
    ) -> ToolResult:
        """The result of a command that has ended: `told`, its files, and what is to be kept of them."""
        asked = ready.asked
        if ready.automatic:
            collected = without_known(await workspace.collect(AUTO, AUTO_LIMITS), ready.known)
        else:
            limits = EXPLICIT_LIMITS if asked.outputs is None else asked.outputs.limits
            collected = await workspace.collect(ready.patterns, limits)
        files, warnings = settled_files(collected, failed)
        saving = asked.save_as_artifacts or (asked.outputs is not None and asked.outputs.save)
        kept = await save(files, asked, around.invocation) if saving else None
        inline = asked.outputs is None or asked.outputs.inline
        if asked.omit_inline_content and around.invocation is None:
            warnings.append("omit_inline_content has no effect outside of a run")
        elif asked.omit_inline_content:
            inline = False
        if files and not ready.automatic and not saving:
            warnings.append("the output files were not saved; use their workspace refs as inputs of a later call")
        listed = [] if ready.automatic and not saving else [shown(one, inline=inline) for one in files]
        more: dict[str, Any] = {
            "staged_inputs": list(ready.staged),
            "output_files": listed,
            "primary_output": primary(files) if inline else None,
            "artifact_files": [] if kept is None else list(kept.files),
            "warnings": [*ready.warnings, *told.pop("warnings", ()), *warnings, *(kept.warnings if kept else ())],
        }
        content = {**told, **{name: value for name, value in more.items() if value}}
        return ToolResult(content, state_delta={} if kept is None else announced(around.call_id, kept))


def workspace_key(key: SessionKey) -> str:
    """The key of a session's workspace: another one for every app, user and session."""
    return f"session-{hashlib.sha256(json.dumps(list(key)).encode()).hexdigest()[:40]}"


async def _editor(workspace: Workspace, text: str) -> str:
    """A program that writes a text into the file that it is to edit; empty without a text."""
    if not text:
        return ""
    name = f"work/.editor/{fresh_id()}"
    await workspace.put(f"{name}.txt", text.encode())
    await workspace.put(name, b'#!/bin/sh\nexec cp "$0.txt" "$1"\n', executable=True)
    return name
