"""The studio opens: a list of runs, and a page for each."""

from __future__ import annotations

from typing import Any

import studio_graphs
from browser import Shared, page_on, wide_page


def test_runs_are_listed_and_each_has_a_page(launched: Any, shared: Shared) -> None:
    """The first page lists runs with their status; a click on one shows its graph with the state of each node."""
    with page_on(launched, shared.at("/")) as page:
        rows = {text.split("\t")[0]: text.split("\t")[1:3] for text in page.locator("tbody tr").all_inner_texts()}
        assert rows["fail-1"] == ["failed", "failing"]
        assert rows["order/1?"] == ["completed", "order"]
        page.get_by_role("link", name="order/1?").click()
        page.wait_for_selector(".ga-picture .node[data-state=done]")
        states = page.locator(".ga-picture .node[role=button]").evaluate_all(
            "nodes => nodes.map(node => [node.dataset.node, node.dataset.state])"
        )
        assert states == [[name, "done"] for name in studio_graphs.order.names]
        assert page.locator(".sg-head .sg-chip").inner_text() == "completed"


def test_filters_find_runs_and_are_in_the_address(launched: Any, shared: Shared) -> None:
    """A filter narrows the list down, and the address that it leads to shows the same list again."""
    with page_on(launched, shared.at("/")) as page:
        page.get_by_label("Error has").fill("on fire")
        page.wait_for_function("document.querySelectorAll('tbody tr').length === 1")
        page.wait_for_url("**/?error=on+fire")
        with page_on(launched, page.url) as again:
            assert [text.split("\t")[0] for text in again.locator("tbody tr").all_inner_texts()] == ["fail-1"]


def test_an_unknown_run_is_said_with_the_known_ones(launched: Any, shared: Shared) -> None:
    """The address of a run that isn't there names those that are."""
    with page_on(launched, shared.at("/run/fail-2")) as page:
        assert "did you mean 'fail-1'" in page.get_by_role("alert").inner_text()


def test_pages_fit_their_window_in_light_and_dark(launched: Any, shared: Shared) -> None:
    """No page can be scrolled sideways, at 1280 and at 800 pixels, in both themes; the theme can be switched."""
    for path in ("/", "/run/fail-1?node=read"):
        with page_on(launched, shared.at(path)) as page:
            for dark in (False, True):
                page.emulate_media(color_scheme="dark" if dark else "light")
                assert is_dark(page) == dark, path
                for width in (1280, 800):
                    page.set_viewport_size({"width": width, "height": 700})
                    assert not wide_page(page), (path, width, dark)
            page.get_by_role("button", name="Switch between light and dark").click()
            assert not is_dark(page)
            page.reload()
            assert not is_dark(page)


def is_dark(page: Any) -> bool:
    """Whether the page has a dark ground."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) < 300
