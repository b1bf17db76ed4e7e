"""How a run is watched while it goes on: events as lines, progress as lines, or nothing at all."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType

from graphagent.events import RunEvent
from runner.cli.output import Output, short


class Watcher:
    """Watches nothing. A watcher is open while a part of a run goes on and is handed the events of its modes."""

    modes: tuple[str, ...] = ()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def event(self, event: RunEvent) -> None:
        """Take up one event."""

    def note(self, text: str) -> None:
        """Say something while the run goes on."""
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal as it should be; harmless twice."""


class EventLines(Watcher):
    """Every event as a line on standard output."""

    modes = ("updates", "messages", "tasks", "checkpoints", "custom")

    def __init__(self, output: Output) -> None:
        self._output = output

    def event(self, event: RunEvent) -> None:
        """Print one event."""
        place = place_of(event)
        data = "" if event.data is None else f"  {short(event.data)}"
        text = f"{event.seq:4}  step {event.step}  {event.mode}/{event.kind}  {place}{data}"
        self._output.line({name: getattr(event, name) for name in RunEvent._fields}, text)


class ProgressLines(Watcher):
    """What starts, ends and fails as lines on standard error, for logs."""

    modes = ("tasks", "custom")

    def __init__(self) -> None:
        self._began = time.monotonic()

    def event(self, event: RunEvent) -> None:
        """Print one line, with the seconds since the beginning."""
        text = told(event)
        if text:
            self.note(f"{time.monotonic() - self._began:7.2f} s  step {event.step}  {place_of(event)}  {text}")


def place_of(event: RunEvent) -> str:
    """The activation an event comes from: path of the child graph, branch and node, where they say more than the node.

    Without the step, which stands apart.
    """
    last = event.branch.rpartition("/")[2].partition("[")[0]  # a branch is named after the node it leads to
    name = event.branch if last == event.node else f"{event.branch}/{event.node}"
    return "/".join(part for part in (event.namespace, name.strip("/")) if part)


def told(event: RunEvent) -> str:
    """An event of progress in words; empty for one that says nothing about progress."""
    match event.mode, event.kind:
        case "tasks", "start":
            return "started"
        case "tasks", "end":
            return f"failed: {event.data['error']}" if event.data["error"] else "done"
        case "tasks", "error":
            delay = event.data["next_delay"]
            then = f"; next attempt in {delay:.1f} s" if event.data["retrying"] and delay is not None else ""
            return f"attempt {event.data['attempt']} failed: {event.data['error']}{then}"
        case "custom", "progress":
            return f"{event.data['fraction']:.0%} {event.data['message']}".rstrip()
    return ""


def is_terminal() -> bool:
    """True if a person sees standard error on a terminal that can be drawn on (`NO_COLOR` and `TERM=dumb` say no)."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


def watcher_for(output: Output, title: str, *, stream: bool) -> Watcher:
    """The watcher for what was asked for and where it is seen."""
    if stream:
        return EventLines(output)
    if output.as_json:
        return Watcher()
    if not is_terminal():
        return ProgressLines()
    from runner.cli.live import LiveProgress  # rich is slow to import

    return LiveProgress(title)
