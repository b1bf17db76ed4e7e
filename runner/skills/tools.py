"""Skills as a set of tools: `Skills`. Source: spec/services, 2.6 to 2.11."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Literal, get_args

from graphagent.agents.function_tool import FunctionTool
from graphagent.agents.invocation import Invocation
from graphagent.agents.tool import Asking, Tool
from graphagent.errors import UsageError, alternatives
from graphagent.execution import CodeExecutor, InteractiveWorkspace
from graphagent.ledger import Session
from runner.skills.arguments import RunRules
from runner.skills.interactive import ExecTool, Programs, companion, exec_tool
from runner.skills.knowledge import list_docs_tool, load_tool, select_docs_tool, with_names
from runner.skills.loaded import Mode, session_now
from runner.skills.run import RunTool, run_tool
from runner.skills.running import Commands, workspace_key
from runner.skills.shelf import Gathered, Shelf, SkillSource
from runner.skills.telling import Telling, list_text, loaded_text

Profile = Literal["knowledge_only", "full"]
ToolName = Literal[
    "skill_load",
    "skill_list_docs",
    "skill_select_docs",
    "skill_run",
    "skill_exec",
    "skill_write_stdin",
    "skill_poll_session",
    "skill_kill_session",
]
NAMES: tuple[str, ...] = get_args(ToolName)
READING, TALKING = frozenset(NAMES[:3]), frozenset(NAMES[4:])
NEEDS = {"skill_exec": "skill_run", **dict.fromkeys(NAMES[5:], "skill_exec")}
PROFILES: Mapping[str, tuple[str, ...]] = {"knowledge_only": NAMES[:3], "full": NAMES}
MOST_NAMES = 256
"""Skills whose names are put into the schemas of the tools; with more of them the names are in the list only."""

_TOLD: ContextVar[Mapping[Skills, tuple[str, str]]] = ContextVar("told of skills")
"""By set, what the request that is being made says of its skills: the list, and the texts. `overview` isn't told which
request it is for; it is asked in the task that was offered the tools just before."""


SkillTool = FunctionTool | RunTool | ExecTool


class Skills:
    """Skills for an agent: `LLMAgent(..., tools=[Skills(SkillDirectory("skills"))])`.

    `repository`: where they are; also a function that gives the repository of a run, such as `ScopedSkills`; None takes
    `Runner(skills=...)`. The instruction lists the skills, those first that fit what was asked, and has the texts of
    those that are loaded; `telling` says how much. `profile`: `knowledge_only` reads skills, `full` runs commands of
    theirs too; `tools`: which tools there are, whatever the profile says. `mode`: how long a loaded skill is in view
    (`once`: the next request; `turn`; `session`); `max_loaded`: how many at once, the last touched count.
    `executor`: where commands run, None takes `Runner(executor=...)`; `run`: what they may do.

    A run without a session has no skills. Raises UsageError for a profile, a mode or a tool that isn't known, and for
    tools that need another one.
    """

    name = ""

    def __init__(
        self,
        repository: SkillSource = None,
        *,
        profile: Profile = "knowledge_only",
        tools: Collection[ToolName] | None = None,
        mode: Mode = "turn",
        max_loaded: int = 8,
        telling: Telling | None = None,
        executor: CodeExecutor | None = None,
        run: RunRules | None = None,
    ) -> None:
        _check("profile", profile, PROFILES)
        _check("mode", mode, get_args(Mode))
        if max_loaded < 1:
            raise UsageError(f"max_loaded is {max_loaded}; it has to be 1 or more")
        self._telling = telling or Telling()
        self._executor = executor
        self._programs = Programs()
        self._talks: dict[CodeExecutor, bool] = {}
        rules = run or RunRules()
        shelf = self._shelf = Shelf(repository, mode, max_loaded)
        commands = Commands(shelf, executor, rules)
        makers: dict[str, Callable[[], SkillTool]] = {
            "skill_load": lambda: load_tool(shelf),
            "skill_list_docs": lambda: list_docs_tool(shelf),
            "skill_select_docs": lambda: select_docs_tool(shelf),
            "skill_run": lambda: run_tool(commands),
            "skill_exec": lambda: exec_tool(commands, self._programs),
        }
        makers |= {name: partial(companion, name, commands, self._programs) for name in NAMES[5:]}
        self._tools = tuple(makers[name]() for name in _chosen(profile, tools, rules))

    async def tools(self) -> Sequence[Tool]:
        """All tools that the set may offer."""
        return self._tools

    async def offered(self, asking: Asking) -> Sequence[Tool]:
        """The tools for a request: none without a session, or to a node with an output schema. Raises UsageError for a
        wrong preload, for commands without an executor, and for skills without a repository."""
        invocation = asking.invocation
        if asking.structured or invocation is None:
            return ()
        session = await session_now(invocation)
        if session is None:
            return ()
        repository = await self._shelf.repository(invocation)
        tools = await self._usable(invocation, session)
        summaries = await repository.summaries()
        gathered = await self._shelf.gathered(invocation, session, repository)
        asked = "" if invocation.message is None else invocation.message.text
        told = list_text(summaries, asked, self._telling), _loaded(gathered, self._telling)
        _TOLD.set({**_TOLD.get({}), self: told})
        names = [one.name for one in summaries]
        return [_naming(one, names) for one in tools] if 0 < len(names) <= MOST_NAMES else tools

    def overview(self, names: Collection[str]) -> str:
        """The list of skills, if they can be loaded, and the texts of those that are."""
        if not any(one.spec.name in names for one in self._tools):
            return ""
        listed, loaded = _TOLD.get({}).get(self, ("", ""))
        return "\n\n".join(part for part in (listed if "skill_load" in names else "", loaded) if part)

    async def aclose(self) -> None:
        """End the programs that are talked to; an executor is closed by who made it."""
        await self._programs.aclose()

    async def _usable(self, invocation: Invocation, session: Session) -> Sequence[SkillTool]:
        """The tools that the executor can serve. Raises UsageError without an executor."""
        if all(one.spec.name in READING for one in self._tools):
            return self._tools
        executor = self._executor or invocation.services.executor
        if executor is None:
            raise UsageError(
                f"agent '{invocation.agent.name}' is offered 'skill_run', and there is nothing to run it with: "
                "Skills(executor=...), or Runner(executor=...), or profile='knowledge_only'"
            )
        if all(one.spec.name not in TALKING for one in self._tools):
            return self._tools
        if executor not in self._talks:
            workspace = await executor.open(workspace_key(session.key))
            self._talks[executor] = isinstance(workspace, InteractiveWorkspace)
        return [one for one in self._tools if self._talks[executor] or one.spec.name not in TALKING]


def _naming(one: SkillTool, names: Sequence[str]) -> SkillTool:
    return with_names(one, names) if "skill" in one.spec.parameters["properties"] else one


def _loaded(gathered: Gathered, telling: Telling) -> str:
    parts = [loaded_text(gathered.view, telling)]
    if gathered.out:
        parts.append(f"(Loaded before, and no longer in view: {', '.join(gathered.out)}.)")
    if gathered.gone:
        parts.append(f"(Loaded, and no longer there: {', '.join(gathered.gone)}.)")
    return "\n".join(part for part in parts if part)


def _chosen(profile: Profile, tools: Collection[ToolName] | None, rules: RunRules) -> tuple[str, ...]:
    if tools is None:
        chosen = PROFILES[profile]
    else:
        for wanted in tools:
            _check("tool", wanted, NAMES)
        chosen = tuple(name for name in NAMES if name in tools)
    for one, needed in NEEDS.items():
        if one in chosen and needed not in chosen:
            raise UsageError(f"'{one}' needs '{needed}', which is not among the tools: add it")
    if rules.require_loaded and "skill_run" in chosen and "skill_load" not in chosen:
        raise UsageError("skill_run requires that a skill was loaded, and 'skill_load' is not among the tools: add it")
    return chosen


def _check(what: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise UsageError(f"{what} '{value}' of skills is unknown: {alternatives(str(value), known)}")
