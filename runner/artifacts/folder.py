"""Where files are put that aren't in a database: a tree of names on a disk or in an object store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from graphagent.ids import fresh_id

_ATTEMPTS = 100


class Folder(Protocol):
    """A tree of files. Paths have `/` between their segments, which are safe on every file system.

    All methods may block and raise OSError.
    """

    def write(self, path: str, data: bytes) -> None:
        """Make a file of a name that nobody else uses."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Make a small file, whole or not at all. Raises FileExistsError if there is one."""
        ...

    def read(self, path: str) -> bytes:
        """A file's bytes. Raises FileNotFoundError."""
        ...

    def find(self, path: str) -> list[str]:
        """The paths of all files below, in no certain order; none if there is no such folder."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; harmless if it isn't there."""
        ...


class LocalFolder:
    """A folder on a disk."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root).absolute()

    def write(self, path: str, data: bytes) -> None:
        """Make a file."""
        _in_parent(self._root / path, lambda target: target.write_bytes(data))

    def create(self, path: str, data: bytes) -> None:
        """Make a file by a hard link, which fails if there is one, to one that is complete."""
        made = self._root / f".{fresh_id()}"
        try:
            _in_parent(made, lambda target: target.write_bytes(data))
            _in_parent(self._root / path, lambda target: os.link(made, target))
        finally:
            made.unlink(missing_ok=True)

    def read(self, path: str) -> bytes:
        """A file's bytes."""
        return (self._root / path).read_bytes()

    def find(self, path: str) -> list[str]:
        """The paths of all files below."""
        found = []
        for folder, _, names in os.walk(self._root / path):
            at = Path(folder).relative_to(self._root).as_posix()
            found += [f"{at}/{name}" for name in names]
        return found

    def remove(self, path: str) -> None:
        """Remove a file, and the folders that are empty then."""
        target = self._root / path
        target.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a folder that isn't empty stays
            for parent in target.relative_to(self._root).parents[:-1]:
                (self._root / parent).rmdir()


def _in_parent(target: Path, work: Callable[[Path], object]) -> None:
    """Do work in a folder that is there, and again if `LocalFolder.remove` took the empty folder away."""
    for attempt in range(_ATTEMPTS):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            work(target)
            return
        except FileNotFoundError:
            if attempt == _ATTEMPTS - 1:
                raise
