"""What can be said to the commands that are about changes of graphs; the docstring of a class is the command's help."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

from runner.cli.options import CheckEngine, Common, Stored

LOCK = "graphs.lock.json"


class ChangeFormat(StrEnum):
    """How a comparison is shown."""

    text = "text"
    json = "json"


class Where(StrEnum):
    """At which places a run of the old graph is looked at."""

    all = "all"
    interrupts = "interrupts"


@dataclass(frozen=True, kw_only=True)
class LockOptions(Common):
    """Write what the graphs are to a lock file.

    Commit it: 'graphagent check --locked' then fails when a graph is something else, and 'graphagent compat
    graphs.lock.json#NAME module:graph' says what a change does to runs in flight. Descriptions and source code are
    not in it.
    """

    targets: Annotated[
        list[str] | None,
        Argument(metavar="TARGET", show_default=False, help="Modules, files or folders; default: as 'check' has it."),
    ] = None
    lock_file: Annotated[str, Option("--lock-file", metavar="FILE", help="The file to write.")] = LOCK


@dataclass(frozen=True, kw_only=True)
class CompatOptions(Stored):
    """Say what a change of a graph does to unfinished runs.

    Each place where a run of the old graph can be stored is tried in the new one. With --db it is the runs that are
    there, with --checkpoint one that a file describes. Exit status: 0 all can go on, 1 some can't, 3 unknown because a
    bound was hit.
    """

    old: Annotated[
        str,
        Argument(metavar="OLD", show_default=False, help="'module:graph', a JSON file, or 'graphs.lock.json#name'."),
    ]
    new: Annotated[str, Argument(metavar="NEW", show_default=False, help="The same for the version to come.")]
    map_file: Annotated[
        str | None,
        Option("--map", metavar="FILE", help="JSON of renames: {'nodes': {'old': 'new'}, 'fields': {...}}."),
    ] = None
    checkpoint: Annotated[
        str | None, Option("--checkpoint", "-c", metavar="FILE", help="JSON of where one run stands.")
    ] = None
    at: Annotated[Where, Option("--at", help="Every place, or those where a run can wait for an answer.")] = Where.all
    engine: Annotated[CheckEngine, Option("--engine", help="How the old graph is run.")] = CheckEngine.both
    format: Annotated[ChangeFormat, Option("--format", "-f", help="How it is shown.")] = ChangeFormat.text

    def __post_init__(self) -> None:
        """`--format json` and `--json` say the same."""
        if self.format is ChangeFormat.json:
            object.__setattr__(self, "as_json", True)
