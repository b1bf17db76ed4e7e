"""Attempts to get out of the sandbox, each as a real program; none may succeed."""

# ruff: noqa: ASYNC240 (looking at a directory of the test doesn't wait)
from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphagent.errors import ExecutorUnavailable
from graphagent.execution import ExecutionLimits, Program
from runner.execution import SandboxExecutor
from runner.execution import sandbox as sandbox_module

pytestmark = pytest.mark.anyio


@pytest.fixture
async def room(anyio_backend: str) -> AsyncIterator[Any]:
    """A workspace of a sandbox."""
    executor = SandboxExecutor()
    try:
        yield await executor.open("escape")
    except ExecutorUnavailable as error:
        pytest.skip(f"the sandbox can't be had here: {error}")
    finally:
        await executor.aclose()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory that anybody may write to, with a secret that anybody may read."""
    (tmp_path / "secret").write_text("s3cret")
    return tmp_path


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A port of this machine that hears whoever connects."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)

        def hear() -> None:
            while not heard:
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                except OSError:
                    return
                heard.append(connection.recv(10))

        thread = threading.Thread(target=hear, daemon=True)
        thread.start()
        yield server.getsockname()[1], heard


READS = [
    "cat {outside}/secret",
    "cat /etc/shadow",
    "cat /etc/passwd && test -s /etc/passwd",
    "ls /root",
    "ls /home",
    "ls /var/lib",
    "ln -s {outside} out/l; cat out/l/secret",
    "cat /proc/1/root{outside}/secret",
    "cat ../../../../..{outside}/secret",
    "python3 -c \"open('{outside}/secret')\"",
    "mount --bind / /tmp && cat /tmp{outside}/secret",
    "unshare -Ur cat {outside}/secret",
    "unshare -U true",
    "chroot / cat {outside}/secret",
    "nsenter -t 1 -m cat {outside}/secret",
    "mknod /tmp/disk b 8 0 && head -c 1 /tmp/disk",
    "dd if=/dev/mem of=/tmp/x count=1",
    "cat /sys/kernel/uevent_seqnum",
    "cat /proc/{ours}/environ",
    "cat /proc/{ours}/cmdline",
    "test -e /proc/{ours}",
    "ls -d /proc/[0-9]* | grep -x /proc/{ours}",
]
WRITES = [
    "echo x > {outside}/new",
    "echo x > /usr/bin/new",
    "echo x > /etc/new",
    "mkdir /new",
    "echo x > /bin/bash",
    "mount -o remount,rw / && mkdir /new",
    "ln {outside}/secret out/hard",
    "rm {outside}/secret",
    "mv out {outside}/out",
    "cp /bin/true /tmp/s && chmod u+s /tmp/s && chown 0 /tmp/s",
]
ACTS = [
    "kill -9 {ours}",
    "kill -0 {ours}",
    'python3 -c "import os; os.kill(os.getppid() + 100000, 0)"',
    "nice -n -5 true && test $(nice -n -5 nice) -lt 0",
    "hostname other",
    "date -s 2001-01-01",
    "sysctl -w kernel.hostname=other",
    "su root -c id",
    "sudo -n id",
    'python3 -c "import os; os.setuid(0)"',
    'python3 -c "import ctypes; exit(ctypes.CDLL(None).ptrace(16, {ours}, 0, 0) != 0)"',
    "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2).send(b'in')\"",
    "python3 -c \"import socket; socket.create_connection(('1.1.1.1', 53), 1)\"",
    "python3 -c \"import socket; socket.getaddrinfo('localhost.example', 80)\"",
    'python3 -c "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"',
    "bash -c 'echo in > /dev/tcp/127.0.0.1/{port}'",
    "python3 -c \"import os; os.open('/dev/kmsg', os.O_WRONLY)\"",
    "ulimit -u 100000 && ulimit -v unlimited",
    'python3 -c "import resource as r; r.setrlimit(r.RLIMIT_AS, (r.RLIM_INFINITY, r.RLIM_INFINITY))"',
]


@pytest.mark.parametrize("attempt", [*READS, *WRITES, *ACTS])
async def test_nothing_gets_out(room: Any, outside: Path, listener: tuple[int, list[bytes]], attempt: str) -> None:
    """The attempt fails, what is outside is as it was, and nobody was heard."""
    port, heard = listener
    text = attempt.format(outside=outside, ours=os.getpid(), port=port)
    ran = await room.run(Program(("bash", "-c", text), limits=ExecutionLimits(seconds=10)))
    assert ran.exit_code != 0, ran
    assert b"s3cret" not in ran.stdout + ran.stderr
    assert sorted(one.name for one in outside.iterdir()) == ["secret"]
    assert not heard
    assert not Path("/usr/bin/new").exists()


async def test_what_is_inside_can_be_used(room: Any) -> None:
    """The other side: the workspace and /tmp can be written, the interpreter runs; else all attempts would fail."""
    text = "echo a > out/a && echo b > /tmp/b && python3 -c 'print(6 * 7)' && id -u && ls /usr/bin/env /proc/self"
    ran = await room.run(Program(("bash", "-c", text)))
    assert ran.exit_code == 0, ran
    assert ran.stdout.startswith(b"42\n1000\n")


async def test_scratch_space_is_bounded() -> None:
    """/tmp takes so much and no more."""
    executor = SandboxExecutor(scratch_bytes=2_000_000)
    try:
        small = await executor.open("scratch")
        ran = await small.run(Program(("bash", "-c", "head -c 3000000 /dev/zero > /tmp/x")))
        assert ran.exit_code != 0
        assert b"No space left" in ran.stderr
    except ExecutorUnavailable as error:
        pytest.skip(f"the sandbox can't be had here: {error}")
    finally:
        await executor.aclose()


async def test_a_fork_bomb_is_bounded_by_the_kernel(room: Any) -> None:
    """Not by whoever watches: a process can't be made beyond the limit, so the machine never feels it."""
    text = (
        "import os, time\nn = 0\ntry:\n    while n < 500:\n        if os.fork() == 0:\n            time.sleep(30)\n"
        "        n += 1\nexcept OSError:\n    print(n)"
    )
    ran = await room.run(Program(("python3", "-c", text), limits=ExecutionLimits(processes=20, seconds=10)))
    assert ran.exit_code == 0, ran
    assert int(ran.stdout) < 20


async def test_workspaces_do_not_see_each_other(room: Any) -> None:
    """Nor the files of another one, nor its processes."""
    executor = SandboxExecutor()
    try:
        other = await executor.open("other")
        await other.put("work/theirs", b"theirs")
        ran = await room.run(Program(("bash", "-c", f"cat {other.root}/work/theirs; ls {other.root.parent}")))
        assert ran.exit_code != 0
        assert b"theirs" not in ran.stdout
    finally:
        await executor.aclose()


async def test_a_root_that_others_can_not_enter(tmp_path: Path) -> None:
    """As root: a place where the program's user couldn't come is refused, not found out by each program."""
    if os.geteuid() != 0:
        pytest.skip("programs run as this user")
    (tmp_path / "closed").mkdir(mode=0o700)
    with pytest.raises(ExecutorUnavailable, match="can't enter"):
        await SandboxExecutor(tmp_path / "closed").open("a")


@pytest.mark.parametrize("lacks", ["bwrap", "namespaces"])
async def test_it_refuses_rather_than_run_unprotected(monkeypatch: pytest.MonkeyPatch, lacks: str) -> None:
    """Without bubblewrap, or where namespaces aren't allowed, nothing is opened and nothing runs."""
    if lacks == "bwrap":
        monkeypatch.setattr(sandbox_module.shutil, "which", lambda *_, **__: None)
    else:
        monkeypatch.setattr(sandbox_module, "_bwrap", lambda: "/bin/false")
    with pytest.raises(ExecutorUnavailable, match=r"bubblewrap"):
        await SandboxExecutor().open("a")


def test_it_ends_with_its_process() -> None:
    """The process that ran a program is killed: the program is, too."""
    code = (
        "import anyio, sys; from runner.execution import SandboxExecutor; from graphagent.execution import *\n"
        "async def main():\n    room = await SandboxExecutor().open('a')\n    print('up', flush=True)\n"
        "    await room.run(Program(('sleep', '61234567'), limits=ExecutionLimits(seconds=1000)))\n"
        "anyio.run(main)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    if process.stdout.readline() != b"up\n":
        process.wait()
        pytest.skip("the sandbox can't be had here")
    deadline = 400
    while not _asleep() and deadline:
        deadline -= 1
        threading.Event().wait(0.02)
    process.kill()
    process.communicate()
    while _asleep() and deadline:
        deadline -= 1
        threading.Event().wait(0.02)
    assert deadline


def _asleep() -> bool:
    found = subprocess.run(["pgrep", "-f", "^sleep 61234567"], capture_output=True, check=False)
    return found.returncode == 0
