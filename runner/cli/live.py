"""Progress on a terminal, redrawn in place: step, what runs, what is done, how long."""

from __future__ import annotations

import sys
import time

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from graphagent.events import RunEvent
from runner.cli.progress import Watcher, place_of, told

SHOWN = 6
"""Running activations that have a line of their own; the others are counted."""


class LiveProgress(Watcher):
    """Draws on standard error; a node's own output goes above it."""

    modes = ("tasks", "custom")

    def __init__(self, title: str) -> None:
        self._title = title
        self._began = time.monotonic()
        self._step = 0
        self._running: dict[tuple[str, str], tuple[str, float, str]] = {}  # activation -> name, start, what it says
        self._done: list[str] = []
        self._spinner = Spinner("dots")
        self._over = False
        console = Console(stderr=True, highlight=False)
        self._live = Live(
            console=console,
            get_renderable=self._drawn,
            redirect_stdout=sys.stdout.isatty(),
            refresh_per_second=8,
            vertical_overflow="crop",
        )

    def __enter__(self) -> LiveProgress:
        self._live.start()
        return self

    def event(self, event: RunEvent) -> None:
        """Take up one event; it is seen at the next redraw."""
        key = (event.namespace, event.activation)
        if not event.namespace:
            self._step = max(self._step, event.step)
        match event.mode, event.kind:
            case "tasks", "start":
                self._running[key] = (place_of(event), time.monotonic(), "")
            case "tasks", "end":
                name, _, _ = self._running.pop(key, (place_of(event), 0.0, ""))
                self._done.append(name)
            case "tasks" | "custom", _:
                if key in self._running and (text := told(event)):
                    self._running[key] = (*self._running[key][:2], text)

    def note(self, text: str) -> None:
        """Say something above the drawing."""
        self._live.console.print(text, markup=False)

    def close(self) -> None:
        """Draw the end and give the cursor back."""
        self._over = True
        self._live.stop()

    def _drawn(self) -> Group:
        now = time.monotonic()
        head = Text(f"{self._title}  step {self._step}  {now - self._began:.1f} s", style="bold")
        lines: list[Text | Spinner] = [head]
        for name, began, says in [] if self._over else list(self._running.values())[:SHOWN]:
            mark = self._spinner.render(now)
            lines.append(Text.assemble("  ", (str(mark), "cyan"), f" {name}  {now - began:.1f} s  {says}".rstrip()))
        more = len(self._running) - SHOWN
        if more > 0 and not self._over:
            lines.append(Text(f"  and {more} more running"))
        if self._done:
            last = ", ".join(self._done[-8:])
            lines.append(Text(f"  {len(self._done)} done: {'... ' if len(self._done) > 8 else ''}{last}", style="dim"))
        return Group(*lines)
