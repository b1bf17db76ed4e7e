"""Takes the pictures of docs/img from a studio on the demo's graph: `python -m tests.tools.studio_shots`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "studio"))

from browser import chromium, page_on, studio

from examples.cert_triage.graph import graph
from examples.cert_triage.samples import make_samples
from graphagent import Executor, SqlCheckpoints

FOLDER = Path(__file__).parents[2] / "docs" / "img"
PAGES = {
    "run": "/run/expired",
    "state": "/run/expired?cp=expired:2",
    "node": "/run/expired?cp=expired:3&node=verdict",
    "runs": "/",
    "compare": "/compare?a=expired&b=healthy",
}


async def fill(url: str, folder: Path) -> None:
    """A triage of two certificates."""
    async with SqlCheckpoints(url) as store:
        for sample in make_samples(folder, datetime.now(UTC)):
            if sample.name in ("expired", "healthy"):
                await Executor(graph, store).run(sample.inputs(out_dir=str(folder)), lineage=sample.name)


def main() -> None:
    """Light and dark, wide and narrow."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        url = f"sqlite:///{name}/runs.db"
        asyncio.run(fill(url, Path(name)))
        with studio(url, "examples.cert_triage.graph:graph") as served, chromium() as browser:
            for page_name, path in PAGES.items():
                for dark, width in ((False, 1280), (True, 1280), (False, 800), (True, 800)):
                    with page_on(browser, served.at(path), dark=dark, width=width) as page:
                        page.wait_for_timeout(1500)
                        wide = page.evaluate("document.documentElement.scrollWidth")
                        assert wide <= width, f"{page_name} is {wide} wide"
                        if page_name == "run" or (dark and width == 1280):  # a few of them are enough for the docs
                            scheme = "dark" if dark else "light"
                            page.screenshot(path=FOLDER / f"studio-{page_name}-{scheme}-{width}.png")


if __name__ == "__main__":
    main()
