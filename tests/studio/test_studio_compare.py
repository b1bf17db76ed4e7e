"""Two runs side by side in the browser, and what the effects panel tells of joins and effects."""

from __future__ import annotations

from typing import Any

import panel_graphs
import studio_graphs
from browser import GRAPHS, fill, page_on, studio, wide_page

from graphagent import Limits

PANELS = GRAPHS.replace("studio_graphs", "panel_graphs")


def test_the_first_step_that_differs_is_marked(launched: Any, db: str) -> None:
    """Where other inputs led to other ways: the parting, the fields, and links to both checkpoints."""
    fill(db, panel_graphs.decided, {"amount": 1}, "d-1")
    fill(db, panel_graphs.decided, {"amount": 50}, "d-2")
    with studio(db, f"{PANELS}:decided") as served, page_on(launched, served.at("/run/d-1")) as page:
        page.get_by_role("link", name="Compare").click()
        page.get_by_label("is compared with").fill("d-2")
        page.get_by_role("button", name="Compare the two runs").click()
        page.get_by_role("status").get_by_text("then the same nodes made another state of it").wait_for()
        assert page.url.endswith("/compare?a=d-1&b=d-2")
        assert page.locator("tr[data-mark=parting]").count() == 1
        differing = page.get_by_role("table", name="Fields that differ")
        assert differing.get_by_role("row", name="amount 1 50").count() == 1
        steps = page.get_by_role("table", name="Steps of both runs")
        last = steps.get_by_role("row").last
        assert "small" in last.inner_text()
        assert "large" in last.inner_text()
        assert not wide_page(page)
        last.get_by_role("link", name="d-2:2").click()
        page.locator(".sg-where", has_text="d-2:2").wait_for()


def test_runs_that_are_alike_and_runs_that_are_not_there(launched: Any, db: str) -> None:
    """Both are said; a name that isn't known comes with those that come near."""
    for name in ("d-1", "d-2"):
        fill(db, panel_graphs.decided, {"amount": 1}, name)
    with studio(db) as served, page_on(launched, served.at("/compare?a=d-1&b=d-2")) as page:
        page.get_by_text("d-1:3 and d-2:3 are alike, step by step").wait_for()
        page.get_by_label("is compared with").fill("d-3")
        page.get_by_label("is compared with").press("Enter")
        page.get_by_role("alert").get_by_text("'d-3'").wait_for()


def test_of_long_runs_the_steps_around_the_parting_are_shown(launched: Any, db: str, monkeypatch: Any) -> None:
    """A page of thousands of steps begins near the place that matters, and brings the others when asked."""
    for name, ticks in (("t-1", "1500"), ("t-2", "1400")):
        monkeypatch.setenv("GRAPHAGENT_TEST_TICKS", ticks)
        fill(db, studio_graphs.ticking, {}, name, limits=Limits(max_steps=2000))
    with studio(db, f"{GRAPHS}:ticking") as served, page_on(launched, served.at("/compare?a=t-1&b=t-2")) as page:
        parting = page.locator("tr[data-mark=parting]")
        parting.wait_for()
        assert page.locator(".sg-sides tbody tr").count() <= 60
        page.get_by_role("button", name="earlier steps").click()
        page.wait_for_function("document.querySelectorAll('.sg-sides tbody tr').length > 80")
        assert parting.count() == 1


def test_joins_that_starve_are_told(launched: Any, db: str) -> None:
    """What has arrived, what is missing, and that it can't come any more."""
    fill(db, panel_graphs.stalled, {}, "s-1")
    with studio(db, f"{PANELS}:stalled") as served, page_on(launched, served.at("/run/s-1")) as page:
        page.get_by_role("tab", name="Effects").click()
        joins = page.get_by_role("table", name="Joins")
        joins.wait_for()
        text = " ".join(joins.inner_text().split())
        assert "one two starved: what it misses can't come any more" in text


def test_effects_of_a_step_are_told(launched: Any, db: str) -> None:
    """The activation, the name, that it was carried out, and what it came back with."""
    fill(db, panel_graphs.ticket, {"text": "shoes"}, "t-1")
    with studio(db, f"{PANELS}:ticket") as served, page_on(launched, served.at("/run/t-1?cp=t-1:2")) as page:
        page.get_by_role("tab", name="Effects").click()
        effects = page.get_by_role("table", name="Effects")
        effects.wait_for()
        text = " ".join(effects.inner_text().split())
        assert 'pay#2 pay carried out {"receipt": "r1"}' in text
        page.locator(".sg-line", has_text="fetch").click()
        page.locator(".sg-where", has_text="t-1:1").wait_for()
