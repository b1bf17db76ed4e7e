"""The page of a report in a real browser: it fits, it can be read in light and dark, and it loads nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from report_graphs import completed
from support.contrast import hard_to_read

from graphagent import Executor, MemoryCheckpoints
from runner.report.gather import gather
from runner.report.page import page

BROWSER = shutil.which("chromium")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run with a child graph and long values."""
    path = tmp_path_factory.mktemp("report") / "run.html"

    async def made() -> str:
        store = MemoryCheckpoints()
        executor = Executor(completed, store)
        await executor.run({"text": "a-word-without-an-end" * 80}, lineage="l")
        return page(await gather(store, "l", executor=executor))

    path.write_text(anyio.run(made), "utf-8")
    return path


@pytest.fixture(scope="module")
def browser(file: Path) -> Iterator[Any]:
    """A headless Chromium, opened when the page has been made: its driver keeps other event loops out."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800])
def test_the_page_fits_and_can_be_read(browser: Any, file: Path, scheme: str, width: int) -> None:
    """No horizontal scroll with all of it unfolded, WCAG AA contrast of every text, no request for anything else."""
    shown = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(file.as_uri())
    shown.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert shown.evaluate("() => document.documentElement.scrollWidth") <= width
    assert hard_to_read(shown) == []
    assert asked == [file.as_uri()]
    shown.close()


def test_the_keyboard_unfolds_a_step(browser: Any, file: Path) -> None:
    """Tab reaches the steps, Enter unfolds one."""
    shown = browser.new_page()
    shown.goto(file.as_uri())
    for _ in range(40):
        shown.keyboard.press("Tab")
        if shown.evaluate("() => document.activeElement.tagName") == "SUMMARY":
            break
    shown.keyboard.press("Enter")
    assert shown.evaluate("() => document.querySelectorAll('details[open]').length") == 1
    shown.close()
