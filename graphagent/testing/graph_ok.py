"""A graph as an assertion of a test."""

from __future__ import annotations

from collections.abc import Iterable

from graphagent.graph.builder import StateGraph
from graphagent.graph.compiled import CompiledGraph
from graphagent.validation.facts import Bounds, Facts
from graphagent.validation.report import Diagnostic, Report, Severity
from graphagent.validation.validate import validate


def assert_graph_ok(
    graph: CompiledGraph | StateGraph,
    *,
    fail_on: Severity = "error",
    ignore: Iterable[str] = (),
    facts: Facts | None = None,
    bounds: Bounds | None = None,
) -> Report:
    """Raise AssertionError with the findings if a graph has any of this severity or worse, or could not be decided.

    Returns the report. `ignore`, `facts` and `bounds` as for `graphagent.validation.validate`.
    """
    __tracebackhide__ = True
    report = validate(graph, ignore=ignore, facts=facts, bounds=bounds)
    bad = report.at_least(fail_on)
    if bad:
        found = "\n".join(_told(finding) for finding in bad)
        raise AssertionError(f"graph '{report.graph}' has {len(bad)} finding(s):\n{found}")
    if not report.complete or not report.fingerprint:  # without one it could not even be compiled
        why = "; ".join(finding.message for finding in report.findings if finding.code == "GA309")
        why = why or "errors of its definition are ignored, and nothing else was looked at"
        raise AssertionError(f"graph '{report.graph}' was not decided: {why}")
    return report


def _told(finding: Diagnostic) -> str:
    lines = [f"{finding.code} {finding.severity} [{finding.graph}] {finding.message}"]
    lines += [f"  at {finding.where}"] if finding.where.file else []
    lines += [f"  trace: {finding.script}"] if finding.script else []
    lines += [f"  fix: {finding.fix}"] if finding.fix else []
    return "\n".join(lines)
