"""The command on the tables of a store: which version they are of, and how they are brought up to date."""

from __future__ import annotations

from dataclasses import asdict

from graphagent.checkpoint.sql.migrate import migrate, status
from graphagent.checkpoint.sql.schema import MigrationReport
from graphagent.checkpoint.sql.urls import redacted
from graphagent.errors import UsageError
from runner.cli.exits import Exit
from runner.cli.opening import existing_store
from runner.cli.output import Output
from runner.cli.upkeep_options import StoreAction, StoreOptions


def store(options: StoreOptions, output: Output) -> int:
    """Show the version of the tables, or migrate them."""
    url = existing_store(options.db)
    moves = options.action is StoreAction.migrate
    if options.dry_run and not moves:
        raise UsageError("'status' changes nothing anyway: leave out --dry-run, or say 'migrate --dry-run'")
    report = migrate(url, dry_run=options.dry_run) if moves else status(url)
    if report.current is None:
        raise UsageError(f"'{redacted(url)}' has no checkpoint tables: correct --db; the first run makes them")
    lines = [f"'{redacted(url)}': {report.lineages} lineage(s), {report.rows} checkpoint(s)", _verdict(report, moves)]
    lines += [f"  {step}" for step in report.steps]
    lines += [f"    {one.sql};  -- {one.rows} row(s)" for one in report.statements]
    output.show({"url": redacted(url), **asdict(report), "dry_run": options.dry_run}, "\n".join(lines))
    return Exit.COMPLETED if moves or report.current == report.target else Exit.FAILED


def _verdict(report: MigrationReport, moves: bool) -> str:
    """What a report comes to, in a line."""
    versions = f"version {report.current} -> {report.target}"
    if report.current == report.target:
        return f"version {report.current}: up to date"
    if report.current is not None and report.current > report.target:
        return f"version {report.current} is newer than this release, which knows up to version {report.target}"
    if report.applied:
        return f"{versions}: done"
    return f"{versions}: would be done" if moves else f"{versions}: to be migrated"
