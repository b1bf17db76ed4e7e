"""A graph as an SVG picture that needs nothing else: no program, no font, no style sheet."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.draw import Line, lines
from graphagent.graph.names import END, START
from runner.cli.layout import NODE_HEIGHT, Edge, Point, layout

MARGIN, DOT = 16.0, NODE_HEIGHT - 4
_NODE_LETTER, _LABEL_LETTER = 7.3, 6.1  # widths of a letter of the fonts of nodes and labels, in pixels
_STROKES = {
    "join": 'stroke-width="2.6"',
    "jump": 'stroke-dasharray="6 4"',
    "map": 'stroke-dasharray="6 4"',
    "error": 'stroke="#b3261e" stroke-dasharray="2 4"',
}
_FILLS = {"interrupt": "#fff2cc", "llm": "#e4ecfb", "tools": "#e4ecfb", "agent": "#e6f4ea", "subgraph": "#e6f4ea"}
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.0f} {h:.0f}" \
font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace">
<title>{name}</title>
<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="10" \
markerHeight="10" orient="auto"><path d="M0 1 L10 5 L0 9 z" fill="#444"/></marker></defs>
<rect width="100%" height="100%" fill="white"/>
<g transform="translate({m} {m})">"""


def svg(graph: CompiledGraph) -> str:
    """The picture as text. Joins are thick lines, jumps dashed, errors dotted and red; interrupts are yellow."""
    drawn = list(lines(graph))
    names = [START, *graph.names, *([END] if any(line.target == END for line in drawn) else [])]
    widths = {name: DOT if name in (START, END) else _width(name, _NODE_LETTER) + 28 for name in names}
    edges = [Edge(line.source, line.target, _label_width(line)) for line in drawn]
    made = layout(widths, edges)
    out = [_HEAD.format(w=made.width + 2 * MARGIN, h=made.height + 2 * MARGIN, m=MARGIN, name=escape(graph.name))]
    for line, way in zip(drawn, made.ways, strict=True):
        stroke = _STROKES.get(line.kind, "")
        colour = "" if "stroke=" in stroke else 'stroke="#444" '
        out.append(f'<path d="{_curve(way)}" fill="none" {colour}{stroke} marker-end="url(#arrow)"/>')
    for line, place in zip(drawn, made.labels, strict=True):
        if text := _label(line):
            out += [_backing(place, _label_width(line)), _text(text, place, 10)]
    out += [_node(graph, name, made.nodes[name], widths[name]) for name in names]
    return "\n".join([*out, "</g>", "</svg>"]) + "\n"


def _label(line: Line) -> str:
    return f"error: {line.label}" if line.kind == "error" else line.label


def _label_width(line: Line) -> float:
    text = _label(line)
    return _width(text, _LABEL_LETTER) + 6 if text else 0.0


def _width(text: str, letter: float) -> float:
    """The width of a text in pixels; letters of East Asian scripts are twice as wide."""
    return letter * sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def _curve(way: Sequence[Point]) -> str:
    """A smooth path through the points, upright at each of them; a loop is a path at the side of its node."""
    (x, y), rest = way[0], way[1:]
    if len(way) == 4 and way[0][0] == way[3][0]:
        points = " ".join(f"{px:.1f} {py:.1f}" for px, py in rest)
        return f"M{x:.1f} {y:.1f} C{points}"
    path = [f"M{x:.1f} {y:.1f}"]
    for px, py in rest:
        middle = (y + py) / 2
        path.append(f"C{x:.1f} {middle:.1f} {px:.1f} {middle:.1f} {px:.1f} {py:.1f}")
        x, y = px, py
    return " ".join(path)


def _text(text: str, place: Point, size: int) -> str:
    x, y = place
    return (
        f'<text x="{x:.1f}" y="{y + size * 0.36:.1f}" font-size="{size}" text-anchor="middle" fill="#111">'
        f"{escape(text)}</text>"
    )


def _backing(place: Point, width: float) -> str:
    x, y = place
    return f'<rect x="{x - width / 2:.1f}" y="{y - 7:.1f}" width="{width:.1f}" height="14" fill="white"/>'


def _node(graph: CompiledGraph, name: str, place: Point, width: float) -> str:
    x, y = place
    if name in (START, END):
        ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT / 2}" fill="white" stroke="#444" stroke-width="1.5"/>'
        inner = "" if name == START else f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT / 2 - 5}" fill="#444"/>'
        return f"<g><title>{escape(name)}</title>{ring}{inner}</g>"
    node = graph.nodes[name]
    left, top, h = x - width / 2, y - NODE_HEIGHT / 2, NODE_HEIGHT
    style = f'fill="{_FILLS.get(node.kind, "#f4f4f4")}" stroke="#444" stroke-width="1.2"'
    if node.kind == "interrupt":
        corners = [(left + 10, top), (left + width - 10, top), (left + width, y)]
        corners += [(left + width - 10, top + h), (left + 10, top + h), (left, y)]
        shape = f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in corners)}" {style}/>'
    else:
        shape = f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{h}" rx="6" {style}/>'
    if node.kind in ("subgraph", "agent", "map"):  # a frame inside the frame: there is more in it
        shape += f'<rect x="{left + 4:.1f}" y="{top + 4:.1f}" width="{width - 8:.1f}" height="{h - 8}" rx="3" \
fill="none" stroke="#999"/>'
    about = escape(f"{node.kind}: {node.description}" if node.description else node.kind)
    return f"<g><title>{about}</title>{shape}{_text(name, place, 12)}</g>"
