"""What can be said to the command that opens the studio; the docstring of the class is the command's help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option

from runner.cli.options import Engine, Stored


@dataclass(frozen=True, kw_only=True)
class StudioOptions(Stored):
    """Look at runs in the browser, and step through them.

    Prints the address when it is ready; Ctrl-C ends it, and runs that it holds can be resumed afterwards. Runs of the
    graphs that are named here can be stepped, edited and forked. Everything is read-only where no graph is named, where
    the database was written on another machine, and where it is on another one; --write allows it nevertheless.
    """

    targets: Annotated[
        list[str] | None,
        Argument(metavar="MODULE:GRAPH", show_default=False, help="Graphs and agents of the runs: 'module:name'."),
    ] = None
    host: Annotated[
        str, Option("--host", metavar="ADDRESS", help="The address to listen at; another one needs --token.")
    ] = "127.0.0.1"
    port: Annotated[int, Option("--port", min=0, max=65535, metavar="N", help="The port; 0: any that is free.")] = 0
    token: Annotated[
        str | None,
        Option(
            "--token",
            envvar="GRAPHAGENT_STUDIO_TOKEN",
            show_envvar=True,
            metavar="TEXT",
            help="What a browser has to show; it is part of the address that is printed.",
        ),
    ] = None
    read_only: Annotated[
        bool | None, Option("--read-only/--write", show_default=False, help="Allow no changes, or allow them.")
    ] = None
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open it in a browser.")] = True
    engine: Annotated[Engine, Option("--engine", help="How nodes are scheduled when a run goes on.")] = Engine.superstep
