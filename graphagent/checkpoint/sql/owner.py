"""Who owns a lease: a text that names one process for good, and whether that process is known to be dead."""

from __future__ import annotations

import json
import os
import socket
from functools import lru_cache
from pathlib import Path
from typing import Any

PROC = "/proc"
"""Where Linux tells of processes (proc(5))."""
_UNKNOWN: list[Any] = ["unknown", "", "", None, ""]


def owner_text(pid: int | None = None) -> str:
    """This process (or the one with `pid` on this machine) as text.

    It holds host name, boot id of the kernel, pid namespace, pid and start time of the process, so that neither a
    reused pid nor the same pid in another container is taken for it. Where the system tells less (no `/proc`), those
    parts are empty.
    """
    if pid is None:
        return _own_text(os.getpid())
    return json.dumps([*_machine(), pid, _start_time(pid) or ""])


@lru_cache(maxsize=1)
def _own_text(pid: int) -> str:
    """The text of this process, which never changes; the pid tells a forked child apart."""
    return owner_text(pid)


def is_dead(owner: str) -> bool:
    """True if the owner is known to be dead: same kernel, same pid namespace, and no such process any more.

    An owner elsewhere, or before a reboot, is not known to be dead: its lease runs out by itself.
    """
    *machine, pid, started = _parse(owner)
    if machine != _machine() or not isinstance(pid, int):
        return False
    if started:
        return bool(_start_time(pid) != started)
    if os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def describe(owner: str) -> str:
    """The owner in words, for messages."""
    host, _, _, pid, _ = _parse(owner)
    return f"process {pid} on host '{host}'"


def foreign_host(owner: str) -> str | None:
    """The host of an owner on another machine; None if it was on this one or can't be told.

    It was on this one if either the host's name or the boot id is the same: containers of one kernel have names of
    their own, and a reboot makes another boot id.
    """
    host, boot, *_ = _parse(owner)
    own_host, own_boot, _ = _machine()
    same = host == own_host or (boot != "" and boot == own_boot)
    return None if same or host == _UNKNOWN[0] else str(host)


def _parse(owner: str) -> list[Any]:
    try:
        parts = json.loads(owner)
    except ValueError:
        parts = []
    return parts if isinstance(parts, list) and len(parts) == 5 else _UNKNOWN


@lru_cache(maxsize=1)
def _machine() -> list[str]:
    return [socket.gethostname(), _text(f"{PROC}/sys/kernel/random/boot_id"), _pid_namespace()]


def _pid_namespace() -> str:
    try:
        return os.readlink(f"{PROC}/self/ns/pid")
    except OSError:
        return ""


def _start_time(pid: int) -> str | None:
    """Clock ticks from boot to the start of a process, field 22 of `/proc/<pid>/stat` (proc(5)); None if it is gone.

    A zombie counts as gone: it runs no code any more. Where there is no `/proc` the answer is None for every process.
    """
    stat = _text(f"{PROC}/{pid}/stat")
    fields = stat.rpartition(")")[2].split()  # the name before ")" may itself hold blanks and parentheses
    return None if not fields or fields[0] in "ZX" else fields[19]


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
