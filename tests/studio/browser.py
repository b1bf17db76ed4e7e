"""A studio as a process of its own, a browser that looks at it, and runs for it to show."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

GRAPHS = str(Path(__file__).with_name("studio_graphs.py"))
CHROMIUM = shutil.which("chromium")
COMMAND = str(Path(sys.executable).with_name("graphagent"))
PATIENCE = 20_000
"""Milliseconds that a browser waits for what it looks for."""


@dataclass
class Served:
    """A studio that listens. `url` has its token, if it has one; `said` is what it printed when it was ready."""

    url: str
    said: dict[str, Any]
    process: subprocess.Popen[str]

    def at(self, path: str) -> str:
        """The address of a page."""
        return self.url.split("?")[0].rstrip("/") + path


@dataclass
class Shared:
    """A studio that several tests look at, and the store that it is on."""

    studio: Served
    db: str

    def at(self, path: str) -> str:
        """The address of a page."""
        return self.studio.at(path)


def environment(**more: str) -> dict[str, str]:
    """What a process of the command line needs, without what pytest has left in ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "GRAPHAGENT_"))}
    return {**kept, **more}


@contextmanager
def studio(db: str, *words: str, **more: str) -> Iterator[Served]:
    """The real command on a store, until the block ends; it has to end in an orderly way then."""
    command = [COMMAND, "studio", *words, "--db", db, "--json", "--no-browser"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**more)
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith('{"url"'):
        process.kill()
        raise AssertionError(line + "".join(process.communicate()))
    said = json.loads(line)
    noise: list[str] = []
    assert process.stderr is not None
    listening = threading.Thread(target=lambda: noise.extend(process.stderr or ()))
    listening.start()
    try:
        yield Served(said["url"], said, process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            status = process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        listening.join()
        process.stdout.close()
        process.stderr.close()
    said_late = "".join(noise)
    assert (status, said_late) == (0, ""), f"the studio ended with status {status} and said: {said_late}"


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
    """A page at an address, with its connection to the studio; what goes wrong in its programs fails the test."""
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
    """Wait until a page has its connection to the studio."""
    page.wait_for_function("window.socket && window.socket.connected")


def stored(work: Callable[[], Awaitable[Any]]) -> Any:
    """What an async function returns, run in a thread: the browser has the event loop of this one."""
    done: list[Any] = []

    def call() -> None:
        try:
            done.append((asyncio.run(work()), None))  # type: ignore[arg-type]
        except BaseException as error:
            done.append((None, error))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    result, error = done[0]
    if error is not None:
        raise error
    return result


def fill(url: str, graph: Any, input: Any, lineage: str, **options: Any) -> Any:
    """Run a graph on a store until it stops; returns the result."""
    from graphagent import Executor, SqlCheckpoints

    async def run() -> Any:
        async with SqlCheckpoints(url) as store:
            return await Executor(graph, store, **options).run(input, lineage=lineage)

    return stored(run)


def wide_page(page: Any) -> bool:
    """True if the page can be scrolled sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
