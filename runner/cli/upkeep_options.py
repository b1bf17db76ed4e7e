"""What can be said to the commands that look after a store; the docstring of a class is the command's help."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

from runner.cli.options import AnyLineage, Lineage, Stored


class StoreAction(StrEnum):
    """What is done with the tables of a store."""

    status = "status"
    migrate = "migrate"


@dataclass(frozen=True, kw_only=True)
class PruneOptions(Stored):
    """Remove old checkpoints.

    Every one that stays loads as before, and the newest always stays. Give at least one bound.
    """

    lineage: AnyLineage = None
    keep_last: Annotated[
        int | None, Option("--keep-last", min=1, metavar="N", help="Keep the newest N of each frame.")
    ] = None
    max_age: Annotated[
        str | None, Option("--max-age", metavar="AGE", help="Remove older ones: seconds, or '30m', '12h', '7d', '4w'.")
    ] = None
    max_bytes: Annotated[
        str | None,
        Option("--max-bytes", metavar="SIZE", help="Keep at most so much: bytes, or '500kB', '20MB', '1GB'."),
    ] = None
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would be removed, remove nothing.")] = False


@dataclass(frozen=True, kw_only=True)
class DeleteOptions(Stored):
    """Remove all that is stored of a lineage."""

    lineage: Lineage


@dataclass(frozen=True, kw_only=True)
class StoreOptions(Stored):
    """Show the version of a store, or migrate it.

    Checkpoints are one set of tables, sessions, memory and artifacts another; a database may have both. Those of an
    older release are brought up to date by opening the store, or by this command. 'status' changes nothing; its exit
    status is 1 unless the tables are of this release's version. 'migrate' does all steps of a set in one transaction,
    in place; with --dry-run it shows the SQL and undoes it, and writers wait meanwhile.
    """

    action: Annotated[StoreAction, Argument(metavar="status|migrate", show_default=False, help="What to do.")]
    dry_run: Annotated[bool, Option("--dry-run", help="Do it, show what was done, undo it.")] = False
