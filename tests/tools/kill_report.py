"""All kill points of all graphs, in figures: `python -m tests.tools.kill_report [--sample N] [--graphs demo,0,1]`.

Works on SQLite, and on PostgreSQL if the server of GRAPHAGENT_TEST_POSTGRES is there. Ends with code 1 if anything did
not hold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests/, as pytest has it

from _pytest.outcomes import Skipped
from support.databases import postgres_schema
from support.kill_campaign import WORKER, Plan, killed_at_times, killed_once, killed_twice, problems

from graphagent.testing.forks import ForkServer
from graphagent.testing.report import Report

GRAPHS = ("demo", *map(str, range(10)))
MOMENTS = 100


@contextmanager
def databases(folder: str) -> Iterator[dict[str, str]]:
    """Urls by name; without a server there is no PostgreSQL among them."""
    found = {"sqlite": f"sqlite:///{folder}/kills.db"}
    try:
        with postgres_schema() as url:
            yield {**found, "postgres": url}
    except Skipped as reason:
        print(reason, file=sys.stderr)
        yield found


def rows(graphs: tuple[str, ...]) -> Iterator[tuple[str, str, str, Callable[[Plan], Report]]]:
    """What is tried: title, graph, engine and campaign."""
    for graph in graphs:
        yield f"{graph}", graph, "superstep", killed_once
    for graph in graphs[:3]:
        yield f"{graph}, killed twice", graph, "superstep", killed_twice
        yield f"{graph}, at {MOMENTS} moments", graph, "superstep", partial(killed_at_times, count=MOMENTS)
        yield f"{graph}, eager engine", graph, "eager", killed_once


def main() -> int:
    """Print a line for each campaign, then the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=None, help="points a graph (default: all)")
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    told = parser.parse_args()
    tried = held = unknown = bad = 0
    with tempfile.TemporaryDirectory() as folder, databases(folder) as urls, ForkServer(WORKER) as server:
        for name, url in urls.items():
            for title, graph, engine, campaign in rows(tuple(told.graphs.split(","))):
                began = time.monotonic()
                report = campaign(Plan(server, url, folder, graph, engine, told.sample))
                wrong = problems(report, exact="moments" not in title)
                line = f"{name:9}{title:22}{report}  {time.monotonic() - began:.1f} s"
                print(line, *wrong[:5], sep="\n    ", flush=True)
                tried, bad = tried + len(report.trials), bad + len(wrong)
                held, unknown = held + len(report.by("held")), unknown + len(report.by("unknown"))
    print(f"{tried} kill points: {held} held, {unknown} rightly asked for a person, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
