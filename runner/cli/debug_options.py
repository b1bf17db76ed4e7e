"""What can be said to the debugger; the docstring of the class is the command's help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option

from runner.cli.options import Engine, Stored
from runner.cli.talk_options import USER, User


@dataclass(frozen=True, kw_only=True)
class DebugOptions(Stored):
    """Step through a run, back and forth.

    A new run is held before its first step; with --lineage a stored one is opened where it stands. Type 'help' at the
    prompt, or give commands with -c, which are carried out in order. Of an agent each turn is a run: -m says what the
    user says, --session goes on with a session.
    """

    target: Annotated[
        str,
        Argument(
            metavar="MODULE:GRAPH|AGENT",
            show_default=False,
            help="Where the graph or the agent is: 'package.module:name' or 'file.py:name'.",
        ),
    ]
    lineage: Annotated[
        str | None,
        Option("--lineage", "-l", metavar="NAME", help="The history to look into; default: a new run."),
    ] = None
    checkpoint: Annotated[
        str | None,
        Option("--checkpoint", metavar="ID", help="Where to begin, by id or number; default: the newest."),
    ] = None
    namespace: Annotated[
        str | None, Option("--namespace", metavar="PATH", help="The frame to begin in; default: the root.")
    ] = None
    input: Annotated[
        str | None,
        Option("--input", "-i", metavar="JSON", help="Input of a new run: a JSON file, '-' or a JSON object."),
    ] = None
    message: Annotated[
        str | None, Option("--message", "-m", metavar="TEXT", help="What the user says to an agent.")
    ] = None
    session: Annotated[str | None, Option("--session", metavar="ID", help="Of an agent: the session.")] = None
    user: User = USER
    app: Annotated[
        str | None, Option("--app", metavar="NAME", help="Of an agent: the app; default: the agent's name.")
    ] = None
    engine: Annotated[Engine, Option("--engine", help="How nodes are scheduled.")] = Engine.superstep
    read_only: Annotated[bool, Option("--read-only", help="Look only: nothing runs, nothing is written.")] = False
    command: Annotated[
        list[str] | None,
        Option(
            "--command",
            "-c",
            metavar="COMMAND",
            help="Carry this out instead of reading; repeat it for more.",
        ),
    ] = None
