"""Stands between the process that wants a program run and the program: a script of its own, with nothing but Python.

It takes its orders as a line of JSON from descriptor 3, and says how it went as a line of JSON to descriptor 4. It is
the subreaper of the program (prctl(2), PR_SET_CHILD_SUBREAPER), so whatever the program starts stays below it, also
what makes a session of its own; when the program ends, when a limit is passed, or when descriptor 3 is closed (a
cancellation, or the end of whoever gave the orders), all of it is killed before the guard ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import json
import os
import resource
import select
import signal
import termios
import time
from collections.abc import Iterator
from typing import Any

ORDERS, REPORT = 3, 4
SUBREAPER, PARENT_DEATH, NO_NEW_PRIVILEGES = 36, 1, 38
FIRST_LOOK, LOOK, LAST = 0.01, 0.05, 60.0
AT_ONCE = 2000
PAGE = os.sysconf("SC_PAGE_SIZE")


def prctl(option: int, value: int) -> None:
    """Set a property of this process."""
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def children(pid: int) -> list[int]:
    """The children of a process, of all its threads."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    return found


def descendants(pid: int) -> Iterator[int]:
    """All processes below this one."""
    todo = children(pid)
    while todo:
        one = todo.pop()
        yield one
        todo += children(one)


def resident(pid: int) -> int:
    """Bytes of memory that a process holds for itself: shared pages are counted once a program, not per process."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            fields = file.read().split()
    except OSError:
        return 0
    return max(0, int(fields[1]) - int(fields[2])) * PAGE


def begin(orders: dict[str, Any]) -> int:
    """Start the program; returns its process id. The child says on a pipe if it could not be started."""
    heard, tell = os.pipe()
    pid = os.fork()
    if pid:
        os.close(tell)
        with os.fdopen(heard, "rb") as file:
            problem = file.read()
        if problem:
            os.waitpid(pid, 0)
            raise OSError(problem.decode())
        return pid
    try:
        prepare(orders)
        os.execvpe(orders["argv"][0], orders["argv"], orders["env"])
    except BaseException as error:
        said = f"{error.strerror}: '{orders['argv'][0]}'" if isinstance(error, OSError) else str(error)
        os.write(tell, said.encode())
    os._exit(127)


def prepare(orders: dict[str, Any]) -> None:
    """In the child, before the program: a session, limits, whom it runs as, and its directory."""
    os.setsid()
    if orders["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (ORDERS, REPORT):
        os.close(number)
    for name in ("SIGINT", "SIGPIPE", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    for name, most in orders["rlimits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    prctl(PARENT_DEATH, signal.SIGKILL)
    if orders["uid"] is not None:
        os.setgroups([])
        os.setresgid(orders["uid"], orders["uid"], orders["uid"])
        os.setresuid(orders["uid"], orders["uid"], orders["uid"])
        prctl(PARENT_DEATH, signal.SIGKILL)  # a change of user takes it back
    prctl(NO_NEW_PRIVILEGES, 1)
    os.umask(0o077)
    os.chdir(orders["cwd"])


def watch(pid: int, orders: dict[str, Any]) -> str:
    """Wait until the program ends, a limit is passed, or nobody waits any more; returns what ended it."""
    ends = time.monotonic() + orders["seconds"]
    ended = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
    pause = FIRST_LOOK
    while True:
        left = ends - time.monotonic()
        ready, _, _ = select.select([ORDERS, *([ended] if ended >= 0 else [])], [], [], max(0.0, min(pause, left)))
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return ""  # its status is taken at the end: until then its group's number is nobody else's
        if ORDERS in ready:
            word = os.read(ORDERS, 64)
            return "output" if word.startswith(b"output") else "cancelled"
        if left <= 0:
            return "time"
        reap(pid)
        below = list(itertools.islice(descendants(os.getpid()), orders["processes"] + orders["own"] + 1))
        if len(below) > orders["processes"] + orders["own"]:
            return "processes"
        if sum(map(resident, below)) > orders["memory"]:
            return "memory"
        pause = min(pause * 2, LOOK)


def reap(but: int) -> None:
    """Take the status of orphans that have ended, so that they don't count."""
    for one in children(os.getpid()):
        if one != but:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(one, os.WNOHANG)


def sweep(main: int) -> int | None:
    """Kill whatever is below; returns the status of the program itself. Its group first, which the system does at once
    and so is quicker than any bomb; then what has made a group of its own, again and again, since nothing leaves the
    tree."""
    status, until = None, time.monotonic() + LAST
    while time.monotonic() < until:
        if main:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(main, signal.SIGKILL)
        below = list(itertools.islice(descendants(os.getpid()), AT_ONCE))
        for sign in (signal.SIGSTOP, signal.SIGKILL):
            for one in below:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, sign)
        with contextlib.suppress(ChildProcessError):
            while True:
                done, found = os.waitpid(-1, os.WNOHANG)
                if done and done == main:
                    status, main = found, 0
                if not done:
                    break
            time.sleep(0.001)
            continue
        break  # there are no children any more
    return status


def main() -> None:
    """Run the program that was ordered, and report."""
    orders = json.loads(os.fdopen(os.dup(ORDERS), "rb", buffering=0).readline())
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    prctl(SUBREAPER, 1)
    report: dict[str, Any] = {"stopped": "", "code": -1, "error": "", "seconds": 0.0}
    began = time.monotonic()
    try:
        pid = begin(orders)
        for number in (0, 1, 2):
            os.close(number)  # the program's own; an end that is held here would never be seen
        report["stopped"] = watch(pid, orders)
        status = sweep(pid)
        report["code"] = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    except OSError as error:
        report["error"] = str(error)
        sweep(0)
    report["seconds"] = time.monotonic() - began
    os.write(REPORT, json.dumps(report).encode() + b"\n")


if __name__ == "__main__":
    main()
