"""Stepping in the browser: buttons move the run, breakpoints are set by click, a held run outlives its page."""

from __future__ import annotations

import signal
from typing import Any

import studio_graphs
from browser import GRAPHS, Shared, connected, fill, page_on, stored, studio

from graphagent import Executor, SqlCheckpoints


def where(page: Any) -> str:
    """Where the cursor stands, as the page says it."""
    return str(page.locator(".sg-where").inner_text())


def press(page: Any, name: str) -> None:
    """Click a button of the toolbar."""
    page.get_by_role("toolbar").get_by_role("button", name=name).click()


def stands(page: Any, text: str) -> None:
    """Wait until the cursor stands where the text says."""
    page.locator(".sg-where", has_text=text).wait_for()


def state(page: Any, node: str, wanted: str) -> None:
    """Wait until the picture shows a node in a state."""
    page.wait_for_selector(f'.ga-picture .node[data-node="{node}"][data-state="{wanted}"]')


def begun(page: Any, lineage: str, text: str = '{"text": "shoes"}') -> None:
    """Start a run of the graph `order` from the list of runs."""
    page.get_by_role("button", name="Start order").click()
    page.get_by_label("Its name").fill(lineage)
    page.get_by_label("Input: a JSON object").fill(text)
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url(f"**/run/{lineage}*")
    stands(page, "held here")
    connected(page)


def test_a_run_is_started_and_stepped_to_its_end(launched: Any, shared: Shared) -> None:
    """A run begins held before its first step; step goes into a child graph, next passes it by, continue ends it."""
    with page_on(launched, shared.at("/")) as page:
        begun(page, "walk-1")
        state(page, "read", "next")
        press(page, "Step, also")
        stands(page, "next: price, stock")
        state(page, "read", "done")
        press(page, "Next step")
        stands(page, "next: decide")
        press(page, "Step, also")
        stands(page, "next: ship")
        press(page, "Step, also")
        page.locator(".sg-bar", has_text="Graph inner in ship@").wait_for()
        state(page, "pick", "next")
        press(page, "Step out")
        stands(page, "next: close")
        press(page, "Continue to a breakpoint")
        stands(page, "completed")
        state(page, "close", "done")
        press(page, "Step back")
        stands(page, "next: close")


def test_a_click_on_the_corner_of_a_node_sets_a_breakpoint(launched: Any, shared: Shared) -> None:
    """The dot at a node's corner is a breakpoint: continue stops there, and a second click removes it."""
    with page_on(launched, shared.at("/")) as page:
        begun(page, "walk-2")
        node = page.locator('.ga-picture .node[data-node="ship"]')
        node.hover()
        node.locator(".stop").click()
        page.wait_for_selector('.ga-picture .node.breakpoint[data-node="ship"]')
        press(page, "Continue to a breakpoint")
        stands(page, "next: ship")
        assert "breakpoint" in where(page)
        node.hover()
        node.locator(".stop").click()
        page.wait_for_selector('.ga-picture .node[data-node="ship"]:not(.breakpoint)')
        press(page, "Continue to a breakpoint")
        stands(page, "completed")


def test_a_click_shows_code_visits_and_writes_of_a_node(launched: Any, shared: Shared) -> None:
    """The selected node has its source with file and line, a button for each visit, and what it wrote."""
    fill(shared.db, studio_graphs.order, {"text": "shoes"}, "walk-3")
    with page_on(launched, shared.at("/run/walk-3")) as page:
        page.locator('.ga-picture .node[data-node="read"]').click()
        panel = page.locator(".sg-node")
        panel.get_by_text("Count and say what was read").wait_for()
        assert "studio_graphs.py:" in panel.inner_text()
        assert "read shoes" in panel.inner_text()
        panel.get_by_role("button", name="Go to checkpoint walk-3:1").click()
        stands(page, "walk-3:1")
        page.wait_for_url("**/run/walk-3?cp=walk-3%3A1&node=read")
        with page_on(launched, page.url) as again:
            stands(again, "walk-3:1")
            assert "read shoes" in again.locator(".sg-node").inner_text()


def test_a_reloaded_page_has_its_held_run_again_and_a_second_one_only_looks(launched: Any, shared: Shared) -> None:
    """A reload finds the run held as before; another page on it is told that it only looks."""
    with page_on(launched, shared.at("/")) as page:
        begun(page, "walk-4")
        with page_on(launched, shared.at("/run/walk-4")) as second:
            second.get_by_text("another page has this run open").wait_for()
        page.reload()
        stands(page, "held here")
        press(page, "Step, also")
        stands(page, "next: price, stock")


def resumed(db: str, lineage: str) -> Any:
    """The result of a run of `order` that is gone on with elsewhere."""

    async def resume() -> Any:
        async with SqlCheckpoints(db) as store:
            return await Executor(studio_graphs.order, store).resume(lineage)

    result = stored(resume)
    assert result.state.log == ["read shoes", "price", "stock", "decide", "pick", "pack", "close"]
    return result.status


def test_a_paused_run_can_be_resumed_by_anybody(launched: Any, shared: Shared) -> None:
    """The pause button leaves a held run so that it goes on elsewhere to its end."""
    with page_on(launched, shared.at("/")) as page:
        begun(page, "walk-5")
        press(page, "Step, also")
        stands(page, "next: price, stock")
        press(page, "Pause the run")
        stands(page, "paused")
    assert resumed(shared.db, "walk-5") == "completed"


def test_a_run_that_is_held_when_the_studio_ends_can_be_resumed(launched: Any, db: str) -> None:
    """Ctrl-C leaves held runs in an orderly way, while their pages are open."""
    fill(db, studio_graphs.failing, {}, "other")
    with studio(db, f"{GRAPHS}:order") as served, page_on(launched, served.url) as page:
        begun(page, "walk-6")
        press(page, "Step, also")
        stands(page, "next: price, stock")
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(20) == 0
    assert resumed(db, "walk-6") == "completed"


def test_an_input_that_does_not_fit_is_said_in_the_form(launched: Any, shared: Shared) -> None:
    """A wrong input keeps the form open and says what is wrong."""
    with page_on(launched, shared.at("/")) as page:
        page.get_by_role("button", name="Start order").click()
        page.get_by_label("Input: a JSON object").fill('{"amount": "many"}')
        page.get_by_role("button", name="Start", exact=True).click()
        page.get_by_role("dialog").get_by_role("alert").get_by_text("amount").wait_for()
        page.get_by_label("Input: a JSON object").fill("{")
        page.get_by_role("button", name="Start", exact=True).click()
        page.get_by_role("dialog").get_by_role("alert").get_by_text("no JSON").wait_for()


def test_a_fork_goes_on_under_its_own_name(launched: Any, shared: Shared) -> None:
    """Fork at an older checkpoint opens the new run there, and it can be continued; the old one stays."""
    fill(shared.db, studio_graphs.order, {"text": "shoes"}, "walk-7")
    with page_on(launched, shared.at("/run/walk-7?cp=walk-7:2")) as page:
        press(page, "Fork from here")
        page.get_by_label("Name of the new run").fill("what-if")
        page.get_by_role("dialog").get_by_role("button", name="Fork").click()
        page.wait_for_url("**/run/what-if*")
        stands(page, "next: decide")
        press(page, "Continue to a breakpoint")
        stands(page, "completed")
