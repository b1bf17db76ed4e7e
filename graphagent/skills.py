"""The port of skills: written knowledge of how to do a thing, kept in directories with a file `SKILL.md`."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable


class SkillSummary(NamedTuple):
    """What is told of a skill before it is loaded."""

    name: str
    description: str


class SkillDoc(NamedTuple):
    """A document beside the skill. `path`: relative to the skill, with forward slashes."""

    path: str
    text: str


class SkillFile(NamedTuple):
    """Any file of a skill, as it is put into a workspace."""

    path: str
    data: bytes
    executable: bool = False


class Skill(NamedTuple):
    """A skill as it was read at one moment. `body`: the text after the front matter; `docs`: sorted by path; `digest`:
    sha256, hexadecimal, over the paths and bytes of all its files."""

    name: str
    description: str
    body: str
    docs: tuple[SkillDoc, ...] = ()
    digest: str = ""


class SkillRefused(NamedTuple):
    """A directory that is no skill, though it looks like one: `where` it is, and `why`."""

    where: str
    why: str


class SkillRepository(Protocol):
    """Skills by name. What is on a disk is read anew, so an edit is seen."""

    async def summaries(self) -> list[SkillSummary]:
        """All skills, by name."""
        ...

    async def get(self, name: str) -> Skill:
        """One skill. Raises SkillNotFound (a NotFound), which names the nearest."""
        ...

    async def files(self, name: str) -> list[SkillFile]:
        """All its files, sorted by path. Raises SkillNotFound."""
        ...


@runtime_checkable
class RefreshableSkills(Protocol):
    """A repository that looks again for skills that are new."""

    async def refresh(self) -> list[SkillRefused]:
        """Scan again and take the new index as a whole; returns what was refused. An error leaves the old one."""
        ...
