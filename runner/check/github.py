"""A check as commands of a GitHub workflow, which show findings at their lines, and as a summary of the job."""

from __future__ import annotations

from collections.abc import Mapping

from graphagent.validation import Diagnostic
from graphagent.validation.report import Severity
from runner.check.judge import Checked, Outcome
from runner.check.places import column
from runner.check.text import counts, reproducing, trace_lines

MOST = 10
"""Commands of one kind that GitHub shows of a step."""

_COMMANDS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


def github_commands(outcome: Outcome) -> str:
    """A command a line, worst first, at most ten of a kind, and a line that says how many there are in all."""
    lines = [
        _command("error", {"title": "not checked"}, f"{failure.target}: {failure.message}")
        for failure in outcome.failures[:MOST]
    ]
    room = dict.fromkeys(_COMMANDS, MOST) | {"error": MOST - len(lines)}
    pairs = [(finding, one) for one in outcome.checked for finding in one.report.findings]
    left_out = len(outcome.failures) - len(lines)
    for severity, command in _COMMANDS.items():
        found = [(finding, one) for finding, one in pairs if finding.severity == severity]
        lines += [
            _command(command, _properties(finding, outcome), _message(finding, one))
            for finding, one in found[: room[severity]]
        ]
        left_out += max(len(found) - room[severity], 0)
    return "\n".join([*lines, _summary_line(outcome, left_out)])


def _summary_line(outcome: Outcome, left_out: int) -> str:
    parts = [f"graphagent check: {len(outcome.checked)} graph(s)", counts(list(outcome.findings)) or "no findings"]
    unknown = sum(not one.decided for one in outcome.checked)
    parts += [f"{unknown} unknown"] if unknown else []
    parts += [f"{len(outcome.failures)} target(s) not checked"] if outcome.failures else []
    parts += [f"{left_out} of them not shown above"] if left_out else []
    return ", ".join(parts)


def _properties(finding: Diagnostic, outcome: Outcome) -> dict[str, str]:
    where = finding.where
    place = {"file": where.file, "line": str(where.line), "col": str(column(where, outcome.base))} if where.file else {}
    return {**place, "title": finding.code}


def _message(finding: Diagnostic, one: Checked) -> str:
    command = reproducing(finding, one)
    parts = [f"[{finding.graph}] {finding.message}", *trace_lines(finding.trace)]
    parts += [f"fix: {finding.fix}"] if finding.fix else []
    parts += [f"reproduce: {command}"] if command else []
    return "\n".join(parts)


def _command(name: str, properties: Mapping[str, str], message: str) -> str:
    said = ",".join(f"{key}={_escaped(value, property=True)}" for key, value in properties.items())
    return f"::{name} {said}::{_escaped(message)}"


def _escaped(text: str, *, property: bool = False) -> str:
    """The text as the runner of GitHub unescapes it."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if property else text


def github_summary(outcome: Outcome) -> str:
    """A Markdown table of all findings, for `$GITHUB_STEP_SUMMARY`."""
    rows = ["| severity | rule | graph | where | what |", "|---|---|---|---|---|"]
    for finding in outcome.findings:
        where = f"{finding.where.file}:{finding.where.line}" if finding.where.file else ""
        cells = [finding.severity, finding.code, finding.graph, where, finding.message]
        rows.append(f"| {' | '.join(_cell(text) for text in cells)} |")
    for failure in outcome.failures:
        rows.append(f"| not checked | | | {_cell(failure.target)} | {_cell(failure.message)} |")
    table = [*rows, ""] if len(rows) > 2 else []
    return "\n".join(["### graphagent check", "", *table, _summary_line(outcome, 0), ""])


def _cell(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")
    return " ".join(escaped.splitlines())
