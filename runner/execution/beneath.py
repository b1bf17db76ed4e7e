"""Opening files below a directory, whatever links a program has left there.

Linux resolves the whole path with `openat2` and RESOLVE_BENEATH (openat2(2), since 5.6): links are followed as long as
they stay below, and nobody can swap a directory for a link in between. Elsewhere each part is opened by itself and
links are refused.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphagent.errors import PathEscape

_OPENAT2, _NO_MAGICLINKS, _BENEATH = 437, 0x02, 0x08
_MOST_LINKS = 8


class _How(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def parts_of(path: str) -> tuple[str, ...]:
    """The parts of a path relative to a workspace; none for the workspace itself. Raises PathEscape for one that is
    absolute, goes up, or has a part that is no name."""
    if path.startswith("/") or "\\" in path or "\0" in path or (len(path) > 1 and path[1] == ":"):
        raise PathEscape(f"path {path!r} escapes workspace: give one relative to it, with forward slashes")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise PathEscape(f"path {path!r} escapes workspace: it goes up; give one below the workspace")
    return parts


def open_beneath(root: int, path: str, flags: int) -> int:
    """A descriptor of what is at a path below an open directory. Raises PathEscape if it leads out of it, OSError if it
    isn't there."""
    relative = "/".join(parts_of(path)) or "."
    flags |= os.O_CLOEXEC
    if sys.platform == "linux":
        how = _How(flags, 0, _BENEATH | _NO_MAGICLINKS)
        found = _libc().syscall(_OPENAT2, root, relative.encode(), ctypes.byref(how), ctypes.sizeof(how))
        if found >= 0:
            return int(found)
        number = ctypes.get_errno()
        if number in (errno.EXDEV, errno.ELOOP):
            raise PathEscape(f"path {path!r} escapes workspace: a link on the way leads out of it")
        if number != errno.ENOSYS:
            raise OSError(number, os.strerror(number), path)
    return _step_by_step(root, relative, flags, path)


def _step_by_step(root: int, relative: str, flags: int, path: str) -> int:
    at = os.dup(root)
    try:
        *above, last = relative.split("/")
        for part in above:
            inner = os.open(part, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(last, flags | os.O_NOFOLLOW, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK) or (error.errno == errno.ENOTDIR and _is_link(at, relative)):
            raise PathEscape(f"path {path!r} escapes workspace: a link is on the way") from error
        raise
    finally:
        os.close(at)


def _is_link(at: int, relative: str) -> bool:
    return any(Path(part).is_symlink() for part in relative.split("/"))


@contextmanager
def opened(root: Path) -> Iterator[int]:
    """A descriptor of a directory, while the block lasts."""
    descriptor = os.open(root, os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
