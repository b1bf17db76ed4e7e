"""Nodes that run programs in workspaces: code of the graph's own, and scripts of skills. No model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import anyio
from pydantic_core import to_json

from graphagent.agents.invocation import Services
from graphagent.agents.program_result import ProgramResult, result_of
from graphagent.agents.scope import invocation_of
from graphagent.engine.context import NodeContext
from graphagent.errors import AgentError, ProgramFailed
from graphagent.execution import CodeExecutor, Collected, ExecutionLimits, Program, Workspace
from graphagent.graph.kinds import register
from graphagent.ledger import SessionKey
from graphagent.services import ArtifactService
from graphagent.skills import SkillRepository

_RUNS = {"python": ("python3", "work/main.py"), "bash": ("bash", "work/main.sh")}
_TAIL = 800
"""Characters of stderr that stand in the message of a failure."""


class _Plan(NamedTuple):
    """What runs, and what is there when it begins."""

    program: Program
    files: Mapping[str, tuple[bytes, bool]]
    digest: str = ""


class _Saving(NamedTuple):
    """What is taken out of the workspace, and where it is saved: nowhere without a service. `again`: an attempt before
    this one may have saved it."""

    patterns: tuple[str, ...]
    artifacts: ArtifactService | None = None
    session: SessionKey | None = None
    again: bool = False


class ProgramNode:
    """The function of a code node or a skill node; see `StateGraph.add_code_node` for what it does."""

    def __init__(self, id: str, config: Mapping[str, Any]) -> None:
        self.id = id
        self._config = config
        if "code" in config and config["language"] not in _RUNS:
            raise AgentError(f"language '{config['language']}' of node '{id}' is unknown: known are {', '.join(_RUNS)}")
        if "skill" in config and (not config["command"] or isinstance(config["command"], str)):
            raise AgentError(f"node '{id}' needs a command as a list of words, such as ['python3', 'scripts/check.py']")
        if config["on_failure"] not in ("fail", "record"):
            raise AgentError(f"on_failure of node '{id}' is '{config['on_failure']}'; it is 'fail' or 'record'")
        if config["output_mapper"] is None and config["key"] not in config["declared"]:
            raise AgentError(
                f"node '{id}' writes its result into field '{config['key']}', which the state doesn't declare; "
                f"declare it as ProgramResult, name another one with key=, or give an output_mapper"
            )

    async def __call__(self, state: Any, ctx: NodeContext) -> Mapping[str, Any] | None:
        """Run it, and hand on its result. Raises ProgramFailed, AgentError where nothing can run it, EffectUnknown."""
        config = self._config
        services = _services(ctx)
        executor: CodeExecutor | None = config["executor"] or services.executor
        if executor is None:
            raise AgentError(f"node '{self.id}' has no executor: give it one, or give one to the Runner")
        plan = await self._plan(state, services)
        saving = self._saving(ctx, services)
        workspace = f"{self.id}-{ctx.idempotency_key('workspace')}"

        async def run() -> ProgramResult:
            return await _run(executor, workspace, plan, saving)

        async def run_again() -> ProgramResult:
            return await _run(executor, workspace, plan, saving._replace(again=True))

        harmless = executor.isolated or config["repeat"]
        result: ProgramResult = await ctx.step("program", run, reconcile=run_again if harmless else None)
        if not result.ok and config["on_failure"] == "fail":
            raise ProgramFailed(self._said(result), result=result)
        if config["output_mapper"] is not None:
            update: Mapping[str, Any] | None = config["output_mapper"](result)
            return update
        return {config["key"]: result}

    async def _plan(self, state: Any, services: Services) -> _Plan:
        config = self._config
        given = None if config["input_mapper"] is None else config["input_mapper"](state)
        stdin = b"" if given is None else _bytes(given)
        limits = config["limits"] or ExecutionLimits()
        extra = {} if config["files"] is None else config["files"](state)
        files = {path: (_bytes(data), False) for path, data in extra.items()}
        if "code" in config:
            argv = _RUNS[config["language"]]
            return _Plan(Program(argv, ".", {}, stdin, limits), {**files, argv[1]: (_bytes(config["code"]), False)})
        skills: SkillRepository | None = config["skills"] or services.skills
        name = config["skill"]
        if skills is None:
            raise AgentError(
                f"node '{self.id}' has no repository for skill '{name}': give it one, or one to the Runner"
            )
        skill, where = await skills.get(name), f"skills/{name}"
        own = {f"{where}/{one.path}": (one.data, one.executable) for one in await skills.files(name)}
        return _Plan(Program(config["command"], where, {}, stdin, limits), {**files, **own}, skill.digest)

    def _saving(self, ctx: NodeContext, services: Services) -> _Saving:
        """What is taken out, and where it is saved. Raises AgentError if it is to be, and can't."""
        patterns = self._config["collect"]
        if not self._config["save"]:
            return _Saving(patterns)
        invocation = invocation_of(ctx)
        session = None if invocation is None else invocation.session
        if services.artifacts is None or session is None:
            lacks = "an artifact service" if services.artifacts is None else "a session"
            raise AgentError(f"node '{self.id}' saves artifacts and the run has not {lacks}; run it under a Runner")
        return _Saving(patterns, services.artifacts, session.key)

    def _said(self, result: ProgramResult) -> str:
        how = f"was ended by its limit of {result.stopped}" if result.stopped else f"ended with {result.exit_code}"
        last = result.stderr.strip()[-_TAIL:]
        return f"the program of node '{self.id}' {how}" + (f"; it said: {last}" if last else " and said nothing")


def _services(ctx: NodeContext) -> Services:
    invocation = invocation_of(ctx)
    if invocation is not None:
        return invocation.services
    found = ctx.services
    return found if isinstance(found, Services) else Services()


def _bytes(given: Any) -> bytes:
    if isinstance(given, bytes):
        return given
    return given.encode() if isinstance(given, str) else to_json(given)


async def _run(executor: CodeExecutor, key: str, plan: _Plan, saving: _Saving) -> ProgramResult:
    """The program in a workspace of its own: what an earlier attempt left there is removed first."""
    await executor.discard(key)
    workspace: Workspace = await executor.open(key)
    try:
        for path, (data, executable) in plan.files.items():
            await workspace.put(path, data, executable=executable)
        ran = await workspace.run(plan.program)
        found = await workspace.collect(saving.patterns)
        saved = await _save(saving, found) if ran.exit_code == 0 and not ran.stopped else {}
        return result_of(ran, found, saved, plan.digest)
    finally:
        with anyio.CancelScope(shield=True):
            await executor.discard(key)


async def _save(saving: _Saving, found: Collected) -> dict[str, int]:
    """The files as artifacts, by path the version. After an attempt that may have saved them, a file whose newest
    version has these very bytes is that version."""
    artifacts, session = saving.artifacts, saving.session
    if artifacts is None or session is None:
        return {}
    names = {file.path: file.path.removeprefix("out/").replace("/", "_") for file in found.files}
    if found.limits_hit or any(file.truncated for file in found.files) or len({*names.values()}) < len(names):
        raise ProgramFailed(
            f"not all of {', '.join(sorted(names)) or 'the files'} can be saved whole, each under a name of its own: "
            f"they are too many or too large, or differ in their directories only; nothing was saved"
        )
    versions: dict[str, int] = {}
    for file in found.files:
        newest = await artifacts.load(session, names[file.path]) if saving.again else None
        if newest is not None and (newest.data, newest.mime_type) == (file.data, file.mime_type):
            versions[file.path] = newest.version
        else:
            versions[file.path] = await artifacts.save(session, names[file.path], file.data, mime_type=file.mime_type)
    return versions


register("code", ProgramNode)
register("skill", ProgramNode)
