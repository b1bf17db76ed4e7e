"""A skill out of an archive into a directory of skills. Source: spec/services, 2.2; cases C233, C234."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread

from graphagent.errors import AlreadyExists, ServiceError, SkillRejected
from graphagent.ids import fresh_id
from graphagent.skills import SkillFile, SkillSummary
from runner.skills.archive import ARCHIVE_LIMITS, ArchiveLimits, unpacked
from runner.skills.front_matter import parse_skill
from runner.skills.names import MAIN, folded, wrong_name

STAGING = ".installing-"
"""What the directory is called, with an id behind it, in which a skill is written before it is there."""


async def install_skill(
    archive: bytes | Path, root: str | Path, *, limits: ArchiveLimits = ARCHIVE_LIMITS
) -> SkillSummary:
    """Put the one skill of an archive into `root`, in a directory that is called as the skill is.

    `archive`: a zip, a tar or a tar.gz (or the path of one) with `SKILL.md` at its top or in its only directory, or the
    text of a lone `SKILL.md`, whose front matter then has the name. It is read and checked as a whole first, and what
    is there in the end is all of the skill or nothing; whoever is killed in between leaves a directory that no
    repository looks into. A repository finds the skill when it is refreshed.

    Raises SkillRejected, with the member and the reason, for paths that lead elsewhere, links, special files, two
    members in one place, more than the limits allow, and what is no skill; AlreadyExists if the name is taken;
    ServiceError if the disk can't be written.
    """
    return await anyio.to_thread.run_sync(partial(_install, archive, Path(root), limits))


def _install(archive: bytes | Path, root: Path, limits: ArchiveLimits) -> SkillSummary:
    try:
        data = archive if isinstance(archive, bytes) else _read(archive, limits.archive_bytes)
        files = unpacked(data, limits)
        top, files = _of_one_skill(files)
        summary = _summary(files, top)
        _write(files, root, summary.name)
    except OSError as error:
        raise ServiceError(f"the skill could not be installed into '{root}': {error}") from error
    return summary


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as opened:
        return opened.read(most + 1)


def _of_one_skill(files: Sequence[SkillFile]) -> tuple[str, list[SkillFile]]:
    """The name of the archive's only directory, empty if there is none, and the files as the skill has them."""
    paths = {one.path for one in files}
    if MAIN in paths:
        return "", list(files)
    tops = {path.partition("/")[0] for path in paths}
    if len(tops) == 1 and f"{(top := tops.pop())}/{MAIN}" in paths:
        return top, [one._replace(path=one.path[len(top) + 1 :]) for one in files]
    found = sorted(path for path in paths if path.endswith(f"/{MAIN}"))
    if found:
        shown = ", ".join(f"'{path}'" for path in found[:5])
        raise SkillRejected(
            f"the archive has its {MAIN} at {shown}; it has to be at the top, or in the only directory: pack one skill"
        )
    raise SkillRejected(f"the archive has no {MAIN} (spelled so)")


def _summary(files: Sequence[SkillFile], top: str) -> SkillSummary:
    [main] = [one for one in files if one.path == MAIN]
    try:
        said = parse_skill(main.data.decode())
    except UnicodeDecodeError as error:
        raise SkillRejected(f"the archive's {MAIN} is no UTF-8 text: {error.reason} at byte {error.start}") from error
    name = said.name or top
    if not name:
        raise SkillRejected(f"the archive's {MAIN} says no name: begin it with '---', 'name: ...', '---'")
    if why := wrong_name(name):
        raise SkillRejected(why)
    return SkillSummary(name, said.description)


def _write(files: Sequence[SkillFile], root: Path, name: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    taken = {folded(one): one for one in os.listdir(root)}.get(folded(name))
    if taken is not None:
        raise AlreadyExists(f"'{root / taken}' is there already: remove it, or give the skill another name")
    staging = root / f"{STAGING}{fresh_id()}"
    try:
        for one in files:
            target = staging / one.path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as opened:
                opened.write(one.data)
            target.chmod(0o755 if one.executable else 0o644)
        _put(staging, root / name)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _put(staging: Path, target: Path) -> None:
    """Give a directory its name, as one step. Raises AlreadyExists if somebody else was quicker."""
    try:
        os.rename(staging, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise AlreadyExists(f"'{target}' is there already, since a moment ago: remove it first") from error
        raise
