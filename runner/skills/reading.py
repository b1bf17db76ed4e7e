"""The files of a skill's directory, read so that nothing outside of the trusted roots can be.

A path is opened from its root on, segment by segment and without following links; a link is followed only by working
out where it leads, which has to be below a root. So what is swapped meanwhile is an error, never another file.
All of it blocks.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from graphagent.errors import SkillRejected
from graphagent.execution import KIB, MIB
from graphagent.skills import Skill, SkillDoc, SkillFile
from runner.skills.front_matter import SkillText, parse_skill
from runner.skills.names import DEEPEST, MAIN, wrong_name

SKIPPED = frozenset({".git", ".venv", "__pycache__", "node_modules"})
"""Directories that are no part of a skill."""


class SkillLimits(NamedTuple):
    """How large a skill may be: its `SKILL.md`, any of its files, all of them together, in bytes; how many files; how
    many skills there may be. What is larger is refused, as a whole."""

    main_bytes: int = 256 * KIB
    file_bytes: int = 16 * MIB
    total_bytes: int = 64 * MIB
    files: int = 2000
    skills: int = 5000


SKILL_LIMITS = SkillLimits()


class Held(NamedTuple):
    """A file as it was found. `path`: relative to the skill, with forward slashes; `real`: where it is."""

    path: str
    real: Path
    size: int
    executable: bool


def read_main(directory: Path, roots: Sequence[Path], limits: SkillLimits) -> tuple[SkillText, str]:
    """What the `SKILL.md` of a directory says, and the skill's name. Raises SkillRejected, or OSError."""
    real = _real(directory / MAIN, roots)
    text = _text(read_below(real, roots, limits.main_bytes), directory / MAIN)
    said = parse_skill(text)
    name = said.name or directory.name
    if why := wrong_name(name):
        raise SkillRejected(f"{why} (in '{directory / MAIN}')")
    return said, name


def read_skill(directory: Path, name: str, roots: Sequence[Path], limits: SkillLimits) -> Skill:
    """All of a skill. Raises SkillRejected, or OSError."""
    files = read_files(directory, roots, limits)
    main = next((one for one in files if one.path == MAIN), None)
    if main is None:
        raise SkillRejected(f"'{directory}' has no file {MAIN}")
    if len(main.data) > limits.main_bytes:
        raise SkillRejected(f"'{directory / MAIN}' has more than {limits.main_bytes} bytes")
    said = parse_skill(_text(main.data, directory / MAIN))
    docs = tuple(SkillDoc(one.path, one.data.decode(errors="replace")) for one in files if is_doc(one.path))
    return Skill(name, said.description, said.body, docs, digest_of(files))


def read_files(directory: Path, roots: Sequence[Path], limits: SkillLimits) -> list[SkillFile]:
    """All files of a skill, sorted by path. Raises SkillRejected, or OSError."""
    return [
        SkillFile(one.path, read_below(one.real, roots, limits.file_bytes), one.executable)
        for one in held(directory, roots, limits)
    ]


def held(directory: Path, roots: Sequence[Path], limits: SkillLimits) -> list[Held]:
    """The files of a skill without their contents, sorted by path. Raises SkillRejected for a link that leads out of
    the roots, for what is no file, and for more than the limits allow."""
    found: list[Held] = []
    total = 0
    for one in _walk(directory, "", roots):
        total += one.size
        found.append(one)
        if one.size > limits.file_bytes:
            raise SkillRejected(f"'{one.real}' has {one.size} bytes; a file of a skill has at most {limits.file_bytes}")
        if len(found) > limits.files or total > limits.total_bytes:
            raise SkillRejected(
                f"'{directory}' has more than {limits.files} files or {limits.total_bytes} bytes; move out of it what "
                "is no part of the skill"
            )
    return sorted(found)


def is_doc(path: str) -> bool:
    """True for a document beside the skill: a `.md` or `.txt` that is no `SKILL.md`."""
    name = path.rpartition("/")[2].lower()
    return name.endswith((".md", ".txt")) and name != MAIN.lower()


def digest_of(files: Iterable[SkillFile]) -> str:
    """What tells one state of a skill's files from another: sha256, hexadecimal."""
    whole = hashlib.sha256()
    for one in sorted(files):
        path = one.path.encode(errors="surrogateescape")
        whole.update(b"%d:%s%d:%d:" % (len(path), path, one.executable, len(one.data)) + one.data)
    return whole.hexdigest()


def read_below(real: Path, roots: Sequence[Path], most: int) -> bytes:
    """The bytes of a regular file below a root. Raises SkillRejected for more than so many bytes and for what isn't
    one, OSError for what can't be read, or has become a link."""
    root = next(root for root in roots if real.is_relative_to(root))
    parts = real.relative_to(root).parts
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = deeper
        file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=current)
    finally:
        os.close(current)
    with open(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise SkillRejected(f"'{real}' is no regular file")
        data = opened.read(most + 1)
    if len(data) > most:
        raise SkillRejected(f"'{real}' has more than {most} bytes, which is the limit")
    return data


def _walk(directory: Path, prefix: str, roots: Sequence[Path]) -> Iterator[Held]:
    if prefix.count("/") > DEEPEST:
        raise SkillRejected(f"'{directory}' is more than {DEEPEST} levels deep in its skill")
    with os.scandir(directory) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in SKIPPED:
                yield from _walk(path, f"{prefix}{entry.name}/", roots)
            continue
        if entry.name in SKIPPED:
            continue
        real = _real(path, roots)
        known = real.stat()
        if not stat.S_ISREG(known.st_mode):
            what = "leads to a directory: put the files there" if real.is_dir() else "is no regular file"
            raise SkillRejected(f"'{path}' {what}")
        yield Held(f"{prefix}{entry.name}", real, known.st_size, bool(known.st_mode & 0o111))


def _real(path: Path, roots: Sequence[Path]) -> Path:
    """Where a path leads. Raises SkillRejected if that is outside of the roots, or nowhere."""
    try:
        real = path.resolve(strict=True)
    except RuntimeError as error:  # a link that leads to itself
        raise SkillRejected(f"'{path}' is a link that leads nowhere") from error
    except OSError as error:
        if path.is_symlink():
            raise SkillRejected(f"'{path}' is a link that leads nowhere") from error
        raise
    if not any(real.is_relative_to(root) and real != root for root in roots):
        raise SkillRejected(f"'{path}' is a link that leads to '{real}', outside of the trusted roots; copy the file")
    return real


def _text(data: bytes, where: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SkillRejected(f"'{where}' is no UTF-8 text: {error.reason} at byte {error.start}") from error
