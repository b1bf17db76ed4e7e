"""The command that lists and searches stored runs."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import anyio

from graphagent.checkpoint.finding import RunInfo, RunQuery
from graphagent.errors import UsageError
from runner.cli.exits import Exit
from runner.cli.opening import stored_runs
from runner.cli.output import Output, columns
from runner.cli.runs_options import RunsOptions
from runner.cli.values import seconds

_WIDTH = 100  # characters of what a run has to say, in text output


def runs(options: RunsOptions, output: Output) -> int:
    """List the runs that are wanted."""
    now = time.time()
    query = RunQuery(
        text=options.text or "",
        status=frozenset(state.value for state in options.status or ()),
        node=options.node,
        error=options.error,
        since=None if options.since is None else moment(options.since, "--since", now),
        until=None if options.until is None else moment(options.until, "--until", now),
        limit=options.limit,
    )
    found = anyio.run(_find, options, replace(query, limit=query.limit + 1))
    shown = found[: options.limit]
    rows = [(_name(run), run.status, run.step, _local(run.updated), _says(run)) for run in shown]
    text = columns(("LINEAGE", "STATUS", "STEP", "CHANGED", ""), rows) if rows else "no such runs"
    output.show({"runs": [run_data(run) for run in shown], "more": len(found) > len(shown)}, text)
    if len(found) > len(shown) and not output.as_json:
        output.note(f"there are more than {options.limit}: narrow it down, or give --limit")
    return Exit.COMPLETED


def moment(text: str, option: str, now: float) -> float:
    """A date, or an age before `now`, in seconds since the epoch; local time without a zone. Raises UsageError."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        pass
    try:
        return now - seconds(text)
    except UsageError:
        raise UsageError(
            f"{option} '{text}' is not understood; write an age such as '30m', '2h' or '7d', or a date such as "
            f"'2026-03-01' or '2026-03-01T14:30'"
        ) from None


def run_data(run: RunInfo) -> dict[str, Any]:
    """A run as JSON output has it."""
    times = {name: datetime.fromtimestamp(getattr(run, name), UTC) for name in ("began", "updated")}
    return {**asdict(run), **times}


async def _find(options: RunsOptions, query: RunQuery) -> list[RunInfo]:
    async with stored_runs(options) as store:
        return await store.find_runs(query)


def _name(run: RunInfo) -> str:
    return f"{run.lineage} ({run.namespace})" if run.namespace else run.lineage


def _says(run: RunInfo) -> str:
    """The error, or what it waits for, or the nodes that ran last and who runs it."""
    if run.error is not None:
        line = " ".join(run.error.split())
    elif run.waits:
        line = f"waits for {', '.join(map(repr, run.waits))}"
    else:
        line = ", ".join(run.nodes)
        line = f"{line} ({run.holder})" if run.status == "running" else line
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def _local(updated: float) -> str:
    return datetime.fromtimestamp(updated).astimezone().isoformat(" ", "seconds")
