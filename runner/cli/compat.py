"""The command that says what a change of a graph does to unfinished runs: compat."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio

from graphagent import Executor
from graphagent.errors import UsageError, alternatives
from graphagent.validation.compat import CompatReport, compat_runs, gathered
from graphagent.validation.compat import compat as judge_change
from graphagent.validation.document import read_document
from graphagent.validation.in_flight import Verdict
from graphagent.validation.lock import locked_version, read_lock
from graphagent.validation.mapping import NO_RENAMES, Renames, read_renames
from graphagent.validation.report import Diagnostic
from graphagent.validation.standing import read_standing
from graphagent.validation.version import Version
from runner.cli.change_options import CompatOptions
from runner.cli.opening import stored_runs
from runner.cli.output import Output
from runner.cli.target import load_graph

CAN_GO_ON, STRANDED, UNKNOWN = 0, 1, 3


def compat(options: CompatOptions, output: Output) -> int:
    """Class a change, and name the places or the runs that break."""
    if options.db and options.checkpoint:
        raise UsageError("--db and --checkpoint can't both be had: the runs are in a store, or one is in a file")
    old, new = _version(options.old), _version(options.new)
    renames = None if options.map_file is None else read_renames(_json(options.map_file, "a map of renames"), old)
    report = _report(options, old, new, renames)
    output.show(report.to_json(), "\n".join(_text(report, options)))
    if report.verdict == "blocking":
        return STRANDED
    return CAN_GO_ON if report.complete else UNKNOWN


def _report(options: CompatOptions, old: Version, new: Version, renames: Renames | None) -> CompatReport:
    said = renames or NO_RENAMES
    if options.checkpoint is not None:
        standing = read_standing(_json(options.checkpoint, "a checkpoint"))
        return compat_runs(old, new, {Path(options.checkpoint).stem: standing}, renames=said)
    if options.db:
        return gathered(old, new, anyio.run(_stored, options, old, new, renames), said)
    return judge_change(old, new, renames=said, at=options.at.value, engine=options.engine.value)


async def _stored(options: CompatOptions, old: Version, new: Version, renames: Renames | None) -> Mapping[str, Verdict]:
    async with stored_runs(options) as store:
        return await Executor(new.graph, store).stranded(old=old, renames=renames)


def _version(target: str) -> Version:
    """The version that a target names. Raises UsageError."""
    place, mark, name = target.partition("#")
    if mark:
        return locked_version(place, name)
    if not target.endswith(".json"):
        return Version.of(load_graph(target))
    if _is_lock(target):
        names = list(read_lock(target))
        if len(names) != 1:
            raise UsageError(f"'{target}' locks {len(names)} graphs: write '{target}#NAME'; {alternatives('', names)}")
        return locked_version(target, names[0])
    return Version.read(read_document(target), path=target)


def _is_lock(path: str) -> bool:
    content = _json(path, "a graph")
    return isinstance(content, dict) and isinstance(content.get("graphs"), dict) and "nodes" not in content


def _json(path: str, what: str) -> Any:
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' can't be read as the JSON of {what}: {error}") from error


def _text(report: CompatReport, options: CompatOptions) -> Iterator[str]:
    counted = report.situations
    what = "stored runs" if options.db else "runs" if options.checkpoint else "places where a run can be stored"
    yield f"{report.verdict}: from {report.old} to {report.new}"
    yield (
        f"  {counted.total} {what}: {counted.resume} go on, {counted.migrate} go on by a rename or migration, "
        f"{counted.blocked} can't go on"
    )
    if not report.complete:
        yield "  a bound was hit: not every place was looked at"
    for finding in report.findings:
        yield from _finding(finding)
    if options.db:
        yield from _runs(report)


def _finding(finding: Diagnostic) -> Iterator[str]:
    place = f"{finding.where}: " if finding.where.file else ""
    yield f"{place}{finding.code} {finding.severity}: {finding.message}"
    if finding.severity != "info" and finding.trace:
        yield f"    a way there: {finding.script or 'the start of a run'}"
    yield from (f"    {text}" for text in finding.related)
    if finding.fix:
        yield f"    fix: {finding.fix}"


def _runs(report: CompatReport) -> Iterator[str]:
    """The runs that can't go on, grouped by what stands in the way."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, verdict in report.runs.items():
        if verdict.blocked:
            reasons = [f"{f.code} {f.message}" for f in verdict.findings if f.severity == "error"]
            groups.setdefault(tuple(dict.fromkeys(reasons)), []).append(name)
    for shared, names in groups.items():
        yield f"stranded, {len(names)}: {', '.join(sorted(names))}"
        yield from (f"    {reason}" for reason in shared)
