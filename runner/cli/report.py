"""The command that makes reports of runs: report."""

from __future__ import annotations

from pathlib import Path

import anyio

from graphagent.errors import UsageError
from runner.cli.opening import stored_graph, stored_runs
from runner.cli.output import Output
from runner.cli.report_options import ReportOptions
from runner.report.gather import gather
from runner.report.junit import junit
from runner.report.markdown import markdown
from runner.report.page import page
from runner.report.values import RunReport, route_text


def report(options: ReportOptions, output: Output) -> int:
    """Write the files that were asked for, or print Markdown."""
    made = anyio.run(_gathered, options)
    files: dict[str, str] = {}
    for form, path, make in (
        ("html", options.html, page),
        ("markdown", options.markdown, markdown),
        ("junit", options.junit, junit),
    ):
        if path is not None:
            _write(path, make(made))
            files[form] = path
    document = {
        "lineage": made.info.lineage,
        "namespace": made.info.namespace,
        "graph": made.info.graph,
        "status": made.info.status,
        "why": made.info.error,
        "waits": made.info.waits,
        "steps": made.info.step,
        "route": route_text(made.route),
        "next": made.advice,
        "files": files,
    }
    output.show(document, "\n".join(f"wrote {path}" for path in files.values()) or markdown(made).rstrip("\n"))
    return 0


async def _gathered(options: ReportOptions) -> RunReport:
    if options.graph is None:
        async with stored_runs(options) as store:
            return await gather(store, options.lineage, options.namespace)
    async with stored_graph(options) as executor:
        return await gather(executor.store, options.lineage, options.namespace, executor=executor, target=options.graph)


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"'{path}' can't be written: {error.strerror}; give another file") from error
