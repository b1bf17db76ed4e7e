"""Long runs and large graphs open at once: 10,000 checkpoints, 300 nodes, and both together."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
import studio_graphs
from browser import GRAPHS, fill, page_on, studio

from graphagent import Limits

IS_THERE = """([nodes, rows]) => document.querySelectorAll(".ga-picture .node[role=button]").length === nodes
  && document.querySelectorAll(".sg-timeline [role=option]").length >= rows"""
LIMIT = 2.0
"""Seconds from the start of the navigation until timeline and graph are there, on a machine that does nothing else."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The url of a store with a run of 10,000 checkpoints in a graph of 300 nodes."""
    url = f"sqlite:///{tmp_path_factory.mktemp('large')}/runs.db"
    graph, limits = studio_graphs.wide(), Limits(max_steps=20_000)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GRAPHAGENT_DEBUG", "0")  # which compares the state around every node
        fill(url, graph, {"budget": 9_940}, "wide-1", limits=limits)
    return url


def opened(launched: Any, address: str) -> tuple[float, int]:
    """Seconds until the page shows graph and timeline, by the browser's clock, and how many elements it has."""
    with page_on(launched, "about:blank", connect=False) as page:
        page.goto(address, wait_until="commit")
        page.wait_for_function(IS_THERE, arg=[300, 10])
        return page.evaluate("performance.now() / 1000"), page.evaluate("document.querySelectorAll('*').length")


def test_ten_thousand_checkpoints_of_300_nodes_open_in_two_seconds(launched: Any, large: str) -> None:
    """The page of the run is there in 2 s where the machine is idle; a busy one gets as much more as it is busier."""
    with studio(large, f"{GRAPHS}:wide") as served:
        busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        best, elements = min(opened(launched, served.at("/run/wide-1")) for _ in range(3))
        assert best < LIMIT * busy, f"{best:.2f} s at a load of {busy:.1f} a processor"
        assert elements < 8_000


def test_the_cursor_of_a_long_run_moves_at_once(launched: Any, large: str) -> None:
    """Stepping back in a run of 10,000 checkpoints takes no longer than in a short one."""
    with studio(large, f"{GRAPHS}:wide") as served, page_on(launched, served.at("/run/wide-1?cp=wide-1:5000")) as page:
        page.locator(".sg-where", has_text="wide-1:5000").wait_for()
        page.keyboard.press("k")
        page.locator(".sg-where", has_text="wide-1:4999").wait_for()
        began = time.monotonic()
        page.keyboard.press("k")
        page.locator(".sg-where", has_text="wide-1:4998").wait_for()
        busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        assert time.monotonic() - began < 1.0 * busy
