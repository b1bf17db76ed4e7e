"""How long the studio takes to open a large run in a browser, and to scroll it: `python -m benchmarks.studio [ROUNDS]`.

A run of 10,000 checkpoints in a graph of 300 nodes, by the browser's own clock: from the start of the navigation until
timeline and graph are there; then jumps about the timeline until their rows are seen, and the longest frame meanwhile.
Needs Chromium and the tests' helpers.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "studio"))
os.environ["GRAPHAGENT_DEBUG"] = "0"  # which compares the state around every node

import studio_graphs
from browser import GRAPHS, chromium, connected, page_on, studio

from graphagent import Executor, Limits, SqlCheckpoints

IS_THERE = """() => document.querySelectorAll(".ga-picture .node[role=button]").length === 300
  && document.querySelectorAll(".sg-timeline [role=option]").length >= 10"""

FRAMES = """() => {
  let last = performance.now();
  window.longest = 0;
  const tick = (now) => {
    window.longest = Math.max(window.longest, now - last);
    last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}"""
PLACES = (9900, 9000, 5000, 4930, 1, 9500, 2500)
SEEN = """(step) => {
  const box = document.querySelector('.sg-rows').getBoundingClientRect();
  return [...document.querySelectorAll('.sg-line')].some((line) => {
    const at = line.getBoundingClientRect();
    return at.top < box.bottom && at.bottom > box.top && line.querySelector('.no').innerText === String(step);
  });
}"""


async def fill(url: str) -> None:
    async with SqlCheckpoints(url) as store:
        executor = Executor(studio_graphs.wide(), store, limits=Limits(max_steps=20_000))
        await executor.run({"budget": 9_940}, lineage="wide-1")


def scrolled(page: Any) -> tuple[float, float]:
    """Seconds of the longest jump, milliseconds of the longest frame."""
    page.evaluate(FRAMES)
    waits = []
    last = int(page.evaluate("document.querySelector('.sg-line .no').innerText"))
    for step in PLACES:
        began = time.monotonic()
        page.evaluate(f"document.querySelector('.sg-rows').scrollTop = {(last - step) * 24}")
        page.wait_for_function(SEEN, arg=step)
        waits.append(time.monotonic() - began)
    return max(waits), page.evaluate("window.longest")


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
                    connected(page)
                    jumps, longest = scrolled(page)
                print(
                    f"open {seconds:.2f} s, {count} elements, {heap:.0f} MB of JavaScript heap; jumps at most "
                    f"{jumps:.2f} s, longest frame {longest:.0f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
