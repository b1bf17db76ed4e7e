"""A real headless browser, and pages in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
PATIENCE = 20_000
"""Milliseconds that a browser waits for what it looks for."""


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser; skips where there is none."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield launched
        finally:
            launched.close()


@contextmanager
def page_on(
    launched: Any, address: str, *, width: int = 1280, height: int = 800, dark: bool = False, connect: bool = True
) -> Iterator[Any]:
    """A page at an address, with its connection to the server; what goes wrong in its programs fails the test."""
    context = launched.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    try:
        page.goto(address)
        if connect:
            connected(page)
        yield page
    finally:
        context.close()
    assert problems == [], f"programs of the page failed: {problems}"


def connected(page: Any) -> None:
    """Wait until a page has its connection to its server."""
    page.wait_for_function("window.socket && window.socket.connected")


def wide_page(page: Any) -> bool:
    """True if the page can be scrolled sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
