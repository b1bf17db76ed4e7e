"""What a workload is: the contract between a peer's module and the timer.

A module ``workloads_<peer>.py`` holds ``WORKLOADS``: the workload's name -> a function that takes a ``Bench`` and a
size and returns a ``Case``. Only the standard library is used here, since every peer runs in its own environment.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MESSAGE = "m" * 500
WIDE_FIELDS = 300
WIDE_VALUE = "v" * 100
STORED_MESSAGES = 100
SLEEP_SECONDS = 0.010
TOOL_TURNS = 50


class NotAvailable(Exception):
    """The peer cannot do this workload; the message says why."""


@asynccontextmanager
async def nothing_to_open(built: Any) -> AsyncIterator[Any]:
    yield built


def nothing_to_build() -> None:
    return None


@dataclass(frozen=True)
class Case:
    """One workload of one peer at one size.

    ``build`` defines and compiles (timed apart), ``opened`` takes what was built and yields what ``run`` takes
    (untimed on the way in and out), ``run`` is what is timed, ``check`` raises when the result is wrong.
    """

    steps: int
    run: Callable[[Any], Awaitable[Any]]
    check: Callable[[Any], None]
    build: Callable[[], Any] = nothing_to_build
    opened: Callable[[Any], AbstractAsyncContextManager[Any]] = nothing_to_open


class Bench:
    """Where a workload may write: a folder of its own, on tmpfs unless the real disk was asked for."""

    def __init__(self, folder: Path, variant: str = "") -> None:
        self.variant = variant
        self._databases = folder / "databases"
        self._seed = folder / "seed.db"

    def database(self) -> Path:
        """The path of a database that does not exist yet, in an emptied folder."""
        shutil.rmtree(self._databases, ignore_errors=True)
        self._databases.mkdir(parents=True)
        return self._databases / "bench.db"

    async def database_from_seed(self, fill: Callable[[Path], Awaitable[None]]) -> Path:
        """The path of a fresh copy of the database that ``fill`` writes; it is filled once in a process."""
        path = self.database()
        if not self._seed.exists():
            await fill(path)
            shutil.copyfile(path, self._seed)
        shutil.copyfile(self._seed, path)
        return path

    def database_bytes(self) -> int | None:
        """Bytes of the last database with its side files, or None when the workload writes none."""
        if not self._databases.is_dir():
            return None
        return sum(file.stat().st_size for file in self._databases.iterdir())


def expect(what: str, got: object, wanted: object) -> None:
    """Raise when a workload's result is wrong, so that no peer can win by skipping work."""
    if got != wanted:
        raise AssertionError(f"wrong result: {what} is {str(got)[:100]!r}, expected {str(wanted)[:100]!r}")


def expect_talk(messages: list[tuple[str, str]]) -> None:
    """Raise unless role and text of the messages are those of W9: so many rounds of the tool, then the answer."""
    expect("roles", [role for role, _ in messages], ["user", *["assistant", "tool"] * TOOL_TURNS, "assistant"])
    expect("results", [text for role, text in messages if role == "tool"], [str(k + 1) for k in range(TOOL_TURNS)])
    expect("answer", messages[-1][1], "done")
