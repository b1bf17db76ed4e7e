"""Skills in directories: `SkillDirectory`. Source: spec/services, 2.2."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import anyio.to_thread

from graphagent.errors import ServiceError, SkillNotFound, SkillRejected, UsageError, alternatives
from graphagent.skills import Skill, SkillFile, SkillRefused, SkillSummary
from runner.skills.names import DEEPEST, MAIN
from runner.skills.reading import SKILL_LIMITS, SKIPPED, SkillLimits, held, read_files, read_main, read_skill

_log = logging.getLogger(__name__)

T = TypeVar("T")
Signature = tuple[int, int, int]


@dataclass(slots=True)
class _Entry:
    """A skill of the index: where it is, and its description as of the file with this signature."""

    directory: Path
    description: str
    signature: Signature


class _Index(NamedTuple):
    entries: Mapping[str, _Entry]
    refused: tuple[SkillRefused, ...]


class SkillDirectory:
    """A repository of the skills below directories, each in a directory of its own with a file `SKILL.md`.

    `roots`: paths, also as `file://` urls; blank ones are left out, and one that isn't there (yet) has no skills. Of
    two skills with one name the first counts, by the order of the roots, then of the paths. `limits`: what is larger is
    refused. The roots are looked through now and by `refresh`; a skill that is known is read anew every time, so an
    edit is seen at once. Files that lead out of the roots are never read: their skill is refused, and `refused` says
    why; the others are there. Directories whose names begin with a dot are left out. Raises UsageError for another
    scheme than `file`, ServiceError for a root that can't be read.
    """

    def __init__(self, *roots: str | Path, limits: SkillLimits = SKILL_LIMITS) -> None:
        self._limits = limits
        self._roots = tuple(dict.fromkeys(place for root in roots if (place := _place(root)) is not None))
        self._index = self._scanned()

    @property
    def roots(self) -> tuple[Path, ...]:
        """The directories, with links resolved, each once."""
        return self._roots

    @property
    def refused(self) -> tuple[SkillRefused, ...]:
        """What was refused when the roots were looked through last."""
        return self._index.refused

    async def summaries(self) -> list[SkillSummary]:
        """The known skills by name, as they are now; one whose file is gone, or has become unusable, is left out."""
        return await _told(self._summaries)

    async def get(self, name: str) -> Skill:
        """A skill as it is now. Raises SkillNotFound; SkillRejected for one that has become unusable."""
        return await self._of(name, _skill_now)

    async def files(self, name: str) -> list[SkillFile]:
        """All its files, sorted by path. Raises what `get` raises."""
        return await self._of(name, lambda directory, _, roots, limits: read_files(directory, roots, limits))

    async def refresh(self) -> list[SkillRefused]:
        """Look through the roots again, and take what is found as a whole. Raises ServiceError for a root that can't be
        read; what was known stays then."""
        self._index = await _told(self._scanned)
        return list(self._index.refused)

    # -- reading ---------------------------------------------------------------------------------

    async def _of(self, name: str, read: Callable[[Path, str, Sequence[Path], SkillLimits], T]) -> T:
        entry = self._index.entries.get(name)
        if entry is None:
            raise _unknown(name, self._index.entries)
        try:
            return await _told(partial(read, entry.directory, name, self._roots, self._limits))
        except FileNotFoundError as error:
            known = {other: one for other, one in self._index.entries.items() if other != name}
            raise _unknown(name, known) from error

    def _summaries(self) -> list[SkillSummary]:
        found = []
        for name, entry in self._index.entries.items():
            try:
                signature = _signature(entry.directory)
                if signature != entry.signature:
                    said, _ = read_main(entry.directory, self._roots, self._limits)
                    entry.description, entry.signature = said.description, signature
            except (OSError, SkillRejected) as error:
                if not isinstance(error, FileNotFoundError):
                    _log.warning("skill '%s' is left out: %s", name, error)
                continue
            found.append(SkillSummary(name, entry.description))
        return sorted(found)

    # -- looking through the roots ---------------------------------------------------------------

    def _scanned(self) -> _Index:
        entries: dict[str, _Entry] = {}
        refused: list[SkillRefused] = []
        for directory in self._candidates(refused):
            try:
                said, name = read_main(directory, self._roots, self._limits)
                signature = _signature(directory)
                held(directory, self._roots, self._limits)
            except (OSError, SkillRejected) as error:
                refused.append(SkillRefused(str(directory), str(error)))
                continue
            if name in entries:
                why = f"the name '{name}' is taken by '{entries[name].directory}'"
                refused.append(SkillRefused(str(directory), why))
            elif len(entries) >= self._limits.skills:
                refused.append(SkillRefused(str(directory), f"there are {self._limits.skills} skills before it"))
            else:
                entries[name] = _Entry(directory, said.description, signature)
        return _Index(MappingProxyType(entries), tuple(refused))

    def _candidates(self, refused: list[SkillRefused]) -> Iterator[Path]:
        """The directories with a `SKILL.md`, in order, each once."""
        seen: set[Path] = set()
        for root in self._roots:
            if not root.exists():
                continue
            try:
                os.scandir(root).close()
            except OSError as error:
                raise ServiceError(f"the skills in '{root}' could not be read: {error}") from error

            def unreadable(error: OSError) -> None:
                refused.append(SkillRefused(str(error.filename), f"it could not be read: {error.strerror}"))

            for path, below, files in os.walk(root, onerror=unreadable):
                here = Path(path)
                deep = len(here.relative_to(root).parts) >= DEEPEST
                refused.extend(self._links(here, below))
                below[:] = [] if deep else sorted(one for one in below if one not in SKIPPED and one[0] != ".")
                if MAIN in files and here not in seen:
                    seen.add(here)
                    yield here

    def _links(self, here: Path, below: Sequence[str]) -> Iterator[SkillRefused]:
        """Directories that are skills elsewhere: those inside the roots are found there."""
        for link in sorted(one for one in below if (here / one).is_symlink()):
            real = (here / link).resolve()
            inside = any(real.is_relative_to(root) for root in self._roots)
            if not inside and (real / MAIN).exists():
                why = f"it is a link that leads to '{real}', outside of the trusted roots; name that as a root"
                yield SkillRefused(str(here / link), why)


def _skill_now(directory: Path, name: str, roots: Sequence[Path], limits: SkillLimits) -> Skill:
    """A skill, if its directory still has a `SKILL.md`. Raises FileNotFoundError, OSError, SkillRejected."""
    _signature(directory)
    return read_skill(directory, name, roots, limits)


def _signature(directory: Path) -> Signature:
    """What changes when a `SKILL.md` is edited. Raises FileNotFoundError."""
    known = os.stat(directory / MAIN)
    return known.st_size, known.st_mtime_ns, known.st_ino


def _place(root: str | Path) -> Path | None:
    """The directory that a root names; None for a blank one. Raises UsageError."""
    text = str(root).strip()
    if not text:
        return None
    if isinstance(root, str) and "://" in text:
        url = urlsplit(text)
        if url.scheme != "file" or url.netloc not in ("", "localhost"):
            raise UsageError(
                f"root '{text}' is no directory of this machine: give a path or a file:// url; skills from elsewhere "
                "are installed with install_skill"
            )
        text = unquote(url.path)
    return Path(text).expanduser().resolve()


def _unknown(name: str, known: Mapping[str, _Entry]) -> SkillNotFound:
    return SkillNotFound(f"unknown skill: '{name}'; {alternatives(name, sorted(known))}")


async def _told(work: Callable[[], T]) -> T:
    """What blocking work returns. Raises ServiceError for an error of the disk, but for a file that isn't there."""
    try:
        return await anyio.to_thread.run_sync(work)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ServiceError(f"a skill could not be read: {error}") from error
