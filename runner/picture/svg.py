"""A graph as an SVG picture that needs nothing else: no program, no font, no style sheet of its own.

Each node is a group with `data-node`, each edge one with `data-source` and `data-target`, so that a page can tell them
apart; no id is used, so that a page can hold several pictures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from graphagent.errors import UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.draw import Line, lines
from graphagent.graph.names import END, START
from runner.picture.layout import NODE_HEIGHT, Edge, Point, layout
from runner.picture.marks import IDLE, Mark, badge, count_words, edge_width, words
from runner.picture.ranks import turned
from runner.picture.style import style_sheet
from runner.picture.text import cut, safe, text_width

MARGIN, DOT, TIP = 18.0, NODE_HEIGHT - 4, 8.0
NODE_COLUMNS, LABEL_COLUMNS = 36, 28
"""Names and labels that are longer are cut; the whole text is in the title."""
_NODE_LETTER, _LABEL_LETTER = 7.3, 6.1  # widths of a letter of the fonts of nodes and labels, in pixels
_PORT, _PORTS = 12.0, 24  # room for an edge at the side of a node, and for how many a node is widened
_CORNER = 16.0  # how far from the corners of a node edges stay, in pixels: a badge may be there
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" class="ga-picture"{theme} width="{w:.0f}" height="{h:.0f}" \
viewBox="0 0 {w:.0f} {h:.0f}" role="group" aria-label="{name}">
<title>{name}</title>
<style>
{style}
</style>
<rect class="ground" width="100%" height="100%"/>
<g transform="translate({m:.0f} {m:.0f})">"""


class Shown(NamedTuple):
    """What a picture shows beside the graph; without `marks` there are no badges."""

    marks: Mapping[str, Mark] | None
    edge_marks: Mapping[tuple[str, str], int]
    breakpoints: Set[str]
    selected: str | None


def picture(
    graph: CompiledGraph,
    marks: Mapping[str, Mark] | None = None,
    *,
    edge_marks: Mapping[tuple[str, str], int] | None = None,
    breakpoints: Set[str] = frozenset(),
    selected: str | None = None,
    theme: str | None = None,
) -> str:
    """The picture as SVG text; the same for the same input.

    Joins are thick lines, jumps dashed, errors dotted and red; interrupts are yellow. `marks`: the state of nodes, by
    id; None for a picture of the graph alone, an empty mapping for one in which all are idle and that `mark_patch` can
    change. `edge_marks`: how often an edge from one node to another was taken. `breakpoints`: nodes with a red dot.
    `selected`: a node with a ring. `theme`: "light" or "dark", else the reader's own. Raises UsageError for a node or a
    theme that isn't one.
    """
    shown = Shown(marks, edge_marks or {}, breakpoints, selected)
    drawn = list(lines(graph))
    names = [START, *graph.names, *([END] if any(line.target == END for line in drawn) else [])]
    _check(graph, names, drawn, shown, theme)
    widths, flats = _widths(graph, names, drawn)
    made = layout(widths, [Edge(line.source, line.target, _label_width(line)) for line in drawn], flats)
    size = {"w": made.width + 2 * MARGIN, "h": made.height + 2 * MARGIN, "m": MARGIN}
    chosen = f' data-theme="{theme}"' if theme else ""
    out = [_HEAD.format(**size, name=safe(graph.name), theme=chosen, style=style_sheet())]
    out += [_edge(*parts, shown) for parts in zip(drawn, made.ways, made.labels, strict=True)]
    out += [_node(graph, name, made.nodes[name], widths[name], shown) for name in names]
    return "\n".join([*out, "</g>", "</svg>"]) + "\n"


def _check(graph: CompiledGraph, names: Sequence[str], drawn: Sequence[Line], shown: Shown, theme: str | None) -> None:
    if theme not in (None, "light", "dark"):
        raise UsageError(f"'{theme}' is no theme of a picture; known: 'light', 'dark', or None for the reader's own")
    chosen = (*sorted(shown.breakpoints), *([shown.selected] if shown.selected is not None else ()))
    for known, asked in (({*names, END}, shown.marks or ()), (graph.nodes, chosen)):
        for name in asked:
            if name not in known:
                raise UsageError(f"'{name}' is no node of the graph in the picture; {alternatives(name, graph.names)}")
    pairs = {(line.source, line.target) for line in drawn}
    for source, target in shown.edge_marks:
        if (source, target) not in pairs:
            there = [end for start, end in pairs if start == source]
            raise UsageError(f"no edge from '{source}' to '{target}' is in the picture; {alternatives(target, there)}")


def _widths(
    graph: CompiledGraph, names: Sequence[str], drawn: Sequence[Line]
) -> tuple[dict[str, float], dict[str, float]]:
    """How wide each node is, and its straight part: there must be room for its name and its edges."""
    number = {name: i for i, name in enumerate(names)}
    back = turned(len(names), [(number[line.source], number[line.target]) for line in drawn])
    upper, lower = Counter[str](), Counter[str]()
    for i, line in enumerate(drawn):
        if line.source != line.target:
            (upper if i in back else lower)[line.source] += 1
            (lower if i in back else upper)[line.target] += 1
    widths: dict[str, float] = {}
    flats: dict[str, float] = {}
    for name in names:
        ports = min(max(upper[name], lower[name], 1), _PORTS)
        flats[name] = ports * _PORT
        if name in (START, END):
            widths[name] = DOT + (ports - 1) * _PORT
            continue
        text = text_width(cut(name, NODE_COLUMNS), _NODE_LETTER) + 28
        widths[name] = max(text, flats[name] + 2 * _CORNER)
        flats[name] = widths[name] - 2 * _CORNER
    return widths, flats


def _label(line: Line) -> str:
    return f"error: {line.label}" if line.kind == "error" else line.label


def _label_width(line: Line) -> float:
    text = cut(_label(line), LABEL_COLUMNS)
    return text_width(text, _LABEL_LETTER) + 6 if text else 0.0


def _edge(line: Line, way: Sequence[Point], place: Point | None, shown: Shown) -> str:
    taken = shown.edge_marks.get((line.source, line.target), 0)
    text = cut(_label(line), LABEL_COLUMNS)
    about = f"{line.source} to {line.target}, {line.kind}" + (f" '{_label(line)}'" if text else "") + count_words(taken)
    ends = f'data-source="{safe(line.source)}" data-target="{safe(line.target)}" data-kind="{line.kind}"'
    thick = f' data-taken="{taken}" style="stroke-width:{edge_width(taken)}"' if taken else ""
    drawn = _loop(way) if line.source == line.target else _curve(way)
    out = f'<g class="edge" {ends} data-label="{safe(_label(line))}"{thick}><title>{safe(about)}</title>'
    out += f'<path class="way" d="{drawn}"/><path class="tip" d="{_tip(way)}"/>'
    if text and place:
        x, y = place
        width = _label_width(line)
        out += f'<rect x="{x - width / 2:.1f}" y="{y - 7:.1f}" width="{width:.1f}" height="14"/>'
        out += f'<text x="{x:.1f}" y="{y + 3.6:.1f}">{safe(text)}</text>'
    return out + "</g>"


def _curve(way: Sequence[Point]) -> str:
    """A smooth path through the points, upright at each of them, that ends where the tip begins."""
    (x, y), last = way[0], way[-1]
    path = [f"M{x:.1f} {y:.1f}"]
    for px, py in [*way[1:-1], (last[0], last[1] + (TIP - 1 if way[-2][1] > last[1] else 1 - TIP))]:
        middle = (y + py) / 2
        straight = abs(px - x) < 0.1
        path.append(f"V{py:.1f}" if straight else f"C{x:.1f} {middle:.1f} {px:.1f} {middle:.1f} {px:.1f} {py:.1f}")
        x, y = px, py
    return " ".join(path)


def _loop(way: Sequence[Point]) -> str:
    """A way out of the side of a node and back, with round corners."""
    (side, up), (far, _), (_, down), _ = way
    out = f"M{side:.1f} {up:.1f} H{far - 6:.1f} Q{far:.1f} {up:.1f} {far:.1f} {up + 6:.1f}"
    return f"{out} V{down - 6:.1f} Q{far:.1f} {down:.1f} {far - 6:.1f} {down:.1f} H{side + TIP - 1:.1f}"


def _tip(way: Sequence[Point]) -> str:
    """The head of the arrow: a triangle at the end of the way."""
    (before, above), (x, y) = way[-2], way[-1]
    if above == y and before != x:
        return f"M{x:.1f} {y:.1f} l{TIP:.0f} -4 v8 z"
    back = TIP if above > y else -TIP
    return f"M{x:.1f} {y:.1f} l-4 {back:.0f} h8 z"


def _node(graph: CompiledGraph, name: str, place: Point, width: float, shown: Shown) -> str:
    mark = None if shown.marks is None else shown.marks.get(name, IDLE)
    kind, about = _about(graph, name)
    classes = ["node", *(["breakpoint"] if name in shown.breakpoints else [])]
    classes += ["selected"] if name == shown.selected else []
    said = safe(", ".join([about, *(words(mark) if mark else [])]))
    out = f'<g class="{" ".join(classes)}" data-node="{safe(name)}" data-kind="{safe(kind)}" data-about="{safe(about)}"'
    out += f' data-state="{mark.state}"' if mark else ""
    if name in graph.nodes:
        out += f' tabindex="0" role="button" aria-label="{said}"'
        out += ' aria-description="breakpoint"' if name in shown.breakpoints else ""
        out += ' aria-current="true"' if name == shown.selected else ""
    out += f' transform="translate({place[0]:.1f} {place[1]:.1f})"><title>{said}</title>'
    return out + _shape(kind, width) + _lettering(name, kind, width, mark) + "</g>"


def _about(graph: CompiledGraph, name: str) -> tuple[str, str]:
    """The kind of a node, and what is said of it whatever its state."""
    if name in (START, END):
        kind = "start" if name == START else "end"
        return kind, kind
    node = graph.nodes[name]
    return node.kind, f"{name}, {node.kind}" + (f": {node.description}" if node.description else "")


def _shape(kind: str, width: float) -> str:
    half, h = width / 2, NODE_HEIGHT / 2
    if kind in ("start", "end"):
        box = (
            f'<rect class="box" x="{-half:.1f}" y="{-DOT / 2:.1f}" width="{width:.1f}" height="{DOT}" rx="{DOT / 2}"/>'
        )
        core = (
            f'x="{5 - half:.1f}" y="{5 - DOT / 2:.1f}" width="{width - 10:.1f}" height="{DOT - 10}" rx="{DOT / 2 - 5}"'
        )
        return box + (f'<rect class="core" {core}/>' if kind == "end" else "")
    ring = f'<rect class="ring" x="{-half - 4:.1f}" y="{-h - 4}" width="{width + 8:.1f}" height="{2 * h + 8}" rx="9"/>'
    if kind == "interrupt":
        side = half - 10
        corners = f"{-side:.1f},{-h} {side:.1f},{-h} {half:.1f},0 {side:.1f},{h} {-side:.1f},{h} {-half:.1f},0"
        return f'{ring}<polygon class="box" points="{corners}"/>'
    box = f'<rect class="box" x="{-half:.1f}" y="{-h}" width="{width:.1f}" height="{2 * h}" rx="6"/>'
    if kind in ("subgraph", "agent", "map"):  # a frame inside the frame: there is more in it
        box += (
            f'<rect class="inside" x="{4 - half:.1f}" y="{4 - h}" width="{width - 8:.1f}" height="{2 * h - 8}" rx="3"/>'
        )
    return ring + box


def _lettering(name: str, kind: str, width: float, mark: Mark | None) -> str:
    out = "" if kind in ("start", "end") else f'<text y="4.3">{safe(cut(name, NODE_COLUMNS))}</text>'
    if kind not in ("start", "end"):
        corner = width / 2 - (10 if kind == "interrupt" else 0)
        out += f'<circle class="stop" cx="{-corner:.1f}" cy="{-NODE_HEIGHT / 2}" r="6"/>'
    if mark:
        out += f'<g class="badge" transform="translate({width / 2:.1f} {NODE_HEIGHT / 2})">{badge(mark)}</g>'
    return out
