"""Long runs in large graphs: 10,000 checkpoints and 300 nodes at once."""

from __future__ import annotations

from typing import Any

import pytest
import studio_graphs
from browser import GRAPHS, fill, page_on, studio

from graphagent import Limits

IS_THERE = """([nodes, rows]) => document.querySelectorAll(".ga-picture .node[role=button]").length === nodes
  && document.querySelectorAll(".sg-timeline [role=option]").length >= rows"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The url of a store with a run of 10,000 checkpoints in a graph of 300 nodes."""
    url = f"sqlite:///{tmp_path_factory.mktemp('large')}/runs.db"
    graph, limits = studio_graphs.wide(), Limits(max_steps=20_000)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GRAPHAGENT_DEBUG", "0")  # which compares the state around every node
        fill(url, graph, {"budget": 9_940}, "wide-1", limits=limits)
    return url


def test_ten_thousand_checkpoints_of_300_nodes_are_opened(launched: Any, large: str) -> None:
    """The page of the run shows timeline and graph with a bounded number of elements. (How long that takes is measured
    by `benchmarks/studio.py`.)"""
    with studio(large, f"{GRAPHS}:wide") as served, page_on(launched, "about:blank", connect=False) as page:
        page.goto(served.at("/run/wide-1"), wait_until="commit")
        page.wait_for_function(IS_THERE, arg=[300, 10])
        assert page.evaluate("document.querySelectorAll('*').length") < 8_000


def test_the_cursor_of_a_long_run_moves(launched: Any, large: str) -> None:
    """Stepping back in the middle of a run of 10,000 checkpoints."""
    with studio(large, f"{GRAPHS}:wide") as served, page_on(launched, served.at("/run/wide-1?cp=wide-1:5000")) as page:
        page.locator(".sg-where", has_text="wide-1:5000").wait_for()
        page.keyboard.press("k")
        page.locator(".sg-where", has_text="wide-1:4999").wait_for()
