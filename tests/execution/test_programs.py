"""Programs in workspaces: how they end, what they may use, what becomes of what they leave running."""

# ruff: noqa: ASYNC240 (reading /proc doesn't wait)
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from graphagent.errors import PathEscape, UsageError
from graphagent.execution import ExecutionLimits, Program
from graphagent.ids import fresh_id

pytestmark = pytest.mark.anyio


def shell(text: str, **limits: Any) -> Program:
    """A program of the shell."""
    return Program(("bash", "-c", text), limits=ExecutionLimits(**limits))


def running(mark: str) -> list[int]:
    """The processes that have a mark among their words."""
    found = []
    for one in Path("/proc").iterdir():
        try:
            words = (one / "cmdline").read_bytes()
        except OSError:
            continue
        if one.name.isdigit() and mark.encode() in words.split(b"\0"):
            found.append(int(one.name))
    return found


async def until(true: Callable[[], bool]) -> None:
    """Wait until something in another process is true."""
    with anyio.fail_after(20):
        while not true():  # noqa: ASYNC110 (nothing tells of it)
            await anyio.sleep(0.02)


async def test_how_a_program_ends_is_a_result(executor: Any) -> None:
    """Its exit status, its words, input, and a name that isn't there; nothing of it is an exception."""
    room = await executor.open("a")
    ran = await room.run(Program(("bash", "-c", "cat; echo out; echo err >&2; exit 3"), stdin=b"in "))
    assert (ran.exit_code, ran.stdout, ran.stderr, ran.stopped) == (3, b"in out\n", b"err\n", "")
    ran = await room.run(Program(("no-such-program",)))
    assert ran.exit_code == -1
    assert b"could not be started" in ran.stderr


async def test_nothing_is_inherited(executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program has the variables of its workspace and those that it was given, and no others; no descriptor either."""
    monkeypatch.setenv("SECRET_KEY", "s3cret")
    room = await executor.open("env")
    ran = await room.run(Program(("env",), env={"OWN": "1"}))
    names = {line.partition("=")[0] for line in ran.stdout.decode().splitlines()}
    places = {"WORKSPACE_DIR", "SKILLS_DIR", "WORK_DIR", "OUTPUT_DIR", "RUN_DIR"}
    assert names <= places | {"PATH", "HOME", "LANG", "OWN", "PWD"}
    assert b"s3cret" not in ran.stdout
    ran = await room.run(shell("ls /proc/self/fd | wc -l; cd $OUTPUT_DIR && touch here; test -d $RUN_DIR && pwd"))
    assert int(ran.stdout.split()[0]) <= 4
    assert (await room.read("out/here")) is not None


async def test_c237_what_takes_too_long_is_ended_with_all_its_children(executor: Any) -> None:
    """An endless loop with children in sessions of their own: a typed result, and nothing is left."""
    mark = str(10_000_000 + int(fresh_id()[:5], 16))
    room = await executor.open("loop")
    text = f"sleep {mark} & setsid sleep {mark} & (setsid nohup sleep {mark} &) ; while :; do :; done"
    ran = await room.run(shell(text, seconds=0.5))
    assert ran.timed_out
    assert ran.exit_code < 0
    assert running(mark) == []


async def test_what_is_left_behind_is_ended(executor: Any) -> None:
    """A program that ends well and leaves others running: they are ended before the result is there."""
    mark = str(20_000_000 + int(fresh_id()[:5], 16))
    room = await executor.open("left")
    ran = await room.run(shell(f"sleep {mark} & setsid sleep {mark} & echo done"))
    assert (ran.exit_code, ran.stdout) == (0, b"done\n")
    assert running(mark) == []


async def test_a_cancelled_program_is_ended(executor: Any) -> None:
    """When the cancellation is through, nothing of it runs any more."""
    mark = str(30_000_000 + int(fresh_id()[:5], 16))
    room = await executor.open("cancel")
    async with anyio.create_task_group() as group:
        group.start_soon(room.run, shell(f"setsid sleep {mark} & sleep {mark}"))
        await until(lambda: len(running(mark)) >= 2)
        group.cancel_scope.cancel()
    assert running(mark) == []


BOMBS = {
    "memory": ("x = [bytes(50_000_000) for _ in range(1000)]", {"memory_bytes": 300_000_000}),
    "forks": (
        "import os, time\nfor n in range(300):\n"
        "    if os.fork() == 0:\n        os.setsid() if n % 2 else None\n        time.sleep(60)\n        os._exit(0)\n"
        "time.sleep(60)",
        {"processes": 20, "seconds": 20},
    ),
    "file": ("f = open('out/big', 'wb')\nfor _ in range(1000): f.write(bytes(1_000_000))", {"file_bytes": 5_000_000}),
}


@pytest.mark.parametrize("bomb", BOMBS)
async def test_c237_bombs_are_bounded(executor: Any, bomb: str) -> None:
    """Memory, processes and files in plenty: the program fails or is ended, and the next one runs."""
    text, limits = BOMBS[bomb]
    room = await executor.open(f"bomb {bomb}")
    ran = await room.run(Program(("python3", "-c", text), limits=ExecutionLimits(**limits)))  # type: ignore[arg-type]
    assert ran.exit_code != 0
    assert (await room.run(shell("echo well"))).stdout == b"well\n"
    file = await room.read("out/big")
    assert file is None or file.size <= 5_000_000


async def test_endless_output_is_bounded(executor: Any) -> None:
    """What is beyond the bound is thrown away, and a program that goes on and on is ended for it."""
    room = await executor.open("words")
    ran = await room.run(shell("yes", output_bytes=10_000))
    assert (ran.stopped, len(ran.stdout), ran.truncated) == ("output", 10_000, ("stdout",))
    ran = await room.run(shell("head -c 20000 /dev/zero; echo e >&2", output_bytes=10_000))
    assert (ran.exit_code, len(ran.stdout), ran.stderr, ran.truncated) == (0, 10_000, b"e\n", ("stdout",))


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
async def test_a_program_is_talked_to(executor: Any, tty: bool) -> None:
    """It reads what is written to it, what it says is polled for, and it is ended on demand."""
    room = await executor.open("talk")
    text = "test -t 0 && echo tty; read name; echo hello $name; sleep 1000"
    program = await room.start(Program(("bash", "-c", text), limits=ExecutionLimits(seconds=60)), tty=tty)
    await program.write("ann\n")
    said, offset = "", 0
    with anyio.fail_after(20):
        while "hello ann" not in said:
            talk = await program.poll(offset, seconds=1)
            said, offset = said + talk.output, talk.next_offset
    assert ("tty" in said) == tty
    ran = await program.kill()
    assert ran.stopped == "cancelled"
    assert (await program.kill()) == ran
    assert (await program.poll(0, seconds=0)).exit_code == ran.exit_code
    with pytest.raises(UsageError, match="has ended"):
        await program.write("more\n")


async def test_a_directory_that_is_not_there(executor: Any) -> None:
    """A working directory outside, through a link, or not there, is refused before anything runs."""
    room = await executor.open("where")
    await room.run(shell("ln -s /usr out/away; mkdir work/in; ln -s ../work/in out/near"))
    for bad in ("../x", "/etc", "out/away"):
        with pytest.raises(PathEscape, match="escapes workspace"):
            await room.run(Program(("pwd",), cwd=bad))
    with pytest.raises(UsageError, match="no directory 'work/none'"):
        await room.run(Program(("pwd",), cwd="work/none"))
    assert (await room.run(Program(("pwd",), cwd="out/near"))).exit_code == 0


@pytest.mark.parametrize(
    "program",
    [
        Program(()),
        Program(("",)),
        Program(("a\0b",)),
        Program(("env",), env={"A=B": "1"}),
        Program(("env",), env={"": ""}),
    ],
    ids=["no words", "no name", "NUL", "name with =", "no variable"],
)
async def test_programs_that_no_system_takes(executor: Any, program: Program) -> None:
    """They are typed errors, before anything runs."""
    with pytest.raises(UsageError):
        await (await executor.open("odd")).run(program)


async def test_one_workspace_a_key(executor: Any) -> None:
    """All that ask at once get the same; another key has another; discarded it is gone with what runs there."""
    mark = str(40_000_000 + int(fresh_id()[:5], 16))
    rooms: list[Any] = []

    async def ask() -> None:
        rooms.append(await executor.open("same/key"))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(ask)
    assert len({id(room) for room in rooms}) == 1
    other = await executor.open("same_key")
    await rooms[0].put("work/a", b"1")
    assert await other.read("work/a") is None
    await rooms[0].start(Program(("sleep", mark), limits=ExecutionLimits(seconds=1000)))
    root = rooms[0].root
    assert root.stat().st_mode & 0o077 == 0
    await executor.discard("same/key")
    await executor.discard("same/key")
    assert not root.exists()
    assert running(mark) == []


async def test_closing_removes_what_programs_made_hard_to_remove(executor: Any) -> None:
    """Directories without permissions, and deep ones, go with the executor."""
    room = await executor.open("hard")
    await room.run(shell("mkdir -p work/a/b; touch work/a/b/c; chmod 0 work/a/b work/a"))
    base: Callable[[], bool] = room.root.parent.exists
    await executor.aclose()
    assert not base()


async def test_the_guard_is_killed(executor: Any) -> None:
    """Whoever kills the guard ends the program too, and the caller is told that it failed."""
    mark = str(50_000_000 + int(fresh_id()[:5], 16))
    room = await executor.open("guard")
    ended: list[Any] = []

    async def go() -> None:
        ended.append(await room.run(shell(f"sleep {mark}")))

    async with anyio.create_task_group() as group:
        group.start_soon(go)
        await until(lambda: bool(running(mark)))
        above = int(Path(f"/proc/{running(mark)[0]}/stat").read_text().rpartition(")")[2].split()[1])
        while b"guard.py" not in Path(f"/proc/{above}/cmdline").read_bytes():
            above = int(Path(f"/proc/{above}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(above, 9)
    assert ended[0].exit_code == -1
    await until(lambda: not running(mark))
