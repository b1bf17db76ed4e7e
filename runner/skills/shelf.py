"""What the tools of one set of skills share: the repository of a run, and what its agent has loaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from graphagent.agents.invocation import Invocation
from graphagent.agents.tool import ToolContext
from graphagent.engine.hooks import settled
from graphagent.errors import ServiceError, ToolError, UsageError
from graphagent.ledger import Session
from graphagent.skills import SkillRepository
from runner.skills.loaded import Docs, Loaded, Mode, just_loaded, loaded_in, selected, session_now
from runner.skills.preload import Snapshots
from runner.skills.telling import InView

SkillSource = SkillRepository | Callable[[Invocation], SkillRepository | Awaitable[SkillRepository]] | None
"""A repository; a function that gives one for a run, such as `ScopedSkills`; None: that of the run's services."""


class Gathered(NamedTuple):
    """What of the loaded skills is in view, the last touched first. `out`: loaded too, but there were too many; `gone`:
    loaded, and not in the repository any more."""

    view: tuple[InView, ...] = ()
    out: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class Call(NamedTuple):
    """What a call of a tool has around it."""

    invocation: Invocation
    session: Session
    repository: SkillRepository


@dataclass(frozen=True, slots=True)
class Shelf:
    """`mode`: how long what was loaded is in view; `most`: how many skills are at once."""

    source: SkillSource
    mode: Mode
    most: int
    snapshots: Snapshots = field(default_factory=Snapshots)

    async def repository(self, invocation: Invocation) -> SkillRepository:
        """The repository of a run. Raises UsageError if there is none, and what the function raises that gives it."""
        source = self.source if self.source is not None else invocation.services.skills
        if source is None:
            raise UsageError(
                f"agent '{invocation.agent.name}' has skills without a repository: Skills(SkillDirectory(path)), or "
                "Runner(skills=...)"
            )
        if callable(source):
            given: SkillRepository = await settled(source(invocation))
            return given
        return source

    async def call(self, ctx: ToolContext) -> Call:
        """What a call needs around it. Raises ToolError."""
        if ctx.invocation is None:
            raise ToolError(f"'{ctx.name}' was called outside of an agent's run; there are no skills")
        session = await session_now(ctx.invocation)
        if session is None:
            raise ToolError(f"'{ctx.name}' was called in a run without a session; what is loaded can't be kept")
        return Call(ctx.invocation, session, await self.repository(ctx.invocation))

    async def gathered(self, invocation: Invocation, session: Session, repository: SkillRepository) -> Gathered:
        """The loaded skills as the next request shows them. Raises what preloading raises."""
        preloaded = {one.skill.name: one for one in await self.snapshots.of(invocation, repository, self.most)}
        loaded = loaded_in(session, invocation, self.mode)
        fresh = just_loaded(session.events, invocation) if self.mode == "once" else frozenset()
        seen = {one.name for one in loaded}
        order = [Loaded(0, name) for name in preloaded if name not in seen]
        if self.mode == "once":
            order = [] if answered(session, invocation) else order
            loaded = [one for one in loaded if one.call in fresh]
        order = [*reversed(loaded), *order]
        view: list[InView] = []
        gone: list[str] = []
        for one in order[: self.most]:
            known = preloaded.get(one.name)
            docs = self.docs(session, invocation, one.name) or (() if known is None else known.docs)
            try:
                view.append(InView(await repository.get(one.name) if known is None else known.skill, docs))
            except ServiceError:
                gone.append(one.name)
        return Gathered(tuple(view), tuple(one.name for one in order[self.most :]), tuple(gone))

    def docs(self, session: Session, invocation: Invocation, skill: str) -> Docs:
        """The documents that are selected of a skill."""
        return selected(session, invocation, skill, self.mode)

    async def is_loaded(self, call: Call, skill: str) -> bool:
        """True if the agent has loaded it, or began with it; also if its text was shown already."""
        names = {one.name for one in loaded_in(call.session, call.invocation, self.mode)}
        begun = await self.snapshots.of(call.invocation, call.repository, self.most)
        return skill in names or skill in {one.skill.name for one in begun}


def answered(session: Session, invocation: Invocation) -> bool:
    """True if the agent's model has answered in this turn."""
    return any(
        event.request_id == invocation.request_id
        and event.author == invocation.agent.name
        and any(message.role == "assistant" for message in event.messages)
        for event in reversed(session.events)
    )
