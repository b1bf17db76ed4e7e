"""What can be said to the command that searches runs; the docstring of the class is the command's help."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

from runner.cli.options import Stored


class RunState(StrEnum):
    """What may have become of a run."""

    completed = "completed"
    interrupted = "interrupted"
    failed = "failed"
    limit_reached = "limit_reached"
    stalled = "stalled"
    running = "running"
    unfinished = "unfinished"


@dataclass(frozen=True, kw_only=True)
class RunsOptions(Stored):
    """List or search the runs of a store, newest first.

    The newest is what was changed last. All conditions hold together. 'running' is what a live process holds;
    'unfinished' is what nobody does and 'resume' goes on with. A time is an age ('30m', '2h', '7d') or a date, with a
    time of day if need be ('2026-03-01T14:30').
    """

    text: Annotated[
        str | None, Argument(metavar="[TEXT]", show_default=False, help="A part of the lineage's name.")
    ] = None
    status: Annotated[
        list[RunState] | None,
        Option(
            "--status",
            "-s",
            metavar="STATUS",
            help="Only completed, interrupted, failed, limit_reached, stalled, running or unfinished ones; repeat it "
            "for any of several.",
        ),
    ] = None
    node: Annotated[str | None, Option("--node", "-n", metavar="NODE", help="This node has run in it.")] = None
    error: Annotated[
        str | None, Option("--error", "-e", metavar="TEXT", help="A part of the error, or its type; in any case.")
    ] = None
    since: Annotated[str | None, Option("--since", metavar="TIME", help="Changed then or later.")] = None
    until: Annotated[str | None, Option("--until", metavar="TIME", help="Changed then or before.")] = None
    limit: Annotated[int, Option("--limit", metavar="N", min=1, help="At most so many.")] = 50
