"""The port of code execution: programs that run in workspaces, what they may use, and the files they leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

KIB, MIB = 1024, 1024 * 1024

Stop = Literal["", "time", "memory", "processes", "output", "cancelled"]


@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """What one program may use, its children included.

    `seconds`: wall time; `memory_bytes`: address space or resident memory, whichever the executor can bound;
    `processes`: at once; `output_bytes`: kept of stdout and of stderr each, what comes after is read and thrown away;
    `file_bytes`: of any file it writes.
    """

    seconds: float = 10.0
    memory_bytes: int = 512 * MIB
    processes: int = 64
    output_bytes: int = MIB
    file_bytes: int = 64 * MIB


@dataclass(frozen=True, slots=True)
class Program:
    """What is to run. `argv`: the program and its arguments, never given to a shell unless the first says so. `cwd`:
    relative to the workspace, with forward slashes. `env`: all it gets besides what the executor sets (a PATH, and
    WORKSPACE_DIR, SKILLS_DIR, WORK_DIR, OUTPUT_DIR, RUN_DIR): nothing of this process is inherited."""

    argv: tuple[str, ...]
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    limits: ExecutionLimits = ExecutionLimits()


class Ran(NamedTuple):
    """How a program ended: a result, whatever its exit status.

    `exit_code`: as the system gives it, minus the signal's number if one ended it, and -1 if it could not be started
    (`stderr` says why). `seconds`: wall time. `stopped`: the limit that ended it, empty if it ended by itself.
    `truncated`: the streams of which not all was kept.
    """

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0
    stopped: Stop = ""
    truncated: tuple[Literal["stdout", "stderr"], ...] = ()

    @property
    def timed_out(self) -> bool:
        """True if it was ended because its time was up."""
        return self.stopped == "time"


class CollectLimits(NamedTuple):
    """What is taken out of a workspace at most. Beyond it nothing fails, and `Collected.limits_hit` is True."""

    files: int = 100
    file_bytes: int = 4 * MIB
    total_bytes: int = 64 * MIB


COLLECT_LIMITS = CollectLimits()


class OutputFile(NamedTuple):
    """A file of a workspace. `path`: relative to it; `size`: its whole size in bytes; `truncated`: `data` is only its
    beginning."""

    path: str
    data: bytes
    mime_type: str
    size: int
    truncated: bool = False


class Collected(NamedTuple):
    """The files that were taken out, sorted by path, each once."""

    files: tuple[OutputFile, ...] = ()
    limits_hit: bool = False


class Workspace(Protocol):
    """A directory of one run or session, with `skills/`, `work/`, `work/inputs/`, `runs/` and `out/`.

    Every path is relative to it, with forward slashes; one that would leave it, also through a link, is a
    `PathEscape`, and nothing is read or written.
    """

    @property
    def key(self) -> str:
        """What it was opened with."""
        ...

    async def put(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Write a file, with the directories above it; all of it or nothing."""
        ...

    async def read(self, path: str, *, most: int = 64 * MIB) -> OutputFile | None:
        """A file, at most so many bytes of it; None if there is none."""
        ...

    async def remove(self, path: str) -> bool:
        """Remove a file or a directory with all in it; False if there was none."""
        ...

    async def collect(self, patterns: Sequence[str], limits: CollectLimits = COLLECT_LIMITS) -> Collected:
        """The files that fit globs (`**` for any depth). Links that lead out of the workspace are left out."""
        ...

    async def run(self, program: Program) -> Ran:
        """Run a program to its end. Whatever it started has ended when this returns; cancelled, it is ended first.
        Raises UsageError for a `cwd` that isn't there."""
        ...


class Talk(NamedTuple):
    """What an interactive program has said from `offset` on, and how it stands: `exit_code` is None while it runs."""

    output: str
    offset: int
    next_offset: int
    exit_code: int | None = None


class InteractiveProgram(Protocol):
    """A program that is talked to while it runs."""

    async def write(self, text: str) -> None:
        """Give it input. Raises UsageError if it has ended."""
        ...

    async def poll(self, offset: int, *, seconds: float) -> Talk:
        """What it said since, waiting up to so long for something new."""
        ...

    async def kill(self) -> Ran:
        """End it and whatever it started; harmless twice."""
        ...


@runtime_checkable
class InteractiveWorkspace(Workspace, Protocol):
    """A workspace whose programs can be talked to."""

    async def start(self, program: Program, *, tty: bool = False) -> InteractiveProgram:
        """Start a program and return at once."""
        ...


class CodeExecutor(Protocol):
    """Where code runs.

    `isolated`: code that nobody trusts may run there. An executor that can't keep what it promises raises
    `ExecutorUnavailable` when it is opened; it never runs anything with less protection.
    """

    @property
    def name(self) -> str:
        """What it is called in messages and in the record."""
        ...

    @property
    def isolated(self) -> bool:
        """True if what runs can't reach this machine's files, processes and network."""
        ...

    async def open(self, key: str) -> Workspace:
        """The workspace with this key, made if there is none. Of those that ask at the same time all get the same."""
        ...

    async def discard(self, key: str) -> None:
        """End what runs in a workspace, and remove it; harmless if there is none."""
        ...

    async def aclose(self) -> None:
        """End whatever runs, and remove what was made for it; harmless twice."""
        ...
