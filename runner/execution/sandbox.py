"""Programs behind namespaces, for code that nobody trusts; needs bubblewrap, and no daemon."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from graphagent.errors import ExecutorUnavailable
from graphagent.execution import MIB, Program, Ran, Workspace
from runner.execution.files import WorkspaceFiles
from runner.execution.local import PLAIN_PATH, rlimits, variables
from runner.execution.process import Launch
from runner.execution.rooms import Launcher, Rooms

INSIDE = "/workspace"
"""Where a program finds its workspace."""
_READ_ONLY = ("/usr",)
_AS_THEY_ARE = ("/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32")
_ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime")
_FIRST_UID = 1_900_000_000


class _Bubblewrap(Launcher):
    """`bwrap` with every namespace of its own, no network, a read-only system, and one writable directory."""

    def __init__(self, scratch: int) -> None:
        self._scratch = scratch
        self._as_root = os.geteuid() == 0
        self._next = _FIRST_UID + secrets.randbelow(100_000_000)

    def files(self, root: Path) -> WorkspaceFiles:
        """As root every workspace has a user of its own: the kernel counts processes by user, and exempts root. Raises
        ExecutorUnavailable where that user can't come."""
        closed = [str(above) for above in root.parents if self._as_root and not above.stat().st_mode & 0o001]
        if closed:
            raise ExecutorUnavailable(
                f"the sandbox runs programs as a user of their own, who can't enter '{closed[-1]}': give a root that "
                f"everybody can enter"
            )
        self._next += 1
        return WorkspaceFiles(root, self._next if self._as_root else None)

    def launch(self, files: WorkspaceFiles, program: Program, cwd: str, run_dir: str, *, tty: bool) -> Launch:
        env = variables(INSIDE, run_dir, program.env, PLAIN_PATH)
        argv = [*self._wrapped(files, tty=tty), "--chdir", f"{INSIDE}/{cwd}".rstrip("/")]
        for name, value in env.items():
            argv += ["--setenv", name, value]
        most = program.limits.processes
        argv += ["--", "/usr/bin/prlimit", f"--nproc={most}:{most}", "--", *program.argv]
        own = {"PATH": PLAIN_PATH, "LANG": "C.UTF-8"}
        return Launch(tuple(argv), own, "/", rlimits(program), files.owner, own=2)

    def told(self, ran: Ran) -> Ran:
        """What can't be started is told by the last of the programs that start it."""
        if ran.exit_code == 127 and ran.stderr.startswith(b"prlimit: failed to execute"):
            why = ran.stderr.partition(b"execute ")[2].strip()
            return ran._replace(exit_code=-1, stderr=b"the program could not be started: " + why)
        return ran

    def _wrapped(self, files: WorkspaceFiles, *, tty: bool) -> list[str]:
        words = [
            _bwrap(),
            "--unshare-all",
            "--unshare-user",
            "--disable-userns",
            "--die-with-parent",
            "--cap-drop",
            "ALL",
        ]
        words += [] if tty else ["--new-session"]
        words += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--clearenv"]
        for path in _READ_ONLY:
            words += ["--ro-bind", path, path]
        for path in _AS_THEY_ARE:
            if os.path.islink(path):
                words += ["--symlink", os.readlink(path), path]
            elif os.path.isdir(path):
                words += ["--ro-bind", path, path]
        for path in _ETC:
            words += ["--ro-bind-try", path, path]
        words += ["--proc", "/proc", "--dev", "/dev", "--size", str(self._scratch), "--tmpfs", "/tmp"]
        words += ["--bind", str(files.root), INSIDE, "--remount-ro", "/"]
        return words

    def check(self) -> None:
        """Try it: a program that sees nothing of this machine, or ExecutorUnavailable with what is missing."""
        if sys.platform != "linux":
            raise ExecutorUnavailable(f"the sandbox needs Linux namespaces, and this is '{sys.platform}'; see docs")
        if not Path("/usr/bin/prlimit").exists():
            raise ExecutorUnavailable("the sandbox needs /usr/bin/prlimit: install util-linux")
        words = [_bwrap(), "--unshare-all", "--unshare-user", "--disable-userns", "--ro-bind", "/usr", "/usr"]
        for path in _AS_THEY_ARE:
            words += ["--symlink", os.readlink(path), path] if os.path.islink(path) else []
        words += ["--proc", "/proc", "--size", str(MIB), "--tmpfs", "/tmp", "--", "/usr/bin/test", "!", "-e", "/root"]
        user = _FIRST_UID if self._as_root else None
        done = subprocess.run(
            words,
            capture_output=True,
            env={"PATH": PLAIN_PATH},
            user=user,
            group=user,
            extra_groups=[] if user else None,
        )
        if done.returncode != 0:
            said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
            raise ExecutorUnavailable(
                f"bubblewrap can't make its namespaces here: {said or f'status {done.returncode}'}; allow unprivileged "
                f"user namespaces"
            )


def _bwrap() -> str:
    found = shutil.which("bwrap", path=PLAIN_PATH)
    if found is None:
        raise ExecutorUnavailable("the sandbox needs bubblewrap: install the package 'bubblewrap' of your distribution")
    return found


class SandboxExecutor:
    """Runs programs that nobody trusts, with bubblewrap: namespaces of its own for users, processes, network, mounts,
    IPC and host name; the system's /usr to read, the workspace to write, and `scratch_bytes` in /tmp; no capabilities,
    no network, no environment.

    It raises ExecutorUnavailable when it is opened where it can't do that, and never runs anything with less. What it
    doesn't bound is how much of the disk a workspace takes in all (each file is bounded), and it doesn't filter system
    calls: a fault of the kernel's is not kept out.
    """

    name = "sandbox"
    isolated = True

    def __init__(self, root: Path | str | None = None, *, scratch_bytes: int = 64 * MIB) -> None:
        self._rooms = Rooms(_Bubblewrap(scratch_bytes), root)

    async def open(self, key: str) -> Workspace:
        """The workspace with this key, made if need be. Raises ExecutorUnavailable, UsageError for an empty key."""
        return await self._rooms.open(key)

    async def discard(self, key: str) -> None:
        """End what runs in a workspace, and remove it; harmless if there is none."""
        await self._rooms.discard(key)

    async def aclose(self) -> None:
        """End whatever runs, and remove what was made for it; harmless twice."""
        await self._rooms.aclose()
