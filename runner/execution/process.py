"""A program on its way: started behind the guard, its streams kept within bounds."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.abc
import anyio.to_thread

from graphagent.errors import UsageError
from graphagent.execution import Program, Ran, Stop, Talk

_GUARD = str(Path(__file__).with_name("guard.py"))
_FLOOD = 64
"""Times its bound that a stream may say before the program is ended for it."""
_CHUNK = 65536
_UNBOUNDED = 2**62
_CLEANING = 60
"""Seconds that the command after a program may take."""
_KEPT = 1024 * 1024
"""Characters of an interactive program that can still be polled for."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a program is started. `argv`, `env`, `cwd`: what the system gets; `rlimits`: by the names of `resource`;
    `uid`: whom it runs as (None: as this process); `own`: processes that belong to the way of starting it, and count
    for nothing; `watched`: the guard looks at memory and processes, which otherwise somebody else bounds; `cleanup`: a
    command that is run when nothing of it is left here, to end what isn't below the guard."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    rlimits: Mapping[str, int] = field(default_factory=dict)
    uid: int | None = None
    own: int = 0
    watched: bool = True
    cleanup: tuple[str, ...] = ()


class Guarded:
    """A guard that has its orders: how to end it, and how it went."""

    def __init__(self, launch: Launch, process: anyio.abc.Process, orders: int, report: int) -> None:
        self.process = process
        self._launch, self._orders, self._report = launch, orders, report

    def end(self, word: bytes = b"") -> None:
        """Have everything ended; harmless twice. Nothing but closing a descriptor, so it works in a cancelled task."""
        if self._orders >= 0:
            with suppress(OSError):
                os.write(self._orders, word) if word else None
            os.close(self._orders)
            self._orders = -1

    async def over(self) -> dict[str, Any]:
        """How it went, once nothing of the program is left."""
        await self.process.wait()
        self.end()
        if self._launch.cleanup:
            await _cleaned_up(self._launch)
        with os.fdopen(os.dup(self._report), "rb") as file:
            said = file.read()
        os.close(self._report)
        if not said:
            return {"stopped": "", "code": -1, "error": "the guard of the program was killed", "seconds": 0.0}
        return cast("dict[str, Any]", json.loads(said))


async def _cleaned_up(launch: Launch) -> None:
    null = subprocess.DEVNULL
    with anyio.move_on_after(_CLEANING):  # what it ends would end by itself a little later
        await anyio.run_process(launch.cleanup, check=False, env=launch.env, stdin=null, stdout=null, stderr=null)


async def _started(launch: Launch, program: Program, streams: Mapping[str, Any], *, tty: bool) -> Guarded:
    limits = program.limits
    hears, orders = os.pipe()
    report, tells = os.pipe()
    given = {
        **asdict(launch),
        "seconds": limits.seconds,
        "memory": limits.memory_bytes if launch.watched else _UNBOUNDED,
        "processes": limits.processes if launch.watched else _UNBOUNDED,
        "tty": tty,
    }
    # descriptors 3 and 4 of the guard, whatever numbers they have here
    hears, tells = _high(hears), _high(tells)
    command = [sys.executable, "-I", "-S", "-c", _ENTER, str(hears), str(tells), _GUARD]
    try:
        process = await anyio.open_process(command, pass_fds=(hears, tells), env={}, start_new_session=True, **streams)
    except BaseException:
        os.close(orders)
        os.close(report)
        raise
    finally:
        os.close(hears)
        os.close(tells)
    os.set_blocking(orders, True)
    with suppress(BrokenPipeError):
        await anyio.to_thread.run_sync(_write_all, orders, json.dumps(given).encode() + b"\n")
    return Guarded(launch, process, orders, report)


_ENTER = (
    "import os, runpy, sys; h, t, g = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]; "
    "os.dup2(h, 3); os.dup2(t, 4); os.close(h); os.close(t); "
    "runpy.run_path(g, run_name='__main__')"
)


def _high(descriptor: int) -> int:
    """The same pipe under a number above those that the guard uses."""
    import fcntl

    made = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return made


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


async def run(launch: Launch, program: Program) -> Ran:
    """Run a program to its end. Cancelled, everything that it started is ended first."""
    pipe = asyncio.subprocess.PIPE
    guarded = await _started(launch, program, {"stdin": pipe, "stdout": pipe, "stderr": pipe}, tty=False)
    process, most = guarded.process, program.limits.output_bytes
    kept = {"stdout": bytearray(), "stderr": bytearray()}
    said = {"stdout": 0, "stderr": 0}

    async def feed() -> None:
        assert process.stdin is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
            if program.stdin:
                await process.stdin.send(program.stdin)
            await process.stdin.aclose()

    async def drain(name: str, stream: anyio.abc.ByteReceiveStream) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                piece = await stream.receive(_CHUNK)
                kept[name] += piece[: max(0, most - len(kept[name]))]
                said[name] += len(piece)
                if said[name] > _FLOOD * most:
                    guarded.end(b"output")

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(feed)
            assert process.stdout is not None
            assert process.stderr is not None
            group.start_soon(drain, "stdout", process.stdout)
            group.start_soon(drain, "stderr", process.stderr)
            await process.wait()
    finally:
        guarded.end()
        with anyio.CancelScope(shield=True):
            report = await guarded.over()
            await process.aclose()
    cut = tuple(name for name in ("stdout", "stderr") if said[name] > len(kept[name]))
    if report["error"]:
        return Ran(-1, b"", f"the program could not be started: {report['error']}".encode(), report["seconds"])
    stopped = cast(Stop, report["stopped"])
    return Ran(report["code"], bytes(kept["stdout"]), bytes(kept["stderr"]), report["seconds"], stopped, cut)  # type: ignore[arg-type]


class Interactive:
    """A program that is talked to; see `InteractiveProgram`. Of what it says the last million characters are kept."""

    def __init__(self, guarded: Guarded, send: Callable[[bytes], Any], receive: Callable[[], Any]) -> None:
        self._guarded, self._send, self._receive = guarded, send, receive
        self._text, self._dropped = "", 0
        self._news = anyio.Event()
        self._ran: Ran | None = None
        self._task = asyncio.get_running_loop().create_task(self._listen())

    async def write(self, text: str) -> None:
        """Give it input. Raises UsageError if it has ended."""
        if self._ran is not None:
            raise UsageError("the program has ended: it takes no input any more")
        try:
            await self._send(text.encode())
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise UsageError("the program takes no input any more") from error

    async def poll(self, offset: int, *, seconds: float) -> Talk:
        """What it said since, waiting up to so long for something new."""
        with anyio.move_on_after(seconds):
            while self._ran is None and self._dropped + len(self._text) <= offset:
                await self._news.wait()
        start = max(offset, self._dropped)
        end = self._dropped + len(self._text)
        code = None if self._ran is None else self._ran.exit_code
        return Talk(self._text[start - self._dropped :] if start < end else "", start, max(start, end), code)

    async def kill(self) -> Ran:
        """End it and whatever it started; harmless twice."""
        self._guarded.end()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self._task])
        assert self._ran is not None
        return self._ran

    async def _listen(self) -> None:
        # the text is decoded as it comes: half a character waits for its other half
        import codecs

        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with suppress(OSError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while piece := await self._receive():
                self._hear(decoder.decode(piece))
        report = await self._guarded.over()
        await self._guarded.process.aclose()
        error = f"the program could not be started: {report['error']}" if report["error"] else ""
        self._ran = Ran(report["code"], self._text.encode(), error.encode(), report["seconds"], report["stopped"])
        self._hear(error)

    def _hear(self, text: str) -> None:
        self._text += text
        if len(self._text) > _KEPT:
            self._dropped += len(self._text) - _KEPT
            self._text = self._text[-_KEPT:]
        self._news.set()
        self._news = anyio.Event()


async def start(launch: Launch, program: Program, *, tty: bool) -> Interactive:
    """Start a program that is talked to."""
    if not tty:
        pipe = asyncio.subprocess.PIPE
        guarded = await _started(
            launch, program, {"stdin": pipe, "stdout": pipe, "stderr": asyncio.subprocess.STDOUT}, tty=False
        )
        stdin, stdout = guarded.process.stdin, guarded.process.stdout
        assert stdin is not None
        assert stdout is not None
        made = Interactive(guarded, stdin.send, lambda: stdout.receive(_CHUNK))
    else:
        ours, theirs = pty.openpty()
        guarded = await _started(launch, program, {"stdin": theirs, "stdout": theirs, "stderr": theirs}, tty=True)
        os.close(theirs)
        made = _on_terminal(guarded, ours)
    if program.stdin:
        await made.write(program.stdin.decode("utf-8", "replace"))
    return made


def _on_terminal(guarded: Guarded, ours: int) -> Interactive:
    os.set_blocking(ours, False)

    async def receive() -> bytes:
        while True:
            try:
                return os.read(ours, _CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(ours)
            except OSError:  # the other end is closed: nobody speaks any more
                os.close(ours)
                return b""

    async def send(data: bytes) -> None:
        while data:
            try:
                data = data[os.write(ours, data) :]
            except BlockingIOError:
                await anyio.wait_writable(ours)

    return Interactive(guarded, send, receive)
