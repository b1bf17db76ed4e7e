"""Measures one case in this process: ``python -m benchmarks.measure PEER WORKLOAD SIZE`` prints one JSON line.

A process of its own for each measurement keeps imports, caches and garbage of one peer away from the others.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import importlib
import json
import logging
import pstats
import resource
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.contract import Bench, Case, NotAvailable

MINIMUM_RUNS = 5
MAXIMUM_RUNS = 25
SLOW_BUILD_SECONDS = 0.5


def load_case(peer: str, workload: str, size: int, bench: Bench) -> Case:
    """The case of ``workloads_<peer>``; raises NotAvailable when the peer has no such workload."""
    module = importlib.import_module(f"benchmarks.workloads_{peer}")
    make = module.WORKLOADS.get(workload)
    if make is None:
        raise NotAvailable(f"workload '{workload}' is not written for peer '{peer}'")
    case: Case = make(bench, size)
    return case


async def run_once(case: Case, built: Any, around: Callable[[bool], None]) -> None:
    """One checked run; ``around`` is called with True just before the timed part and with False just after it."""
    async with case.opened(built) as opened:
        gc.collect()
        around(True)
        result = await case.run(opened)
        around(False)
    case.check(result)


class Stopwatch:
    """The length of the last timed part and what the process computed in it, in seconds."""

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0
        self._started = 0.0, 0.0

    def __call__(self, starts: bool) -> None:
        now = time.perf_counter(), time.process_time()
        if starts:
            self._started = now
        else:
            self.seconds, self.cpu_seconds = now[0] - self._started[0], now[1] - self._started[1]


def build_times(case: Case) -> tuple[Any, list[float]]:
    """What was built last, and the seconds of each of up to five builds."""
    built: Any = None
    times: list[float] = []
    while len(times) < MINIMUM_RUNS:
        gc.collect()
        started = time.perf_counter()
        built = case.build()
        times.append(time.perf_counter() - started)
        if times[-1] > SLOW_BUILD_SECONDS:
            break
    return built, times


async def run_times(case: Case, built: Any, budget: float) -> list[tuple[float, float]]:
    """Seconds and CPU seconds of five to 25 runs after a warm-up, as many as fit in ``budget`` seconds.

    A run that alone outweighs the budget is not repeated and needs no warm-up.
    """
    watch, spent = Stopwatch(), 0.0
    times: list[tuple[float, float]] = []
    await run_once(case, built, watch)
    if watch.seconds > budget:
        return [(watch.seconds, watch.cpu_seconds)]
    while len(times) < MINIMUM_RUNS or (spent < budget and len(times) < MAXIMUM_RUNS):
        await run_once(case, built, watch)
        times.append((watch.seconds, watch.cpu_seconds))
        spent += watch.seconds
    return times


def peak_memory_bytes() -> int:
    """The most memory this process held; /proc first, since ru_maxrss starts at the parent's size on Linux."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def timed(case: Case, bench: Bench, budget: float) -> dict[str, Any]:
    built, builds = build_times(case)
    times = await run_times(case, built, budget)
    return {
        "seconds": statistics.median(seconds for seconds, _ in times),
        "cpu_seconds": statistics.median(cpu_seconds for _, cpu_seconds in times),
        "build_seconds": statistics.median(builds),
        "runs": len(times),
        "steps": case.steps,
        "peak_memory_bytes": peak_memory_bytes(),
        "database_bytes": bench.database_bytes(),
    }


async def profiled(case: Case, builtins: bool) -> pstats.Stats:
    """The profile of the timed part of one run, after a warm-up that does what is done once, like late imports."""
    profile, built = cProfile.Profile(builtins=builtins), case.build()
    await run_once(case, built, lambda starts: None)
    await run_once(case, built, lambda starts: profile.enable() if starts else profile.disable())
    return pstats.Stats(profile)


async def counted_calls(case: Case) -> dict[str, Any]:
    """Calls of the timed part: all of them, and those of functions written in Python alone."""
    every, python = await profiled(case, True), await profiled(case, False)
    return {"calls": every.total_calls, "python_calls": python.total_calls, "steps": case.steps}  # type: ignore[attr-defined]


async def counted_handoffs(case: Case) -> dict[str, Any]:
    """Hand-offs from a thread to the loop in the timed part: however work was sent out, its result comes back so."""
    loop = asyncio.get_running_loop()
    original, count, counting = loop.call_soon_threadsafe, 0, False

    def counted(*args: Any, **options: Any) -> asyncio.Handle:
        nonlocal count
        count += counting
        return original(*args, **options)

    def around(starts: bool) -> None:
        nonlocal counting
        counting = starts

    loop.call_soon_threadsafe = counted  # type: ignore[method-assign, assignment]
    await run_once(case, case.build(), around)
    return {"handoffs": count, "steps": case.steps}


async def ran(case: Case) -> dict[str, Any]:
    """One run, nothing measured: for a tracer outside this process."""
    await run_once(case, case.build(), lambda starts: None)
    return {"steps": case.steps}


def base_folder(disk: bool) -> str | None:
    """Where databases go: tmpfs when there is one, since a disk's fsync drowns everything else."""
    return "/dev/shm" if not disk and Path("/dev/shm").is_dir() else None


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """The result of the asked mode, or {"not_available": why}, or {"error": ...}: a failure is a result too."""
    with tempfile.TemporaryDirectory(prefix="graphagent-bench-", dir=base_folder(options.disk)) as folder:
        bench = Bench(Path(folder), options.variant)
        try:
            case = load_case(options.peer, options.workload, options.size, bench)
            if options.mode == "calls":
                return asyncio.run(counted_calls(case))
            if options.mode == "handoffs":
                return asyncio.run(counted_handoffs(case))
            if options.mode == "once":
                return asyncio.run(ran(case))
            return asyncio.run(timed(case, bench, options.budget))
        except NotAvailable as reason:
            return {"not_available": str(reason)}
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            # results are kept, and name no path of a machine
            message = str(error).replace(folder, "").replace(str(Path(__file__).parents[1]), "")
            return {"error": f"{type(error).__name__} at {where}: {message}"[:500]}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer")
    parser.add_argument("workload")
    parser.add_argument("size", type=int)
    parser.add_argument("--variant", default="")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of timed runs")
    parser.add_argument("--disk", action="store_true", help="databases on the real disk")
    parser.add_argument("--mode", choices=("time", "calls", "handoffs", "once"), default="time")
    return parser.parse_args(arguments)


def main() -> None:
    logging.disable(logging.CRITICAL)
    sys.stdout.write(json.dumps(measured(parse())) + "\n")


if __name__ == "__main__":
    main()
