"""Some of the skills of a repository, and repositories by app and user. Source: spec/services, 2.2 and 2.3."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import anyio.to_thread

from graphagent.agents.invocation import Invocation
from graphagent.errors import SkillNotFound, UsageError, alternatives
from graphagent.skills import RefreshableSkills, Skill, SkillFile, SkillRefused, SkillRepository, SkillSummary
from runner.skills.directory import SkillDirectory

ScopeMode = Literal["app", "user"]
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True)
class VisibleSkills:
    """Those skills of `base` for which `visible` is true; any other is as if it weren't there."""

    base: SkillRepository
    visible: Callable[[SkillSummary], bool]

    async def summaries(self) -> list[SkillSummary]:
        """The visible skills, by name."""
        return [one for one in await self.base.summaries() if self.visible(one)]

    async def get(self, name: str) -> Skill:
        """A visible skill. Raises SkillNotFound."""
        await self._check(name)
        return await self.base.get(name)

    async def files(self, name: str) -> list[SkillFile]:
        """All files of a visible skill. Raises SkillNotFound."""
        await self._check(name)
        return await self.base.files(name)

    async def refresh(self) -> list[SkillRefused]:
        """Look for new skills, where the repository behind can."""
        return await self.base.refresh() if isinstance(self.base, RefreshableSkills) else []

    async def _check(self, name: str) -> None:
        known = [one.name for one in await self.summaries()]
        if name not in known:
            raise SkillNotFound(f"unknown skill: '{name}'; {alternatives(name, known)}")


def scope_path(mode: ScopeMode, app: str, user: str = "") -> str:
    """Where the skills of an app, or of one of its users, are below a root: `apps/<app>` or `users/<app>/<user>`. A
    name that isn't safe as a directory's is replaced by `id-` and a digest of it. Raises UsageError for a name that is
    missing, and for another mode."""
    if mode not in get_args(ScopeMode):
        raise UsageError(f"scope '{mode}' of skills is unknown: {alternatives(mode, get_args(ScopeMode))}")
    if not app or (mode == "user" and not user):
        raise UsageError(f"the skills of scope '{mode}' have no {'app' if not app else 'user'}: give its name")
    return f"apps/{_part(app)}" if mode == "app" else f"users/{_part(app)}/{_part(user)}"


@dataclass(frozen=True, slots=True)
class ScopedSkills:
    """Skills by app or by user, each below a directory of its own under `root` (see `scope_path`); `shared`: further
    roots that all have, which come after it. Give it to `Skills` in place of a repository: each run gets its own."""

    root: str | Path
    mode: ScopeMode = "user"
    shared: tuple[str | Path, ...] = ()

    def __post_init__(self) -> None:
        scope_path(self.mode, "app", "user")

    async def __call__(self, invocation: Invocation) -> SkillRepository:
        """The repository of a run. Raises UsageError without a session, which says whose they are."""
        session = invocation.session
        if session is None:
            raise UsageError(f"the skills of scope '{self.mode}' need a run in a session, which says whose they are")
        return await self.of(session.app, session.user)

    async def of(self, app: str, user: str = "") -> SkillDirectory:
        """The repository of an app or a user. Raises UsageError."""
        own = Path(self.root) / scope_path(self.mode, app, user)
        return await anyio.to_thread.run_sync(partial(SkillDirectory, own, *self.shared))


def _part(name: str) -> str:
    if _PLAIN.fullmatch(name) and ".." not in name and not name.startswith("id-"):
        return name
    return f"id-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}"
