"""How long the studio takes to open a large run in a browser: `python -m benchmarks.studio [ROUNDS]`.

A run of 10,000 checkpoints in a graph of 300 nodes, by the browser's own clock: from the start of the navigation until
timeline and graph are there. Needs Chromium and the tests' helpers.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "studio"))
os.environ["GRAPHAGENT_DEBUG"] = "0"  # which compares the state around every node

import studio_graphs
from browser import GRAPHS, chromium, page_on, studio

from graphagent import Executor, Limits, SqlCheckpoints

IS_THERE = """() => document.querySelectorAll(".ga-picture .node[role=button]").length === 300
  && document.querySelectorAll(".sg-timeline [role=option]").length >= 10"""


async def fill(url: str) -> None:
    async with SqlCheckpoints(url) as store:
        executor = Executor(studio_graphs.wide(), store, limits=Limits(max_steps=20_000))
        await executor.run({"budget": 9_940}, lineage="wide-1")


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        url = f"sqlite:///{name}/runs.db"
        asyncio.run(fill(url))
        with studio(url, f"{GRAPHS}:wide") as served, chromium() as browser:
            for _ in range(rounds):
                with page_on(browser, "about:blank", connect=False) as page:
                    page.goto(served.at("/run/wide-1"), wait_until="commit")
                    page.wait_for_function(IS_THERE)
                    seconds = page.evaluate("performance.now() / 1000")
                    heap = page.evaluate("performance.memory ? performance.memory.usedJSHeapSize / 1e6 : 0")
                    count = page.evaluate("document.querySelectorAll('*').length")
                print(f"open {seconds:.2f} s, {count} elements, {heap:.0f} MB of JavaScript heap", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
