"""A run as Markdown: for a ticket, or as the summary of a job in CI."""

from __future__ import annotations

from collections.abc import Iterator

from runner.cli.output import short
from runner.report.values import Entry, RunReport, route_text

ROWS = 30
"""Rows of the table of steps at most; the first and the last of a longer run are shown."""
_SIGNS = {
    "completed": "✅",
    "interrupted": "⏸️",
    "failed": "❌",
    "stalled": "❌",
    "limit_reached": "⚠️",
    "running": "▶️",
    "unfinished": "⚠️",
}
_MEANS = str.maketrans({**{sign: f"\\{sign}" for sign in "\\`*_[]#"}, "<": "&lt;", ">": "&gt;"})


def markdown(report: RunReport) -> str:
    """The document."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: RunReport) -> Iterator[str]:
    info = report.info
    yield f"## {_SIGNS[info.status]} {_plain(info.graph or 'run')} `{_code(info.lineage)}`: {info.status}"
    yield ""
    if info.error:
        yield f"**Why:** {_plain(info.error)}"
        yield ""
    if info.waits:
        yield f"**Waits for:** {', '.join(f'`{_code(key)}`' for key in info.waits)}"
        yield ""
    yield f"**Way:** {_plain(route_text(report.route))}"
    yield ""
    yield f"**Steps:** {info.step} in {report.seconds:.1f} s, {info.rows} checkpoints."
    yield ""
    yield f"**Next:** `{_code(report.advice)}`"
    yield ""
    yield "| step | nodes | changed | checkpoint |"
    yield "|---:|---|---|---|"
    shown = list(report.entries)
    if len(shown) > ROWS:
        for entry in shown[: ROWS // 2]:
            yield _row(entry)
        yield f"| | _{len(shown) + report.left_out - ROWS} more_ | | |"
        shown = shown[-(ROWS // 2) :]
    for entry in shown:
        yield _row(entry)


def _row(entry: Entry) -> str:
    moment = entry.moment
    what = _cell(", ".join(moment.ran)) if moment.source == "step" else f"_{moment.source}_"
    indent = "&nbsp;" * 4 * entry.depth
    changes = ", ".join(f"{name}: {short(change.after)[:60]}" for name, change in entry.changes.items())
    told = moment.error or changes
    return f"| {moment.step} | {indent}{what} | {_cell(told)} | `{_code(moment.id)}` |"


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|").replace("\n", " ")


def _plain(text: str) -> str:
    """Text whose signs mean nothing to Markdown."""
    return " ".join(text.translate(_MEANS).split())


def _code(text: str) -> str:
    return text.replace("`", "'").replace("|", "\\|")
