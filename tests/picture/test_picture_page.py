"""The picture in a page, in a real browser: clicks and keys, patches, themes, and text that stays in its box."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.graphs import flow

from graphagent import END
from runner.picture import APPLY_JS, Mark, edge_patch, mark_patch, picture

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")

GRAPH = flow("START -> a -> b, c -> d -> END", "a wide name of a node -> d").compile()
BEFORE = {"a": Mark("running", 1)}
AFTER = {"a": Mark("done", 1), "b": Mark("failed", 2), "d": Mark("waiting", 1, "1/2"), END: Mark("done")}
TAKEN_BEFORE, TAKEN_AFTER = {("a", "b"): 1}, {("a", "c"): 3}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


def shown(browser: Any, drawn: str, **options: Any) -> Any:
    """A page with a picture; calls of `onNode` are kept in `called`, errors of scripts in `failed`."""
    page = browser.new_page(**options)
    page.set_content(f"<!doctype html><meta charset=utf-8><body><div id=root>{drawn}</div>")
    page.evaluate(
        f"() => {{ {APPLY_JS}; window.called = []; window.failed = []; window.graphagentPicture = graphagentPicture;"
        "onerror = (text) => window.failed.push(text);"
        "window.live = graphagentPicture(document.getElementById('root'), (id) => window.called.push(id)); }"
    )
    return page


def content(page: Any) -> Any:
    """What is to be seen of every node and edge, as the page has it."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".node, .edge")].map((group) => [
            ...["node", "source", "target", "state", "taken"].map((name) => group.dataset[name]),
            ...["class", "aria-label", "aria-current", "aria-description"].map((name) => group.getAttribute(name)),
            group.style.strokeWidth, group.querySelector("title").textContent,
            group.querySelector(".badge")?.innerHTML])"""
    )


def test_a_patched_picture_is_the_picture_drawn_anew(browser: Any) -> None:
    """After patches of marks, edges, breakpoints and selection the page has what a new picture would have; and back."""
    page = shown(browser, picture(GRAPH, BEFORE, edge_marks=TAKEN_BEFORE, breakpoints={"a"}, selected="a"))
    first = content(page)
    changes = [*mark_patch(BEFORE, AFTER), *edge_patch(TAKEN_BEFORE, TAKEN_AFTER)]
    page.evaluate(f"() => {{ live.apply({json.dumps(changes)}); live.breakpoints(['b', 'd']); live.select('b') }}")
    anew = picture(GRAPH, AFTER, edge_marks=TAKEN_AFTER, breakpoints={"b", "d"}, selected="b")
    assert content(page) == content(shown(browser, anew))
    back = [*mark_patch(AFTER, BEFORE), *edge_patch(TAKEN_AFTER, TAKEN_BEFORE)]
    page.evaluate(f"() => {{ live.apply({json.dumps(back)}); live.breakpoints(['a']); live.select('a') }}")
    assert content(page) == first
    page.evaluate("() => live.select(null)")
    assert page.locator(".selected").count() == 0
    page.evaluate("() => live.apply([{node: 'gone', state: 'done', badge: '', words: ''}])")
    assert page.evaluate("failed") == []


def test_clicks_and_keys_name_the_node(browser: Any) -> None:
    """A click on any part of a node, Enter and Space call back; start and end, and keys with Control, do not."""
    page = shown(browser, picture(GRAPH, AFTER))
    page.locator("[data-node=b] text").first.click()
    page.locator("[data-node=d] .badge rect").click()
    page.locator("[data-node=__end__]").click()
    page.locator("[data-node=c]").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    page.keyboard.press("Control+Enter")
    assert page.evaluate("called") == ["b", "d", "c", "c"]
    page.evaluate("() => { graphagentPicture(document.getElementById('root'), (id) => called.push('second ' + id)) }")
    page.keyboard.press("Enter")
    assert page.evaluate("called")[4:] == ["second c"]
    assert page.evaluate("failed") == []


def test_arrow_keys_go_to_the_next_node(browser: Any) -> None:
    """Down, right, left and up lead to the node that is there; where none is the focus stays; Tab reaches all."""
    page = shown(browser, picture(GRAPH, {}))
    page.locator("[data-node=a]").focus()

    def pressed(key: str) -> str:
        page.keyboard.press(key)
        return str(page.evaluate("document.activeElement.dataset.node"))

    below = pressed("ArrowDown")
    assert below in ("b", "c")
    assert pressed("ArrowDown") == "d"
    assert pressed("ArrowDown") == "d"
    assert pressed("ArrowUp") in ("b", "c", "a wide name of a node")
    page.locator("[data-node=b]").focus()
    aside = "ArrowRight" if page.evaluate(_LEFT_OF, ["b", "c"]) else "ArrowLeft"
    assert pressed(aside) == "c"
    page.locator("[data-node=a]").focus()
    assert [pressed("Tab") for _ in range(3)] == ["b", "c", "d"]


_LEFT_OF = """([a, b]) => document.querySelector(`[data-node=${a}] .box`).getBoundingClientRect().x
    < document.querySelector(`[data-node=${b}] .box`).getBoundingClientRect().x"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_that_counts(browser: Any, scheme: Any) -> None:
    """The picture's own theme counts before that of what is around it, and this before the reader's scheme."""
    page = shown(browser, picture(GRAPH), color_scheme=scheme)
    for theme, around in itertools.product(("", "light", "dark"), repeat=2):
        page.evaluate(
            "([theme, around]) => { document.querySelector('svg').dataset.theme = theme;"
            "document.documentElement.dataset.theme = around }",
            [theme, around],
        )
        fill = page.evaluate("getComputedStyle(document.querySelector('.ground')).fill")
        dark = (theme or around or scheme) == "dark"
        assert fill == ("rgb(22, 24, 28)" if dark else "rgb(255, 255, 255)"), (theme, around)


def test_text_stays_in_its_box(browser: Any) -> None:
    """As the browser measures it: names inside their nodes, labels on their ground, badges' texts in their badges."""
    marks = {name: Mark("waiting", 12, "wwwwwwwwwwww") for name in GRAPH.names}
    page = shown(browser, picture(GRAPH, marks))
    outside = page.evaluate(
        """() => [...document.querySelectorAll(".node > text, .badge > text")].filter((text) => {
            const inner = text.getBoundingClientRect();
            const box = (text.parentNode.querySelector(":scope > .box") ?? text.parentNode.querySelector("rect"));
            const outer = box.getBoundingClientRect();
            return inner.left < outer.left || inner.right > outer.right;
        }).map((text) => text.textContent)"""
    )
    assert outside == []


def test_the_file_alone_is_drawn(browser: Any, tmp_path: Path) -> None:
    """Opened as a file it is an SVG document with the size that it says, in the reader's scheme."""
    path = tmp_path / "graph.svg"
    path.write_text(picture(GRAPH), "utf-8")
    page = browser.new_page(color_scheme="dark")
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.tagName") == "svg"
    assert page.evaluate("getComputedStyle(document.querySelector('.ground')).fill") == "rgb(22, 24, 28)"
    assert page.locator(".node").count() == len(GRAPH.names) + 2
