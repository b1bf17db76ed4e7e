"""Workspaces by their keys: each is made once, however many ask for it at the same time."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread

from graphagent.errors import UsageError
from graphagent.execution import COLLECT_LIMITS, MIB, Collected, CollectLimits, OutputFile, Program, Ran
from runner.execution.beneath import parts_of
from runner.execution.files import WorkspaceFiles
from runner.execution.process import Interactive, Launch, run, start

_SAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Room:
    """A workspace of this machine: its files, and how programs are started in it."""

    def __init__(self, key: str, files: WorkspaceFiles, launcher: Launcher) -> None:
        self._key, self._files, self._launcher = key, files, launcher
        self._runs = 0
        self._open: set[Interactive] = set()
        self._scope = anyio.CancelScope()

    @property
    def key(self) -> str:
        """What it was opened with."""
        return self._key

    @property
    def root(self) -> Path:
        """Where it is on this machine."""
        return self._files.root

    async def put(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Write a file, with the directories above it; all of it or nothing. Raises PathEscape."""
        await anyio.to_thread.run_sync(self._files.put, path, data, executable)

    async def read(self, path: str, *, most: int = 64 * MIB) -> OutputFile | None:
        """A file, at most so many bytes of it; None if there is none. Raises PathEscape."""
        return await anyio.to_thread.run_sync(self._files.read, path, most)

    async def remove(self, path: str) -> bool:
        """Remove a file or a directory with all in it; False if there was none. Raises PathEscape."""
        return await anyio.to_thread.run_sync(self._files.remove, path)

    async def collect(self, patterns: Sequence[str], limits: CollectLimits = COLLECT_LIMITS) -> Collected:
        """The files that fit globs. Raises PathEscape for a glob that leaves the workspace."""
        return await anyio.to_thread.run_sync(self._files.collect, patterns, limits)

    async def run(self, program: Program) -> Ran:
        """Run a program to its end. Raises UsageError for a `cwd` that isn't there, or a program without a name."""
        return self._launcher.told(await run(await self._launch(program, tty=False), program))

    async def start(self, program: Program, *, tty: bool = False) -> Interactive:
        """Start a program and return at once."""
        made = await start(await self._launch(program, tty=tty), program, tty=tty)
        self._open.add(made)
        return made

    async def _launch(self, program: Program, *, tty: bool) -> Launch:
        words = [*program.argv, *program.env, *program.env.values()]
        if not program.argv or not program.argv[0] or any("\0" in word for word in words):
            raise UsageError(f"the program {program.argv!r} has no name, or a NUL in its words or environment")
        if bad := [name for name in program.env if not name or "=" in name]:
            raise UsageError(f"environment variable {bad[0]!r} has no name that a system takes")
        self._runs += 1
        here = f"runs/run_{self._runs}"
        await anyio.to_thread.run_sync(self._files.put, f"{here}/.run", b"", False)
        await anyio.to_thread.run_sync(self._files.folder, program.cwd)
        return self._launcher.launch(self._files, program, "/".join(parts_of(program.cwd)), here, tty=tty)

    async def close(self) -> None:
        """End what runs, and remove the files."""
        for one in self._open:
            await one.kill()
        await anyio.to_thread.run_sync(_removed, self._files.root)


class Launcher:
    """How an executor starts a program."""

    def launch(self, files: WorkspaceFiles, program: Program, cwd: str, run_dir: str, *, tty: bool) -> Launch:
        """The way to start it. `cwd` and `run_dir` are in the workspace."""
        raise NotImplementedError

    def told(self, ran: Ran) -> Ran:
        """How a program ended, as its caller is to hear it."""
        return ran

    def files(self, root: Path) -> WorkspaceFiles:
        """The files of a new workspace."""
        return WorkspaceFiles(root)

    def check(self) -> None:
        """Raises ExecutorUnavailable if it can't keep what it promises; called once, before the first workspace."""


class Rooms:
    """The workspaces of an executor, below a directory that is removed with it."""

    def __init__(self, launcher: Launcher, root: Path | str | None) -> None:
        self._launcher = launcher
        self._parent = None if root is None else Path(root)
        self._base: Path | None = None
        self._rooms: dict[str, Room] = {}
        self._lock = anyio.Lock()
        self._count = 0

    async def open(self, key: str) -> Room:
        """The workspace with this key, made if there is none."""
        if key in self._rooms:
            return self._rooms[key]
        if not key:
            raise UsageError("a workspace needs a key: the session's, or one of its own")
        with anyio.CancelScope(shield=True):  # others may wait for the one that is made here
            async with self._lock:
                if key not in self._rooms:
                    self._rooms[key] = await self._made(key)
        return self._rooms[key]

    async def _made(self, key: str) -> Room:
        if self._base is None:
            await anyio.to_thread.run_sync(self._launcher.check)
            made = await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="graphagent-", dir=self._parent))
            self._base = Path(made)
            self._base.chmod(0o711)
        self._count += 1
        name = f"ws_{_SAFE.sub('_', key)[:40]}_{hashlib.sha256(key.encode()).hexdigest()[:8]}_{self._count}"
        files = self._launcher.files(self._base / name)
        await anyio.to_thread.run_sync(files.make)
        return Room(key, files, self._launcher)

    async def discard(self, key: str) -> None:
        """End what runs in a workspace, and remove it; harmless if there is none."""
        async with self._lock:
            room = self._rooms.pop(key, None)
            if room is not None:
                with anyio.CancelScope(shield=True):
                    await room.close()

    async def aclose(self) -> None:
        """End whatever runs, and remove what was made."""
        for key in list(self._rooms):
            await self.discard(key)
        if self._base is not None:
            await anyio.to_thread.run_sync(_removed, self._base)
            self._base = None


def _removed(path: Path) -> None:
    """Remove a tree that a program may have made hard to remove."""

    def again(function: object, name: str, info: object) -> None:
        with suppress(OSError):
            Path(name).parent.chmod(0o700)
            Path(name).chmod(0o700)
            Path(name).unlink() if not Path(name).is_dir() else Path(name).rmdir()

    shutil.rmtree(path, onerror=again)
