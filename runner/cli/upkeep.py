"""Commands that keep a store small: prune, delete."""

from __future__ import annotations

import anyio

from graphagent.checkpoint.record import PruneReport, Retention
from graphagent.errors import UsageError
from runner.cli.opening import known_lineage, stored_runs
from runner.cli.output import Output
from runner.cli.upkeep_options import DeleteOptions, PruneOptions
from runner.cli.values import seconds, size


def prune(options: PruneOptions, output: Output) -> int:
    """Remove old checkpoints by the given bounds."""
    policy = Retention(
        options.keep_last,
        None if options.max_age is None else seconds(options.max_age),
        None if options.max_bytes is None else size(options.max_bytes),
    )
    if policy == Retention():
        raise UsageError("nothing says what may go: give --keep-last, --max-age or --max-bytes")
    report = anyio.run(_prune, options, policy)
    document = {
        "rows": report.rows,
        "bytes": report.bytes,
        "lineages": report.lineages,
        "dry_run": options.dry_run,
    }
    verb = "would remove" if options.dry_run else "removed"
    text = f"{verb} {report.rows} checkpoint(s) of {report.lineages} lineage(s), {report.bytes} bytes"
    output.show(document, text)
    return 0


def delete(options: DeleteOptions, output: Output) -> int:
    """Remove all that is stored of a lineage."""
    rows = anyio.run(_delete, options)
    output.show({"lineage": options.lineage, "rows": rows}, f"removed '{options.lineage}': {rows} row(s)")
    return 0


async def _prune(options: PruneOptions, policy: Retention) -> PruneReport:
    async with stored_runs(options) as store:
        if options.lineage is not None:
            await known_lineage(store, options.lineage)
        return await store.prune(policy, lineage=options.lineage, dry_run=options.dry_run)


async def _delete(options: DeleteOptions) -> int:
    async with stored_runs(options) as store:
        return await store.delete(await known_lineage(store, options.lineage))
