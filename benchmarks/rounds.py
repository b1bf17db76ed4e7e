"""Runs the matrix in rounds, peers interleaved, and takes medians.

A ratio is taken within a round, where peer and limit ran one after the other on the same machine in the same mood, and
the figure is the median of those ratios; absolute times drift too much from round to round to be divided afterwards.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.contract import SLEEP_SECONDS
from benchmarks.matrix import PEERS, REFERENCE, Cell
from benchmarks.worker import measurement

SLOW_SECONDS = 2.0  # one round is enough for a peer that takes longer: it is not near any target
Measurements = dict[tuple[str, Cell], list[dict[str, Any]]]


@dataclass(frozen=True)
class Plan:
    """What to run: peers, cells, rounds, seconds of timed runs in each process, on the real disk or not.

    ``once`` names the peers that one round is enough for.
    """

    peers: tuple[str, ...]
    cells: tuple[Cell, ...]
    rounds: int
    budget: float
    once: tuple[str, ...] = ()
    disk: bool = False


@dataclass(frozen=True)
class Row:
    """One peer at one cell: medians over the rounds; ``cost`` is in seconds and leaves out what a node sleeps.

    ``cpu_times_limit`` is the ratio of computing times, which other processes on the machine hardly disturb.
    """

    peer: str
    workload: str
    size: int
    cost: float | None = None
    cpu_seconds: float | None = None
    times_limit: float | None = None
    cpu_times_limit: float | None = None
    build_seconds: float | None = None
    peak_memory_bytes: float | None = None
    database_bytes: int | None = None
    database_times_limit: float | None = None
    rounds: int = 0
    note: str = ""

    @property
    def cell(self) -> Cell:
        return self.workload, self.size


def run(plan: Plan, tell: Callable[[str], None]) -> Measurements:
    """All measurements by peer and cell, in order of rounds."""
    options = ("--budget", str(plan.budget), *(("--disk",) if plan.disk else ()))
    found: Measurements = {}
    for number in range(plan.rounds):
        for cell in plan.cells:
            # the order of peers turns round each time, so none always runs in the warmth or wake of the same other
            for peer in plan.peers if number % 2 == 0 else plan.peers[::-1]:
                if not PEERS[peer].has(cell):
                    continue
                earlier = found.setdefault((peer, cell), [])
                if earlier and (peer in plan.once or earlier[0].get("seconds", SLOW_SECONDS) >= SLOW_SECONDS):
                    continue
                earlier.append(measurement(peer, cell, *options))
                tell(f"round {number + 1} of {plan.rounds}: {cell[0]} {cell[1]} {peer}: {outcome(earlier[-1])}")
    return found


def outcome(result: dict[str, Any]) -> str:
    if "seconds" in result:
        return f"{result['seconds'] * 1e3:.2f} ms"
    return str(result.get("not_available") or result.get("error"))


def cost(cell: Cell, seconds: float) -> float:
    """Seconds without what W4's nodes sleep side by side."""
    return seconds - SLEEP_SECONDS if cell[0] == "W4" else seconds


def rows(found: Measurements) -> list[Row]:
    return [row(peer, cell, results, found.get((REFERENCE, cell), [])) for (peer, cell), results in found.items()]


def row(peer: str, cell: Cell, results: list[dict[str, Any]], reference: list[dict[str, Any]]) -> Row:
    timed = [result for result in results if "seconds" in result]
    if not timed or len(timed) < len(results):
        return Row(peer, *cell, note=next(outcome(result) for result in results if "seconds" not in result))
    pairs = [pair for pair in zip(results, reference, strict=False) if "seconds" in pair[1]]
    ratios = [cost(cell, mine["seconds"]) / cost(cell, limit["seconds"]) for mine, limit in pairs]
    cpu_ratios = [mine["cpu_seconds"] / limit["cpu_seconds"] for mine, limit in pairs]
    written, limit_written = timed[-1]["database_bytes"], pairs[-1][1]["database_bytes"] if pairs else None
    return Row(
        peer,
        *cell,
        cost=statistics.median(cost(cell, result["seconds"]) for result in timed),
        cpu_seconds=statistics.median(result["cpu_seconds"] for result in timed),
        times_limit=statistics.median(ratios) if ratios else None,
        cpu_times_limit=statistics.median(cpu_ratios) if cpu_ratios else None,
        build_seconds=statistics.median(result["build_seconds"] for result in timed),
        peak_memory_bytes=statistics.median(result["peak_memory_bytes"] for result in timed),
        database_bytes=written,
        database_times_limit=written / limit_written if written and limit_written else None,
        rounds=len(timed),
    )
