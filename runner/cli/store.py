"""The command on the tables of a store: which version they are of, and how they are brought up to date."""

from __future__ import annotations

from dataclasses import asdict

from graphagent.checkpoint.sql import migrate as checkpoints
from graphagent.checkpoint.sql.schema import TABLES, MigrationReport
from graphagent.checkpoint.sql.urls import redacted
from graphagent.errors import UsageError
from runner.cli.exits import Exit
from runner.cli.opening import existing_store
from runner.cli.output import Output
from runner.cli.upkeep_options import StoreAction, StoreOptions
from runner.sql import migrate as services
from runner.sql import schema
from runner.sql.schema import ServiceMigration

Report = MigrationReport | ServiceMigration


def store(options: StoreOptions, output: Output) -> int:
    """Show the versions of the checkpoint tables and the service tables, or migrate them."""
    url = existing_store(options.db)
    moves = options.action is StoreAction.migrate
    if options.dry_run and not moves:
        raise UsageError("'status' changes nothing anyway: leave out --dry-run, or say 'migrate --dry-run'")
    found, kept = checkpoints.status(url), services.status(url)
    if found.current is None and kept.current is None:
        raise UsageError(f"'{redacted(url)}' has no tables of graphagent: correct --db; the first run makes them")
    if moves:
        # Both are looked at before either is changed: a release that can't have one shall not touch the other.
        for tables, report in ((TABLES, found), (schema.TABLES, kept)):
            tables.is_older(report.current, url, migrate=True)
        found, kept = _migrated(found, url, options.dry_run), services.migrate(url, dry_run=options.dry_run)
    lines = [f"'{redacted(url)}'", *_checkpoints(found, moves), *_services(kept, moves)]
    document = {"url": redacted(url), **asdict(found), "services": kept._asdict(), "dry_run": options.dry_run}
    output.show(document, "\n".join(lines))
    current = all(report.current in (None, report.target) for report in (found, kept))
    return Exit.COMPLETED if moves or current else Exit.FAILED


def _migrated(found: MigrationReport, url: str, dry_run: bool) -> MigrationReport:
    return found if found.current is None else checkpoints.migrate(url, dry_run=dry_run)


def _checkpoints(report: MigrationReport, moves: bool) -> list[str]:
    if report.current is None:
        return ["checkpoints: no tables"]
    lines = [f"checkpoints: {report.lineages} lineage(s), {report.rows} checkpoint(s)", _verdict(report, moves)]
    lines += [f"  {step}" for step in report.steps]
    return lines + [f"    {one.sql};  -- {one.rows} row(s)" for one in report.statements]


def _services(report: ServiceMigration, moves: bool) -> list[str]:
    if report.current is None:
        return ["sessions, memory, artifacts: no tables"]
    return ["sessions, memory, artifacts:", _verdict(report, moves), *(f"  {step}" for step in report.steps)]


def _verdict(report: Report, moves: bool) -> str:
    """What a report comes to, in a line."""
    versions = f"version {report.current} -> {report.target}"
    if report.current == report.target:
        return f"version {report.current}: up to date"
    if report.current is not None and report.current > report.target:
        return f"version {report.current} is newer than this release, which knows up to version {report.target}"
    if report.applied:
        return f"{versions}: done"
    return f"{versions}: would be done" if moves else f"{versions}: to be migrated"
