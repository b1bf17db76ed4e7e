"""Everything can be done without a mouse, and every control has a name."""

from __future__ import annotations

from typing import Any

import studio_graphs
from browser import Shared, connected, fill, page_on
from test_studio_step import stands, state

NAMELESS = """() => [...document.querySelectorAll(
  "button, a[href], input, select, textarea, [role=button], [role=tab], [role=switch]"
)].filter((one) => one.checkVisibility() && !(
  one.getAttribute("aria-label") || one.innerText?.trim() || one.getAttribute("title") || one.labels?.length
  || one.closest("label")?.innerText.trim() || one.getAttribute("aria-labelledby")
)).map((one) => one.outerHTML.slice(0, 200))"""
FOCUS = """() => {
  const one = document.activeElement;
  const style = getComputedStyle(one), ring = one.querySelector?.(".ring");
  const outlined = style.outlineStyle !== "none" && style.outlineWidth !== "0px";
  const seen = ring ? getComputedStyle(ring).stroke !== "none"
    : outlined || style.boxShadow !== "none" || one.closest(".q-field--focused, .q-toggle") !== null;
  return [one.getAttribute("aria-label") || one.innerText || one.tagName, seen];
}"""


def tab_to(page: Any, name: str, limit: int = 60) -> None:
    """Press Tab until a control has the focus; it has to be seen to have it."""
    for _ in range(limit):
        page.keyboard.press("Tab")
        label, seen = page.evaluate(FOCUS)
        if name in label:
            assert seen, f"the focus on '{label}' can't be seen"
            return
    raise AssertionError(f"Tab doesn't come to '{name}'")


def test_a_run_is_started_stepped_and_broken_by_keys_alone(launched: Any, shared: Shared) -> None:
    """Tab and Enter start a run and select a node; letters and arrows step, set a breakpoint and go back."""
    with page_on(launched, shared.at("/")) as page:
        tab_to(page, "Start order")
        page.keyboard.press("Enter")
        page.get_by_label("Its name").wait_for()
        page.get_by_label("Its name").focus()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type("keyed-1")
        tab_to(page, "Start")
        page.keyboard.press("Enter")
        stands(page, "held here")
        connected(page)
        page.keyboard.press("s")
        stands(page, "next: price, stock")
        tab_to(page, "read, function")
        page.keyboard.press("ArrowDown")
        assert "decide" in page.evaluate(FOCUS)[0]
        page.keyboard.press("Enter")
        page.locator(".sg-node", has_text="decide - function").wait_for()
        page.keyboard.press("b")
        page.wait_for_selector('.ga-picture .node.breakpoint[data-node="decide"]')
        page.keyboard.press("c")
        stands(page, "breakpoint")
        state(page, "decide", "next")
        page.keyboard.press("k")
        stands(page, "keyed-1:1")
        page.keyboard.press("End")
        stands(page, "keyed-1:2")
        page.keyboard.press("Home")
        stands(page, "keyed-1:0")


def test_keys_do_nothing_while_text_is_written(launched: Any, shared: Shared) -> None:
    """Letters that step are letters in a field and in a dialog."""
    fill(shared.db, studio_graphs.order, {}, "keys-1")
    with page_on(launched, shared.at("/run/keys-1?cp=keys-1:2")) as page:
        stands(page, "keys-1:2")
        page.keyboard.press("f")
        page.get_by_label("Name of the new run").fill("")
        page.keyboard.type("snock")
        page.keyboard.press("Escape")
        stands(page, "keys-1:2")
        page.keyboard.press("s")
        stands(page, "keys-1:3")


def test_every_control_has_a_name(launched: Any, shared: Shared) -> None:
    """No button, link, field or tab is nameless to those who hear the page."""
    fill(shared.db, studio_graphs.questions, {}, "named-1")
    for path in ("/", "/run/named-1?node=read"):
        with page_on(launched, shared.at(path)) as page:
            for width in (1280, 800):
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate(NAMELESS) == [], path


def test_a_narrow_page_has_its_parts_as_tabs(launched: Any, shared: Shared) -> None:
    """At 800 pixels one part is shown at a time; arrow keys go from tab to tab."""
    with page_on(launched, shared.at("/run/fail-1"), width=800) as page:
        assert page.get_by_role("region", name="Graph").is_visible()
        assert not page.get_by_role("region", name="Details").is_visible()
        page.get_by_role("tab", name="Graph").focus()
        page.keyboard.press("ArrowRight")
        page.get_by_role("region", name="Details").wait_for()
        assert not page.get_by_role("region", name="Graph").is_visible()
        page.keyboard.press("ArrowRight")
        page.get_by_role("region", name="Timeline").wait_for()
