"""A run that another process executes is followed from its rows, also through a kill of that process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import environment, page_on, studio

WORKER = Path(__file__).with_name("studio_worker.py")
_STEP = re.compile(r"step (\d+)")
Work = Callable[..., subprocess.Popen[str]]


def worker(url: str, lineage: str, what: str, tick: float, ticks: int) -> subprocess.Popen[str]:
    """A process that runs `ticking` on a store."""
    words = [sys.executable, str(WORKER), url, "ticking", lineage, what]
    more = {"GRAPHAGENT_TEST_TICK": str(tick), "GRAPHAGENT_TEST_TICKS": str(ticks)}
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment(PYTHONPATH=".", **more))


def step_of(page: Any) -> int:
    """The step at which the cursor stands."""
    found = _STEP.search(page.locator(".sg-where").inner_text())
    assert found is not None
    return int(found[1])


def listed(page: Any, lineage: str) -> None:
    """Wait until the list of runs has a lineage, then open it."""
    page.get_by_role("link", name=lineage).click()
    page.wait_for_selector(".sg-where")


def moves(page: Any, beyond: int) -> None:
    """Wait until the cursor stands behind a step."""
    page.wait_for_function(
        "beyond => +(document.querySelector('.sg-where').innerText.match(/step (\\d+)/) || [0, 0])[1] > beyond",
        arg=beyond,
    )


def status(page: Any, wanted: str) -> None:
    """Wait until the page says how the run stands."""
    page.locator(f".sg-head .sg-chip[data-status={wanted}]").wait_for()


@pytest.fixture
def database(request: pytest.FixtureRequest, fresh_database: str) -> str:
    """A database of each kind, with its tables made: the studio doesn't open one that isn't there."""
    from browser import fill
    from studio_graphs import failing

    fill(fresh_database, failing, {}, "other")
    return fresh_database


@pytest.mark.kill
def test_a_run_elsewhere_is_followed_through_a_kill_to_its_end(launched: Any, database: str) -> None:
    """The page moves on with the run of another process, says when that was killed, and goes on with the third's."""
    with studio(database) as served, page_on(launched, served.url) as page:
        running = worker(database, "tick-1", "run", 0.1, 100_000)
        try:
            listed(page, "tick-1")
            status(page, "running")
            moves(page, step_of(page) + 3)
            page.wait_for_selector('.ga-picture .node[data-node="tick"][data-state="running"]')
            assert f"process {running.pid} on host" in page.locator(".sg-head").inner_text()
        finally:
            running.kill()
            running.communicate()
        status(page, "unfinished")
        seen = step_of(page)
        again = worker(database, "tick-1", "resume", 0.02, seen + 20)
        moves(page, seen)
        out, _ = again.communicate(timeout=60)
        assert out == "completed\n"
        status(page, "completed")
        page.locator(".sg-where", has_text=", end").wait_for()
        assert step_of(page) >= seen + 20


def test_following_is_a_choice(launched: Any, db: str) -> None:
    """With the switch off the cursor stays where it is while new checkpoints arrive."""
    from browser import fill
    from studio_graphs import failing

    fill(db, failing, {}, "other")
    with studio(db) as served, page_on(launched, served.url) as page:
        running = worker(db, "tick-1", "run", 0.1, 100_000)
        try:
            listed(page, "tick-1")
            moves(page, 1)
            page.get_by_role("switch", name="Follow the newest checkpoint").click()
            before = page.locator(".sg-where").inner_text()
            count = page.locator(".sg-head").inner_text()
            page.wait_for_function("count => document.querySelector('.sg-head').innerText !== count", arg=count)
            page.wait_for_timeout(1000)
            assert page.locator(".sg-where").inner_text() == before
        finally:
            running.kill()
            running.communicate()
