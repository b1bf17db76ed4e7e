"""Programs of this machine's user, for code that is trusted."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from graphagent.execution import Program, Workspace
from runner.execution.files import WorkspaceFiles
from runner.execution.process import Launch
from runner.execution.rooms import Launcher, Rooms

PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"


def variables(root: str, run_dir: str, given: Mapping[str, str], path: str) -> dict[str, str]:
    """The environment of a program in a workspace at `root`, as the program sees it. What is `given` comes last."""
    return {
        "PATH": path,
        "HOME": f"{root}/work",
        "LANG": "C.UTF-8",
        "WORKSPACE_DIR": root,
        "SKILLS_DIR": f"{root}/skills",
        "WORK_DIR": f"{root}/work",
        "OUTPUT_DIR": f"{root}/out",
        "RUN_DIR": f"{root}/{run_dir}",
        **given,
    }


def rlimits(program: Program) -> dict[str, int]:
    """What each process of a program may use."""
    limits = program.limits
    return {
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": 1024,
    }


class _Plain(Launcher):
    def launch(self, files: WorkspaceFiles, program: Program, cwd: str, run_dir: str, *, tty: bool) -> Launch:
        root = str(files.root)
        here = os.path.dirname(sys.executable)
        env = variables(root, run_dir, program.env, f"{here}:{PLAIN_PATH}")
        return Launch(program.argv, env, str(files.root / cwd), rlimits(program))


class LocalExecutor:
    """Runs programs as this process's user, in directories of their own below `root` (default: the system's for
    temporary files).

    It bounds what a program uses and ends whatever it leaves behind, but it does not keep it from reading and writing
    what this user may: `isolated` is False. Python is this process's. Nothing of this process's environment is
    inherited.
    """

    name = "local"
    isolated = False

    def __init__(self, root: Path | str | None = None) -> None:
        self._rooms = Rooms(_Plain(), root)

    async def open(self, key: str) -> Workspace:
        """The workspace with this key, made if there is none. Raises UsageError for an empty key."""
        return await self._rooms.open(key)

    async def discard(self, key: str) -> None:
        """End what runs in a workspace, and remove it; harmless if there is none."""
        await self._rooms.discard(key)

    async def aclose(self) -> None:
        """End whatever runs, and remove what was made for it; harmless twice."""
        await self._rooms.aclose()
