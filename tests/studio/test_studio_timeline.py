"""The timeline in the browser: lanes, clicks and keys, and 10,000 checkpoints with a bounded page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import studio_graphs
from browser import GRAPHS, fill, page_on, stored, studio
from test_studio_step import press, stands

from graphagent import Executor, Limits, SqlCheckpoints

LONG = 10_000
"""Checkpoints of a long run."""
NODES = 4000
"""Elements that the page may have, however long the run is."""

SEEN = """(step) => {
  const box = document.querySelector('.sg-rows').getBoundingClientRect();
  return [...document.querySelectorAll('.sg-line')].some((line) => {
    const at = line.getBoundingClientRect();
    const seen = at.top < box.bottom && at.bottom > box.top;
    return seen && line.querySelector('.no').innerText === String(step);
  });
}"""
"""Whether the row of a step is to be seen."""


def elements(page: Any) -> int:
    """Elements of the page."""
    return int(page.evaluate("document.querySelectorAll('*').length"))


def at(page: Any, step: int) -> Any:
    """The row of a step in the timeline."""
    return page.locator(".sg-line", has=page.locator(".no", has_text=str(step)))


@pytest.fixture(scope="module")
def long_db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of 10,000 steps."""
    url = f"sqlite:///{Path(tmp_path_factory.mktemp('long')) / 'runs.db'}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHAGENT_TEST_TICKS", str(LONG))
        fill(url, studio_graphs.ticking, {}, "long-1", limits=Limits(max_steps=2 * LONG))
    return url


def test_child_frames_and_forks_have_lanes_and_a_click_goes_there(launched: Any, db: str) -> None:
    """The rows of a child frame lie on a lane of their own; an edit in the same run leaves another one."""
    fill(db, studio_graphs.order, {"text": "shoes"}, "order-1")

    async def edit() -> None:
        async with SqlCheckpoints(db) as store:
            executor = Executor(studio_graphs.order, store)
            await executor.edit("order-1", 2, {"amount": 7})
            await executor.resume("order-1")

    stored(edit)
    with studio(db, f"{GRAPHS}:order") as served, page_on(launched, served.at("/run/order-1")) as page:
        lines = page.locator(".sg-line")
        lines.first.wait_for()
        count = lines.count()
        assert f"Timeline, {count} checkpoints" in page.locator(".sg-timeline").inner_text()
        lanes = lines.locator("circle").evaluate_all("dots => dots.map((dot) => +dot.getAttribute('cx'))")
        assert len(set(lanes)) == 3
        edited = page.locator(".sg-line", has=page.locator(".source", has_text="edit"))
        assert "from 2" in edited.inner_text()
        edited.click()
        stands(page, "step 2, edit, next: decide")
        assert edited.get_attribute("aria-selected") == "true"
        page.locator(".sg-line", has_text="in ship").last.click()
        page.locator(".sg-bar", has_text="Graph inner in ship@").wait_for()


def test_the_keys_of_the_list_move_the_cursor(launched: Any, db: str) -> None:
    """Arrows in the list go to the row above and below, which is told to those who hear the page."""
    fill(db, studio_graphs.order, {"text": "shoes"}, "order-1")
    with studio(db, f"{GRAPHS}:order") as served, page_on(launched, served.at("/run/order-1")) as page:
        box = page.get_by_role("listbox", name="Checkpoints")
        box.focus()
        box.press("ArrowDown")
        stands(page, "step 5, step")
        box.press("ArrowUp")
        stands(page, "step 5, end")
        box.press("PageDown")
        stands(page, "step 0, input")
        active = str(box.get_attribute("aria-activedescendant"))
        assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
        assert page.locator(f"#{active}").get_attribute("aria-posinset") == "11"


def test_ten_thousand_checkpoints_open_and_scroll(launched: Any, long_db: str) -> None:
    """The page has the rows around what is seen, wherever it is scrolled to. (`benchmarks/studio.py` has the times.)"""
    with studio(long_db, f"{GRAPHS}:ticking") as served, page_on(launched, served.url) as page:
        page.goto(served.at("/run/long-1"))
        page.locator(".sg-line[aria-selected=true]").wait_for()
        page.wait_for_selector('.ga-picture .node[data-node="tick"]')
        assert f"Timeline, {LONG + 2:,} checkpoints" in page.locator(".sg-timeline").inner_text()
        most = 0
        for step in (9900, 9700, 9000, 5000, 4930, 4860, 1, 9999, 2500):
            page.evaluate(f"document.querySelector('.sg-rows').scrollTop = {(LONG + 1 - step) * 24}")
            page.wait_for_function(SEEN, arg=step)
            most = max(most, elements(page))
        assert most < NODES
        at(page, 2500).click()
        stands(page, "step 2500")
        press(page, "To the first checkpoint")
        stands(page, "step 0, input")
        page.locator(".sg-line[aria-selected=true]", has_text="input").wait_for()
        assert elements(page) < NODES


def test_memory_of_the_page_is_bounded_while_it_is_scrolled_about(launched: Any, long_db: str) -> None:
    """After hundreds of windows the heap of the page is about what it was."""
    with studio(long_db, f"{GRAPHS}:ticking") as served, page_on(launched, served.at("/run/long-1")) as page:
        page.locator(".sg-line[aria-selected=true]").wait_for()
        tools = page.context.new_cdp_session(page)

        def heap() -> float:
            tools.send("HeapProfiler.collectGarbage")
            return float(tools.send("Runtime.getHeapUsage")["usedSize"]) / 1e6

        sizes = []
        for _ in range(3):
            for place in range(0, LONG, 250):
                page.evaluate(f"document.querySelector('.sg-rows').scrollTop = {place * 24}")
                page.wait_for_timeout(15)
            page.wait_for_timeout(300)
            sizes.append(heap())
        print(f"heap after each pass: {[round(size, 1) for size in sizes]} MB, {elements(page)} elements")
        assert sizes[2] < sizes[0] + 8
        assert elements(page) < NODES
