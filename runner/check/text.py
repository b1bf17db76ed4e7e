"""A check as text for a person: place, finding, trace, drawing, mend, and how to see it happen."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from graphagent.graph.names import END, START
from graphagent.validation import Diagnostic, TraceStep
from graphagent.validation.report import Severity
from runner.check.drawing import columns_of, drawing, graph_named
from runner.check.judge import Checked, Outcome, Verdict
from runner.check.places import column

Paint = Callable[[str, str], str]
"""`paint(text, style)`: the text as the terminal shows it in that style."""

_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def unpainted(text: str, style: str) -> str:
    """The text as it is, for what is no terminal."""
    return text


def painted(text: str, style: str) -> str:
    """The text with the codes that colour it on a terminal."""
    from rich.color import ColorSystem  # rich is slow to import
    from rich.style import Style

    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def text_report(outcome: Outcome, paint: Paint = unpainted) -> str:
    """All findings, one paragraph each, then a line for each graph and one for all."""
    parts = []
    for failure in outcome.failures:
        parts.append(f"{failure.target}: {paint('not checked', _STYLES['error'])}: {failure.message}")
    for one in outcome.checked:
        parts += ["\n".join(_paragraph(finding, one, outcome, paint)) for finding in one.report.findings]
    lines = [_graph_line(one, outcome, paint) for one in outcome.checked]
    return "\n\n".join([*parts, "\n".join([*lines, _last_line(outcome, paint)])])


def finding_text(finding: Diagnostic, one: Checked, outcome: Outcome) -> str:
    """One finding without colours."""
    return "\n".join(_paragraph(finding, one, outcome, unpainted))


def _paragraph(finding: Diagnostic, one: Checked, outcome: Outcome, paint: Paint) -> Iterator[str]:
    where = finding.where
    place = f"{where.file}:{where.line}:{column(where, outcome.base)}: " if where.file else ""
    severity = paint(f"{finding.code} {finding.severity}", _STYLES[finding.severity])
    inferred = " (seen in source code, not declared)" if finding.inferred else ""
    yield f"{paint(place, 'bold')}{severity} [{finding.graph}] {finding.message}{inferred}"
    yield from (f"    {line}" for line in trace_lines(finding.trace))
    graph = one.graph if finding.trace else None
    inner = graph_named(graph, finding.graph) if graph is not None else None
    if inner is not None:
        styles = {"taken": "bold", "missing": _STYLES["error"], "": "dim"}
        yield "    the way there:"
        yield from (f"      {paint(drawn.text, styles[drawn.mark])}" for drawn in drawing(inner, finding.trace))
    if finding.fix:
        yield f"    fix: {paint(finding.fix, 'green')}"
    yield from (f"    related: {text}" for text in finding.related)
    if command := reproducing(finding, one):
        yield f"    reproduce: {command}"


def trace_lines(trace: tuple[TraceStep, ...]) -> list[str]:
    """A trace as aligned lines: what ran and chose what, what could run then, and what the joins held."""
    names = [_picked(step) for step in trace]
    most = max(map(columns_of, names), default=0)
    return [
        f"step {step.step}  {name}{' ' * (most - columns_of(name))}  {_around(step)}"
        for step, name in zip(trace, names, strict=True)
    ]


def _picked(step: TraceStep) -> str:
    name = {START: "START", "": "end"}.get(step.node, step.node)
    return f"{name} ? {'END' if step.outcome == END else step.outcome}" if step.outcome else name


def _around(step: TraceStep) -> str:
    if not step.node:
        return step.note
    held = [f"'{join}' has {', '.join(have)}" for join, have in step.joins.items() if have]
    return "; ".join([*([step.note] if step.note else []), f"live: {', '.join(step.live)}", *held])


def reproducing(finding: Diagnostic, one: Checked) -> str:
    """The command that runs the trace in the real executor; empty where there is none."""
    if not finding.script or not one.candidate.replayable or finding.graph != one.report.graph:
        return ""
    return shlex.join(["graphagent", "simulate", one.candidate.target, "--script", finding.script])


def _graph_line(one: Checked, outcome: Outcome, paint: Paint) -> str:
    report = one.report
    result = outcome.result([one])
    style = {"clean": "green", "unknown": "yellow", "findings": _STYLES[report.worst or "info"]}[result]
    said = result if result != "findings" else ""
    counted = ", ".join(filter(None, [said, counts(list(report.findings))]))
    known = f", {one.known} known" if one.known else ""
    allowed = f", {len(report.allowed)} allowed" if report.allowed else ""
    return f"{one.candidate.target} [{report.graph}]: {paint(counted, style)}{known}{allowed}; {_stats(one)}"


def _stats(one: Checked) -> str:
    stats = one.report.stats
    if stats.decided_by == "definition":
        return "the definition has errors, behaviour was not looked at"
    by = {"reduction": "proved by reduction", "rank": "decided by the rank theorem", "search": "decided by search"}
    how = by.get(stats.decided_by, "not decided: a bound was hit")
    supersteps = f", {stats.superstep_states} in supersteps" if stats.superstep_states else ""
    return f"{how}, {stats.states} state(s) explored{supersteps}, {stats.seconds:.2f} s"


def _last_line(outcome: Outcome, paint: Paint) -> str:
    parts = [f"{len(outcome.checked)} graph(s)", counts(list(outcome.findings)) or "no findings"]
    unknown = sum(not one.decided for one in outcome.checked)
    parts += [f"{unknown} unknown"] if unknown else []
    parts += [f"{len(outcome.failures)} target(s) not checked"] if outcome.failures else []
    parts += [f"{outcome.gone} known finding(s) gone: --write-baseline forgets them"] if outcome.gone else []
    style = "green" if outcome.verdict is Verdict.CLEAN else "bold"
    return paint(", ".join(parts), style)


def counts(findings: list[Diagnostic]) -> str:
    """How many of each severity, in words; empty without any."""
    words = []
    for severity in ("error", "warning", "info"):
        number = sum(finding.severity == severity for finding in findings)
        if number:
            words.append(f"{number} {severity}{'s' if number > 1 and severity != 'info' else ''}")
    return ", ".join(words)
