"""Counts, which repeat exactly where times do not: calls, disk syncs, hand-offs, bytes, imports."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.matrix import OURS, PEERS, REFERENCE, Cell
from benchmarks.worker import command, measurement, output

FEW, MANY = 50, 150  # sizes whose difference leaves out what opening, starting and closing cost
TURNS = (100, 300, 1000, 3000)
LINE = 1.25  # the limit itself grows 1.15 times, since pages are 4 kB; a quadratic history grows 3 times and more
IMPORT_RUNS = 5
HEAVY = ("litellm", "sqlalchemy", "networkx")
MEGABYTE = 1e6

# columns of strace -c: share, seconds, microseconds a call, calls, errors (may be blank), system call
STRACE_LINE = re.compile(r"^\s*\S+\s+\S+\s+\S+\s+(\d+)\s.*\bf(?:data)?sync$", re.MULTILINE)

IMPORT_PROGRAM = """
import sys, time
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])
before, started = resident(), time.perf_counter()
{statement}
seconds, after = time.perf_counter() - started, resident()
import json, resource
print(json.dumps([seconds, (after - before) * resource.getpagesize(), sorted(set(sys.modules) & set({heavy!r}))]))
"""


@dataclass(frozen=True)
class Count:
    """One figure of one peer; ``must`` is its upper bound, if it has one."""

    what: str
    peer: str
    value: float | str
    must: float | str | None = None

    @property
    def met(self) -> bool:
        """Whether the bound holds; a figure that could not be taken is text and does not meet a number."""
        if self.must is None:
            return True
        if isinstance(self.value, str) or isinstance(self.must, str):
            return self.value == self.must
        return self.value <= self.must


def counts(peers: tuple[str, ...]) -> list[Count]:
    """Every count of the given peers, those of the process (imports) for ours alone."""
    found = [count for peer in peers for count in (*calls(peer), handoffs(peer), syncs(peer), *bytes_per_turn(peer))]
    return [*found, *imports()] if OURS in peers else found


def bound(peer: str, must: float | str) -> float | str | None:
    """Targets are ours; a peer's figure is shown without a verdict."""
    return must if peer == OURS else None


def per_step(peer: str, cells: tuple[Cell, Cell], field: str, *options: str) -> float | str:
    """The growth of a figure from the small to the large cell, per step; the reason when there is none."""
    small, large = (measurement(peer, cell, *options) for cell in cells)
    if field not in small or field not in large:
        return str(small.get("error") or small.get("not_available") or large.get("error"))
    growth: float = (large[field] - small[field]) / (large["steps"] - small["steps"])
    return round(growth, 2)


def calls(peer: str) -> list[Count]:
    """Calls a step of W2 as cProfile counts them, with and without those of built-in functions."""
    cells = (("W2", 1000), ("W2", 3000))
    return [
        Count("calls per W2 step", peer, per_step(peer, cells, "calls", "--mode", "calls"), bound(peer, 40)),
        Count("of these, Python functions", peer, per_step(peer, cells, "python_calls", "--mode", "calls")),
    ]


def handoffs(peer: str) -> Count:
    cells = (("W5s", FEW), ("W5s", MANY))
    value = per_step(peer, cells, "handoffs", "--mode", "handoffs")
    return Count("thread hand-offs per saved step", peer, value, bound(peer, 0))


def syncs(peer: str) -> Count:
    """fdatasync and fsync calls a saved step, with the store that survives a power loss."""
    what = "disk syncs per saved step (full)"
    if shutil.which("strace") is None:
        return Count(what, peer, "strace is not installed")
    options = ("--mode", "once", *(("--variant", "full") if PEERS[peer].module == OURS else ()))
    try:
        few, many = (traced_syncs(command(peer, ("W5s", turns), *options)) for turns in (FEW, MANY))
    except RuntimeError as error:
        return Count(what, peer, str(error))
    return Count(what, peer, round((many - few) / (2 * (MANY - FEW)), 2), bound(peer, 1))


def traced_syncs(arguments: list[str]) -> int:
    """How often a process and its threads sync a file; raises RuntimeError when it cannot be traced."""
    with tempfile.NamedTemporaryFile("r") as report:
        line = output(["strace", "-f", "-c", "-e", "trace=fdatasync,fsync", "-o", report.name, *arguments])
        result = json.loads(line.splitlines()[-1])
        if "steps" not in result:
            raise RuntimeError(str(result.get("error") or result.get("not_available")))
        return sum(int(found) for found in STRACE_LINE.findall(report.read()))


def bytes_per_turn(peer: str) -> list[Count]:
    """Bytes a turn of W5s between successive sizes; on a line, the later ones do not outgrow the earlier."""
    sizes = TURNS if PEERS[peer].venv is None else TURNS[:3]  # a quadratic history of 3000 turns fills the tmpfs
    results = [measurement(peer, ("W5s", turns), "--budget", "0") for turns in sizes]
    broken = next((str(result) for result in results if "seconds" not in result), None)
    if broken is not None:
        return [Count("database bytes per turn", peer, broken)]
    totals = [result["database_bytes"] for result in results]
    found = [Count(f"database bytes, W5s {turns}", peer, total) for turns, total in zip(sizes, totals, strict=True)]
    slopes = [
        (totals[index + 1] - totals[index]) / (sizes[index + 1] - sizes[index]) for index in range(len(sizes) - 1)
    ]
    growth = Count("bytes per turn, last part against first", peer, round(slopes[-1] / slopes[0], 2), bound(peer, LINE))
    return [*found, growth]


def imported(statement: str) -> tuple[float, float, list[str]]:
    """Seconds and bytes of memory that an import takes in a fresh interpreter, and the heavy packages it loaded."""
    program = IMPORT_PROGRAM.format(statement=statement, heavy=HEAVY)
    results: list[Any] = [json.loads(output([sys.executable, "-c", program])) for _ in range(IMPORT_RUNS)]
    return statistics.median(one[0] for one in results), statistics.median(one[1] for one in results), results[-1][2]


def imports() -> list[Count]:
    """What importing costs, beside the least that any such package needs."""
    if not Path("/proc/self/statm").exists():
        return []
    seconds, memory, heavy = imported("import graphagent")
    least_seconds, least_memory, _ = imported("import asyncio; from pydantic import BaseModel")
    return [
        Count("import asyncio and pydantic: seconds", REFERENCE, round(least_seconds, 3)),
        Count("import graphagent: seconds", OURS, round(seconds, 3)),
        Count("import asyncio and pydantic: MB above the interpreter", REFERENCE, round(least_memory / MEGABYTE, 1)),
        Count("import graphagent: MB above the interpreter", OURS, round(memory / MEGABYTE, 1), 28),
        Count("import graphagent: heavy packages loaded", OURS, ", ".join(heavy) or "none", "none"),
    ]


def lines(found: list[Count]) -> list[list[str]]:
    """The table of counts: heading, then one line a count."""
    return [
        ["count", "peer", "value", "must", "verdict"],
        *(
            [
                count.what,
                count.peer,
                str(count.value),
                "" if count.must is None else str(count.must),
                "" if count.must is None else ("must" if count.met else "MISS"),
            ]
            for count in found
        ),
    ]
