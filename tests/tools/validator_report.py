"""The campaign behind the validator's promises: `python -m tests.tools.validator_report [GRAPHS] [RUNS] [FIRST_SEED]`.

Judges so many random graphs by brute force, reduced search and proof, drives every counterexample through the executor,
and runs every graph that is judged sound so many times with random outcomes. Ends with 1 if there is any difference.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.crosscheck import BRUTE, compiled, differences, stalls_at_random, untrue_traces
from support.random_documents import random_document

from graphagent.validation import Facts, load_document, validate


def main(graphs: int, runs: int, first: int) -> int:
    """Compare, print the figures, return the number of differences."""
    counts: Counter[str] = Counter()
    problems = 0
    for seed in range(first, first + graphs):
        doc = random_document(random.Random(seed))
        graph = compiled(doc)
        if graph is None:
            counts["definition refused"] += 1
            continue
        found = [*differences(graph, counts), *untrue_traces(doc, counts)]
        report = validate(load_document(doc).builder, rules=["GA3"], facts=Facts(engine="both"), bounds=BRUTE)
        counts[f"result {report.result}"] += 1
        if report.result == "clean" and runs:
            found += stalls_at_random(graph, runs, seed, counts)
        for text in found:
            problems += 1
            print(f"graph {seed}: {text}", flush=True)
        if (seed - first) % 500 == 499:
            print(f"... {seed - first + 1} graphs, {problems} differences", file=sys.stderr, flush=True)
    for name, count in sorted(counts.items()):
        print(f"{name:32} {count}")
    print(f"{'differences':32} {problems}")
    return problems


if __name__ == "__main__":
    chosen = [int(argument) for argument in sys.argv[1:]] + [5000, 200, 0][len(sys.argv) - 1 :]
    sys.exit(int(main(*chosen) > 0))
