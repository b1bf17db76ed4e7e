"""The style sheet inside a picture: one drawing for light and dark, by custom properties.

A picture follows the reader's colour scheme; `data-theme="light"` or `"dark"`, on the picture or on anything around it,
overrides that. A page may set the properties itself. Each colour also stands plain, for programs that draw SVG but know
no custom properties.
"""

from __future__ import annotations

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "page": "#ffffff",
    "text": "#111418",
    "line": "#4a4f57",
    "error": "#b3261e",
    "taken": "#0b57d0",
    "node": "#f3f4f6",
    "interrupt": "#fff2cc",
    "model": "#e4ecfb",
    "inner": "#e6f4ea",
    "next": "#0b57d0",
    "running": "#0b57d0",
    "done": "#146c2e",
    "failed": "#b3261e",
    "waiting": "#8a5000",
    "held": "#6b3fa0",
    "idle": "#4a4f57",
    "running-fill": "#d3e3fd",
    "failed-fill": "#fce0de",
    "waiting-fill": "#ffe8b8",
    "on-badge": "#ffffff",
    "stop": "#c5221f",
    "selected": "#111418",
    "focus": "#0b57d0",
}
"""Colours by what they are for. Contrast of text with what is below it: 4.5; of strokes with what is beside: 3."""

DARK: Mapping[str, str] = {
    "page": "#16181c",
    "text": "#eceef1",
    "line": "#a3a9b2",
    "error": "#ff8f85",
    "taken": "#8ab4f8",
    "node": "#2a2d33",
    "interrupt": "#453a17",
    "model": "#24324d",
    "inner": "#1f3a29",
    "next": "#8ab4f8",
    "running": "#8ab4f8",
    "done": "#81c995",
    "failed": "#ff8f85",
    "waiting": "#fdd663",
    "held": "#cfb0ff",
    "idle": "#a3a9b2",
    "running-fill": "#1c3a63",
    "failed-fill": "#5a2320",
    "waiting-fill": "#574400",
    "on-badge": "#16181c",
    "stop": "#ff6b60",
    "selected": "#eceef1",
    "focus": "#8ab4f8",
}

KIND_FILLS: Mapping[str, str] = {
    "interrupt": "interrupt", "llm": "model", "tools": "model", "agent": "inner", "subgraph": "inner"
}  # fmt: skip
"""Which colour the nodes of a kind are filled with, if it isn't that of plain ones."""
_FRAMED = ("next", "running", "done", "failed", "waiting", "held")
_FILLED = ("running", "failed", "waiting")


def _colours(colours: Mapping[str, str]) -> str:
    return "".join(f"--ga-{name}:{value};" for name, value in colours.items())


def _paint(property: str, name: str) -> str:
    return f"{property}:{LIGHT[name]};{property}:var(--ga-{name})"


def _rules() -> list[str]:
    """Of the selectors that follow `.ga-picture`, with what they do."""
    return [
        f"{{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;{_paint('background', 'page')}}}",
        f" text{{{_paint('fill', 'text')};font-size:12px;text-anchor:middle}}",
        f" .ground,.ga-picture .edge rect{{{_paint('fill', 'page')}}}",
        f" .edge{{{_paint('stroke', 'line')};fill:none;stroke-width:1.3}}",
        f" .edge .tip{{stroke:none;{_paint('fill', 'line')}}}",
        " .edge rect{stroke:none}",
        " .edge text{font-size:10px;stroke:none}",
        " .edge[data-kind=join]{stroke-width:2.6}",
        " .edge[data-kind=jump] .way,.ga-picture .edge[data-kind=map] .way{stroke-dasharray:6 4}",
        f" .edge[data-kind=error]{{{_paint('stroke', 'error')};stroke-dasharray:2 3}}",
        f" .edge[data-kind=error] .tip{{{_paint('fill', 'error')}}}",
        f" .edge[data-taken]{{{_paint('stroke', 'taken')}}}",
        f" .edge[data-taken] .tip{{{_paint('fill', 'taken')}}}",
        f" .node .box{{{_paint('fill', 'node')};{_paint('stroke', 'line')};stroke-width:1.3}}",
        f" .node .core{{{_paint('fill', 'line')};stroke:none}}",
        f" .node .inside{{fill:none;{_paint('stroke', 'line')};stroke-width:.8}}",
        *(f" .node[data-kind={kind}] .box{{{_paint('fill', fill)}}}" for kind, fill in KIND_FILLS.items()),
        *(f" .node[data-state={state}] .box{{{_paint('stroke', state)};stroke-width:2.4}}" for state in _FRAMED),
        *(f" .node[data-state={state}] .box{{{_paint('fill', f'{state}-fill')}}}" for state in _FILLED),
        " .node[data-state=next] .box{stroke-dasharray:5 3}",
        f" .badge{{stroke:none;{_paint('fill', 'on-badge')}}}",
        f" .badge text{{font-size:10px;{_paint('fill', 'on-badge')}}}",
        f" .badge .hollow{{fill:none;{_paint('stroke', 'on-badge')};stroke-width:1.8}}",
        f" .badge rect{{{_paint('fill', 'idle')};{_paint('stroke', 'page')};stroke-width:1}}",
        *(f" .node[data-state={state}] .badge rect{{{_paint('fill', state)}}}" for state in _FRAMED),
        f" .stop{{display:none;{_paint('fill', 'stop')};{_paint('stroke', 'page')};stroke-width:1.5}}",
        " .breakpoint .stop{display:inline}",
        " .ring{fill:none;stroke:none;stroke-width:1.6}",
        f" .selected .ring{{{_paint('stroke', 'selected')}}}",
        " .node[role=button]{cursor:pointer}",
        " .node:focus{outline:none}",
        f" .node:focus-visible .ring{{{_paint('stroke', 'focus')};stroke-width:3}}",
    ]


def style_sheet() -> str:
    """The text of the style element. All selectors have the class of the picture, so that a page that has a picture in
    it is left alone; twice where the picture's own theme outdoes that of what is around it."""
    themes = [
        f".ga-picture{{{_colours(LIGHT)}}}",
        f"@media (prefers-color-scheme:dark){{.ga-picture{{{_colours(DARK)}}}}}",
        f"[data-theme=light] .ga-picture,.ga-picture.ga-picture[data-theme=light]{{{_colours(LIGHT)}}}",
        f"[data-theme=dark] .ga-picture,.ga-picture.ga-picture[data-theme=dark]{{{_colours(DARK)}}}",
    ]
    return "\n".join([*themes, *(f".ga-picture{rule}" for rule in _rules())])
