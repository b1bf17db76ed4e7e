"""Files in whatever fsspec knows: object stores, FTP, memory, archives."""

from __future__ import annotations

import threading
from typing import Any

from graphagent.errors import UsageError
from runner.artifacts.folder import Folder, LocalFolder


def folder_for(url: str, options: dict[str, Any]) -> Folder:
    """The folder of a url such as `s3://bucket/path`; `options` go to the file system. Raises UsageError."""
    try:
        import fsspec
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise UsageError(f"files at '{url}' need fsspec: pip install 'graphagent[artifacts]'") from error
    try:
        system, root = url_to_fs(url, use_listings_cache=False, **options)
    except (ImportError, ValueError) as error:
        known = ", ".join(f"'{name}'" for name in sorted(fsspec.available_protocols())[:12])
        raise UsageError(f"'{url}' can't be opened by fsspec: {error}; it knows {known} and more") from error
    if "file" in (system.protocol if isinstance(system.protocol, tuple) else (system.protocol,)):
        return LocalFolder(root)
    return ObjectFolder(system, root)


_ONE_AT_A_TIME = threading.Lock()


class ObjectFolder:
    """A folder in an fsspec file system, which must be able to refuse a file that is there (`mode="create"`)."""

    def __init__(self, system: Any, root: str) -> None:
        self._system = system
        self._root = root.rstrip("/")

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}"

    def write(self, path: str, data: bytes) -> None:
        """Make a file."""
        full = self._full(path)
        self._system.makedirs(full.rpartition("/")[0], exist_ok=True)
        self._system.pipe_file(full, data)

    def create(self, path: str, data: bytes) -> None:
        """Make a file, unless there is one."""
        full = self._full(path)
        self._system.makedirs(full.rpartition("/")[0], exist_ok=True)
        with _ONE_AT_A_TIME:  # for the file systems that look first and then write, such as the one in memory
            self._system.pipe_file(full, data, mode="create")

    def read(self, path: str) -> bytes:
        """A file's bytes."""
        return bytes(self._system.cat_file(self._full(path)))

    def find(self, path: str) -> list[str]:
        """The paths of all files below."""
        self._system.invalidate_cache()
        prefix = len(self._root.lstrip("/")) + 1
        return [found.lstrip("/")[prefix:] for found in self._system.find(self._full(path))]

    def remove(self, path: str) -> None:
        """Remove a file."""
        try:
            self._system.rm_file(self._full(path))
        except FileNotFoundError:
            return
