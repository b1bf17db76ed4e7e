"""The engine benchmark: ``python -m benchmarks.engine``.

Times ours and peers side by side with hand-written code, prints a table of ratios with the targets, and keeps the
figures in ``benchmarks/results``. Ends with 1 when one of our workloads fails to run or, with ``--counts``, when a
count is over its bound; times decide nothing, since they do not repeat.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from benchmarks import counts, report
from benchmarks.matrix import ALLOWANCE, FULL, OURS, PEERS, QUICK, QUICK_PEERS, REFERENCE, Cell
from benchmarks.rounds import Plan, Row, rows, run
from benchmarks.worker import FOLDER, is_installed

RESULTS = FOLDER / "results"
QUICK_BUDGET_SECONDS = 0.2
FULL_BUDGET_SECONDS = 0.6


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every size and peer (default: sizes that have a target)")
    parser.add_argument("--only", help="workloads, as in W1,W2")
    parser.add_argument("--peers", help=f"some of {','.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=5, help="processes for each peer and cell (default: 5)")
    parser.add_argument("--disk", action="store_true", help="databases on the real disk instead of tmpfs")
    parser.add_argument("--counts", action="store_true", help="counts instead of times")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args(arguments)
    known = sorted({workload for workload, _ in FULL})
    for name, chosen, allowed in (("--only", options.only, known), ("--peers", options.peers, list(PEERS))):
        unknown = [item for item in (chosen or "").split(",") if item and item not in allowed]
        if unknown:
            parser.error(f"{name}: unknown {', '.join(map(repr, unknown))}; known are {', '.join(allowed)}")
    return options


def chosen_peers(options: argparse.Namespace) -> tuple[str, ...]:
    """The peers asked for, the limit always among them, without those whose venv is missing."""
    asked = options.peers.split(",") if options.peers else (PEERS if options.full else QUICK_PEERS)
    missing = [peer for peer in asked if not is_installed(peer)]
    for peer in missing:
        tell(f"peer '{peer}' is left out: its venv is missing; make it with benchmarks/peers.sh")
    return tuple(peer for peer in PEERS if peer == REFERENCE or (peer in asked and peer not in missing))


def chosen_cells(options: argparse.Namespace) -> tuple[Cell, ...]:
    cells = FULL if options.full else QUICK
    return tuple(cell for cell in cells if not options.only or cell[0] in options.only.split(","))


def result_name(options: argparse.Namespace) -> str:
    """Only a whole run replaces the figures that are kept."""
    if options.only or options.peers or options.disk:
        return "partial"
    if options.counts:
        return "counts"
    return "full" if options.full else "quick"


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def time_everything(options: argparse.Namespace) -> int:
    budget = FULL_BUDGET_SECONDS if options.full else QUICK_BUDGET_SECONDS
    peers = chosen_peers(options)
    once = () if options.full else tuple(peer for peer in peers if peer not in (REFERENCE, *ALLOWANCE))
    plan = Plan(peers, chosen_cells(options), options.rounds, budget, once, options.disk)
    found: list[Row] = rows(run(plan, tell))
    content = report.as_json(found)
    report.write(RESULTS / f"{result_name(options)}.json", content)
    print(json.dumps(content, indent=1) if options.json else report.table(found))
    return int(any(row.note for row in found if row.peer in ALLOWANCE))


def count_everything(options: argparse.Namespace) -> int:
    peers = chosen_peers(options) if options.peers else (REFERENCE, OURS)
    found = counts.counts(peers)
    content = {"counts": [{**asdict(count), "met": count.met} for count in found]}
    report.write(RESULTS / f"{result_name(options)}.json", content)
    print(json.dumps(content, indent=1) if options.json else "\n".join(report.aligned(counts.lines(found))))
    return int(not all(count.met for count in found))


def main() -> int:
    options = parse()
    return count_everything(options) if options.counts else time_everything(options)


if __name__ == "__main__":
    sys.exit(main())
