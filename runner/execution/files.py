"""The files of a workspace: written as a whole, read within limits, and never outside of it."""

from __future__ import annotations

import errno
import mimetypes
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphagent.errors import PathEscape, UsageError
from graphagent.execution import COLLECT_LIMITS, Collected, CollectLimits, OutputFile
from graphagent.ids import fresh_id
from runner.execution.beneath import open_beneath, opened, parts_of
from runner.execution.globs import matcher

LAYOUT = ("skills", "work", "work/inputs", "runs", "out")
_MOST_ENTRIES = 100_000
"""Files of a workspace that are looked at; a program can make any number."""


class WorkspaceFiles:
    """The files below a directory. `owner`: who they are to belong to, for programs that run as somebody else. Its
    methods block; nothing runs in the workspace meanwhile, and if something does, it gains nothing."""

    def __init__(self, root: Path, owner: int | None = None) -> None:
        self.root, self.owner = root, owner

    def make(self) -> None:
        """Make the directory with its parts, for its owner alone."""
        self.root.mkdir(mode=0o700, parents=True)
        for name in LAYOUT:
            (self.root / name).mkdir(mode=0o700, exist_ok=True)
        for path in (self.root, *(self.root / name for name in LAYOUT)):
            self._own(path)

    def put(self, path: str, data: bytes, executable: bool) -> None:
        """Write a file with the directories above it; all of it or nothing. Raises PathEscape, UsageError where a
        directory is."""
        parts = parts_of(path)
        if not parts:
            raise UsageError(f"path {path!r} is the workspace itself, not a file in it")
        with opened(self.root) as root:
            folder = self._folder(root, parts[:-1])
            try:
                self._write(folder, parts[-1], data, 0o700 if executable else 0o600, path)
            finally:
                os.close(folder)

    def _write(self, folder: int, name: str, data: bytes, mode: int, path: str) -> None:
        made = f".put-{fresh_id()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(made, flags, mode, dir_fd=folder), "wb") as file:
            try:
                file.write(data)
                file.flush()
                if self.owner is not None:
                    os.fchown(file.fileno(), self.owner, self.owner)
                os.rename(made, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                os.unlink(made, dir_fd=folder)
                if error.errno in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
                    raise UsageError(f"path '{path}' is a directory of the workspace; write into it") from error
                raise

    def _folder(self, root: int, parts: Sequence[str]) -> int:
        """A descriptor of a directory, made if need be."""
        at = os.dup(root)
        for place, part in enumerate(parts):
            try:
                os.mkdir(part, 0o700, dir_fd=at)
                if self.owner is not None:
                    os.chown(part, self.owner, self.owner, dir_fd=at, follow_symlinks=False)
            except FileExistsError:
                pass
            try:
                inner = open_beneath(root, "/".join(parts[: place + 1]), os.O_DIRECTORY | os.O_RDONLY)
            except NotADirectoryError as error:
                where = "/".join(parts[: place + 1])
                raise UsageError(f"'{where}' is a file of the workspace; nothing can be below it") from error
            finally:
                os.close(at)
            at = inner
        return at

    def read(self, path: str, most: int) -> OutputFile | None:
        """A file, at most so many bytes of it; None if there is no file. Raises PathEscape."""
        with opened(self.root) as root:
            return _read(root, path, most)

    def remove(self, path: str) -> bool:
        """Remove a file, a link, or a directory with all in it; False if there was none."""
        parts = parts_of(path)
        if not parts:
            raise UsageError("the workspace itself is removed with `discard`")
        with opened(self.root) as root:
            try:
                folder = open_beneath(root, "/".join(parts[:-1]), os.O_DIRECTORY | os.O_RDONLY)
            except (FileNotFoundError, NotADirectoryError):
                return False
            try:
                found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    shutil.rmtree(parts[-1], dir_fd=folder)
                else:
                    os.unlink(parts[-1], dir_fd=folder)
            except FileNotFoundError:
                return False
            finally:
                os.close(folder)
        return True

    def collect(self, patterns: Sequence[str], limits: CollectLimits = COLLECT_LIMITS) -> Collected:
        """The files that fit globs, sorted by path, each once, within limits."""
        fits = matcher(patterns)
        found: list[OutputFile] = []
        total, hit, seen = 0, False, set[tuple[int, int]]()
        with opened(self.root) as root:
            paths, cut = _paths(root, fits)
            for path in paths:
                left = min(limits.file_bytes, limits.total_bytes - total)
                if len(found) >= limits.files or left <= 0:
                    hit = True
                    break
                same = _identity(root, path)
                if same is None or same in seen:
                    continue
                file = _read(root, path, left)
                if file is None:
                    continue
                seen.add(same)
                hit = hit or file.truncated
                total += len(file.data)
                found.append(file)
        return Collected(tuple(found), hit or cut)

    def folder(self, path: str) -> Path:
        """A directory of the workspace as the system knows it. Raises PathEscape, UsageError if there is none."""
        with opened(self.root) as root:
            try:
                os.close(open_beneath(root, path, os.O_DIRECTORY | os.O_RDONLY))
            except (FileNotFoundError, NotADirectoryError) as error:
                raise UsageError(f"there is no directory '{path}' in the workspace") from error
        return self.root.joinpath(*parts_of(path))

    def _own(self, path: Path) -> None:
        if self.owner is not None:
            os.chown(path, self.owner, self.owner)


def _paths(root: int, fits: re.Pattern[str]) -> tuple[list[str], bool]:
    """The paths that fit, sorted, and whether there were too many to look at."""
    found: list[str] = []
    for count, path in enumerate(_entries(root)):
        if count >= _MOST_ENTRIES:
            return sorted(found), True
        if fits.fullmatch(path):
            found.append(path)
    return sorted(found), False


def _entries(root: int) -> Iterator[str]:
    """All files and links below, without following a link to a directory."""
    for above, _, files, _ in os.fwalk(".", dir_fd=root, follow_symlinks=False):
        inside = above.removeprefix(".").lstrip("/")
        for name in files:
            if not name.startswith(".put-") and _is_text(name):
                yield f"{inside}/{name}" if inside else name


def _is_text(name: str) -> bool:
    return "\\" not in name and not any("\ud800" <= letter <= "\udfff" for letter in name)


def _identity(root: int, path: str) -> tuple[int, int] | None:
    """Which file a path leads to; None if it leads to none, or out of the workspace."""
    try:
        descriptor = open_beneath(root, path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, PathEscape):
        return None
    try:
        found = os.fstat(descriptor)
        return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
    finally:
        os.close(descriptor)


def _read(root: int, path: str, most: int) -> OutputFile | None:
    try:
        descriptor = open_beneath(root, path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would be waited for
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            return None
        data = file.read(most + 1)
    size = max(found.st_size, len(data))
    return OutputFile("/".join(parts_of(path)), data[:most], mime_of(path, data), size, len(data) > most)


def mime_of(path: str, data: bytes) -> str:
    """The media type of a file by its name, else by whether it is text."""
    named, encoding = mimetypes.guess_type(path)
    if named is not None and encoding is None:
        return named
    try:
        text = b"\0" not in data and data.decode("utf-8") is not None
    except UnicodeDecodeError as error:
        text = error.start > len(data) - 4 and error.reason == "unexpected end of data"
    return "text/plain" if text else "application/octet-stream"
