"""Calls the function of a command and turns whatever it raises into a message and an exit status."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import sys
import traceback
from collections.abc import Callable
from typing import Any

from graphagent.errors import GraphAgentError
from runner.cli.exits import Exit
from runner.cli.options import Common
from runner.cli.output import Output

Command = Callable[[Any, Output], int]


def version() -> str:
    """The installed version of graphagent."""
    return importlib.metadata.version("graphagent")


def invoke(place: str, options: Common) -> int:
    """Call the command at `module:function` and return the exit status of the process.

    Every error of graphagent is misuse here: a run that fails is a result. Its message goes to standard error, with
    a traceback if `--debug` was said; with `--json` standard output has it too.
    """
    for stream in (sys.stdout, sys.stderr):  # text that the terminal's encoding lacks is escaped, not an error
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    output = Output(options.as_json, sys.stdout)
    module, _, name = place.partition(":")
    command: Command = getattr(importlib.import_module(module), name)
    try:
        # what a node prints must not get between the lines of a program's JSON
        with contextlib.redirect_stdout(sys.stderr) if options.as_json else contextlib.nullcontext():
            return int(command(options, output))
    except GraphAgentError as error:
        if options.debug:
            traceback.print_exception(error)
        output.failure(error)
        return Exit.MISUSE
    except KeyboardInterrupt:
        output.note("cancelled")
        return Exit.CANCELLED
