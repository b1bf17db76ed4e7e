"""The validation benchmark: ``python -m benchmarks.validation``.

Builds each graph of ``benchmarks.validation_graphs`` in a process of its own, compiles and validates it by the eager
semantics, and prints what decided its behaviour, the states that were explored and the seconds of each part, the median
of several processes. Ends with 1 when a graph isn't decided or one that is sound is not found so; times decide nothing,
since they do not repeat.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks import report
from benchmarks.validation_graphs import WORKLOADS
from benchmarks.worker import output

PARTS = ("build", "compile", "validate")
HEADINGS = ("workload", "nodes", "ways", "result", "decided by", "states", *PARTS, "seconds", "CPU seconds")


@dataclass(frozen=True)
class Row:
    """One graph: its size, the verdict and how it was come by, seconds by part and of computing in all."""

    workload: str
    title: str
    nodes: int
    ways: int
    result: str
    errors: int
    decided_by: str
    states: int
    build: float
    compile: float
    validate: float
    cpu: float

    @property
    def seconds(self) -> float:
        return self.build + self.compile + self.validate

    @property
    def right(self) -> bool:
        """Decided, and without a false alarm: every graph here is sound."""
        return self.result != "unknown" and self.errors == 0

    def cells(self) -> list[str]:
        times = [f"{value:.3f}" for value in (self.build, self.compile, self.validate, self.seconds, self.cpu)]
        numbers = [f"{self.nodes:,}", f"{self.ways:,}"]
        return [self.title, *numbers, self.result, self.decided_by, f"{self.states:,}", *times]


def measure(name: str) -> Row:
    """One workload, measured in this process."""
    from graphagent.graph.draw import lines
    from graphagent.validation import Facts, validate

    workload, facts = WORKLOADS[name], Facts(engine="eager")
    validate(WORKLOADS["loops"].make(), facts=facts)  # imports networkx and the rules
    computing = time.process_time()
    begun = time.perf_counter()
    builder = workload.make()
    built = time.perf_counter()
    graph = builder.compile()
    compiled = time.perf_counter()
    found = validate(graph, rules=workload.rules, facts=facts)
    times = (built - begun, compiled - built, time.perf_counter() - compiled, time.process_time() - computing)
    size = len(graph.names), sum(1 for _ in lines(graph))
    verdict = found.result, len(found.at_least("error")), found.stats.decided_by, found.stats.states
    return Row(name, workload.title, *size, *verdict, *times)


def measured(name: str, rounds: int) -> Row:
    """The row of a workload whose times are medians over processes."""
    command = [sys.executable, "-m", "benchmarks.validation", "--one", name]
    rows = [Row(**json.loads(output(command).splitlines()[-1])) for _ in range(rounds)]
    medians: dict[str, Any] = {part: statistics.median(getattr(row, part) for row in rows) for part in (*PARTS, "cpu")}
    return Row(**{**asdict(rows[0]), **medians})


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validation", description=__doc__)
    parser.add_argument("--only", choices=WORKLOADS, action="append", help="a workload (default: all); may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="processes for each workload (default: 3)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--one", choices=WORKLOADS, help="measure one workload in this process, as one line of JSON")
    return parser.parse_args(arguments)


def main() -> int:
    options = parse()
    if options.one:
        print(json.dumps(asdict(measure(options.one))))
        return 0
    rows = [measured(name, options.rounds) for name in options.only or WORKLOADS]
    if options.json:
        listed = [{**asdict(row), "seconds": row.seconds} for row in rows]
        content = [{name: report.rounded(value) for name, value in row.items()} for row in listed]
        print(json.dumps({"machine": report.machine(), "rows": content}, indent=1))
    else:
        print("\n".join(report.aligned([list(HEADINGS), *(row.cells() for row in rows)])))
    return int(not all(row.right for row in rows))


if __name__ == "__main__":
    sys.exit(main())
