"""A run as one HTML page that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from runner.cli.output import jsonable
from runner.debugger.show import named
from runner.report.values import FIRST, NOTHING, Entry, RunReport, route_text

if TYPE_CHECKING:
    from jinja2 import Template

LONGEST = 4000
"""Characters of a value in the page; of longer ones the beginning is shown."""
_WORDS = {
    "completed": "Completed.",
    "interrupted": "Waits for an answer.",
    "failed": "Failed.",
    "stalled": "Stalled: nothing could run any more.",
    "limit_reached": "Cut off by a limit.",
    "running": "Goes on right now.",
    "unfinished": "Unfinished: it was cut off, and can be gone on with.",
}


def page(report: RunReport) -> str:
    """The page as text."""
    info = report.info
    newest = report.entries[-1].moment if report.entries else None
    return _template().render(
        title=f"{info.graph or 'run'} {info.lineage}: {info.status}",
        report=report,
        info=info,
        words=_WORDS[info.status],
        began=_time(info.began),
        updated=_time(info.updated),
        seconds=_took(report.seconds),
        route=route_text(report.route),
        questions=[
            {"key": one.key, "node": one.node, "prompt": _shown(one.prompt)}
            for one in (newest.waits if newest is not None else ())
            if one.kind == "ask"
        ],
        rows=list(_rows(report)),
        state=[(name, _shown(value)) for name, value in report.state.items() if value not in NOTHING],
        empty=[name for name, value in report.state.items() if value in NOTHING],
    )


@cache
def _template() -> Template:
    """The template. Everything that comes from a run is escaped, but for the picture, which is made here."""
    import jinja2

    loader = jinja2.PackageLoader("runner.report", "templates")
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True).get_template("run.html")


def _rows(report: RunReport) -> Iterator[dict[str, Any]]:
    for number, entry in enumerate(report.entries):
        moment = entry.moment
        yield {
            "gap": report.left_out if report.left_out and number == FIRST else 0,
            "step": moment.step if moment.source == "step" else "",
            "depth": min(entry.depth, 6),
            "what": named(moment.ran) if moment.source == "step" else moment.source,
            "error": moment.error or "",
            "names": ", ".join(entry.changes),
            "took": "" if entry.took is None else _took(entry.took),
            "id": moment.id,
            "at": _time(moment.created_at),
            "open": bool(moment.error),
            "writes": [_write(one) for one in entry.writes],
            "changes": [_change(name, entry) for name in entry.changes],
            "next": ", ".join(one.activation for one in moment.coming[:12]),
            "waits": moment.waits,
        }


def _write(one: Any) -> dict[str, Any]:
    parts = [
        {"name": name, "kind": _KINDS[part.kind], "value": _shown(part.value)} for name, part in one.fields.items()
    ]
    return {"activation": one.activation, "parts": parts}


_KINDS = {"value": "", "items": "added", "keys": "entries", "unknown": "one of several writers; its part isn't known"}


def _change(name: str, entry: Entry) -> dict[str, Any]:
    change = entry.changes[name]
    if change.added is not None:
        return {"name": name, "before": None, "after": _shown(change.added)}
    return {"name": name, "before": _shown(change.before), "after": _shown(change.after)}


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(jsonable(value), indent=2, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... ({len(text)} characters)"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "milliseconds").replace("+00:00", " UTC")


def _took(seconds: float) -> str:
    return (
        f"{seconds * 1000:.0f} ms"
        if seconds < 1
        else f"{seconds:.1f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
    )
