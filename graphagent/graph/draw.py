"""The graph as a picture: Mermaid, DOT, networkx. All are drawn from the tables that the engine runs on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from graphagent.graph.definition import RouteDef
from graphagent.graph.names import END, START

if TYPE_CHECKING:
    import networkx

    from graphagent.graph.compiled import CompiledGraph

_SHAPES = {"interrupt": ('{{"', '"}}'), "map": ('[["', '"]]'), "subgraph": ('[["', '"]]'), "agent": ('[["', '"]]')}


class Line(NamedTuple):
    """A drawn transition. `kind`: edge, route, join, jump, map or error."""

    source: str
    target: str
    kind: str
    label: str = ""


def lines(graph: CompiledGraph) -> Iterator[Line]:
    """Every transition that a run can make, in order of declaration."""
    for name in graph.entry_points:
        yield Line(START, name, "edge")
    for i, name in enumerate(graph.names):
        for plain in graph.plain[i]:
            yield Line(name, graph.name_of(plain), "edge")
    for route in graph.routes:
        labels: dict[str, list[str]] = {}
        for label, target in _labelled(graph, route):
            text = str(getattr(label, "value", label))
            labels.setdefault(target, []).append(text if text != target else "")
        if route.default is not None:
            labels.setdefault(route.default, []).append("otherwise")
        for target, texts in labels.items():
            yield Line(route.source, target, "route", ", ".join(text for text in texts if text))
    for join in graph.joins:
        for source in join.sources:
            yield Line(source, join.target, "join", "" if join.mode == "all" else str(join.mode))
    for edge in graph.error_edges:
        yield Line(edge.source, edge.target, "error", ", ".join(sorted(kind.__name__ for kind in edge.errors)))
    yield from _jumps(graph)


def _labelled(graph: CompiledGraph, route: RouteDef) -> list[tuple[Any, str]]:
    """Labels with the nodes they lead to; a label that names no node takes the default."""
    return [(label, x) for label, x in (route.labels or {}).items() if x == END or x in graph.index]


def _jumps(graph: CompiledGraph) -> Iterator[Line]:
    static = _static(graph)
    for i, name in enumerate(graph.names):
        node = graph.defs[i]
        if node.kind == "map":
            yield Line(name, node.config["worker"], "map", "each")
            yield Line(name, node.config["collect"], "map", "none")
            continue
        destinations = node.destinations
        if destinations is not None:
            for label, target in destinations.items():
                yield Line(name, target, "jump", label if label != target else "")
            continue
        for index in dict.fromkeys(graph.jumps[i].labels.values()):
            if graph.name_of(index) not in static[name]:
                yield Line(name, graph.name_of(index), "jump")


def _static(graph: CompiledGraph) -> dict[str, set[str]]:
    """Per node where its plain edges, labelled routes and joins lead: no jump is drawn to those."""
    known: dict[str, set[str]] = {name: set() for name in graph.names}
    for edge in graph.edges:
        known[edge.source].add(edge.target)
    for route in graph.routes:
        known[route.source].update(target for _, target in _labelled(graph, route))
    for join in graph.joins:
        for source in join.sources:
            known[source].add(join.target)
    return known


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\n", "<br/>")


def mermaid(graph: CompiledGraph) -> str:
    """Mermaid flowchart text. Joins are thick lines, jumps and errors dotted ones."""
    ids = {name: f"n{i}" for i, name in enumerate(graph.names)} | {START: "start", END: "finish"}
    drawn = list(lines(graph))
    out = ["flowchart TD", "    start((start))"]
    for i, name in enumerate(graph.names):
        opening, closing = _SHAPES.get(graph.defs[i].kind, ('["', '"]'))
        out.append(f"    n{i}{opening}{_escaped(name)}{closing}")
    if any(line.target == END for line in drawn):
        out.append("    finish((end))")
    arrows = {"join": "==>", "jump": "-.->", "error": "-.->", "map": "-.->"}
    for line in drawn:
        arrow = arrows.get(line.kind, "-->")
        label = line.label if line.kind != "error" else f"error: {line.label}"
        text = f'|"{_escaped(label)}"|' if label else ""
        out.append(f"    {ids[line.source]} {arrow}{text} {ids[line.target]}")
    return "\n".join(out) + "\n"


def dot(graph: CompiledGraph) -> str:
    """Graphviz DOT text."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    shapes = {"interrupt": "hexagon", "map": "box3d", "subgraph": "component", "agent": "component"}
    styles = {"join": "bold", "jump": "dashed", "error": "dotted", "map": "dashed"}
    out = [f"digraph {quoted(graph.name)} {{", "    node [shape=box];", f"    {quoted(START)} [shape=circle];"]
    for i, name in enumerate(graph.names):
        shape = shapes.get(graph.defs[i].kind)
        out.append(f"    {quoted(name)}" + (f" [shape={shape}];" if shape else ";"))
    drawn = list(lines(graph))
    if any(line.target == END for line in drawn):
        out.append(f"    {quoted(END)} [shape=doublecircle];")
    for line in drawn:
        attributes = [f"label={quoted(line.label)}"] if line.label else []
        attributes += [f"style={styles[line.kind]}"] if line.kind in styles else []
        suffix = f" [{', '.join(attributes)}]" if attributes else ""
        out.append(f"    {quoted(line.source)} -> {quoted(line.target)}{suffix};")
    return "\n".join([*out, "}"]) + "\n"


def to_networkx(graph: CompiledGraph) -> networkx.MultiDiGraph:
    """A networkx multigraph; imports networkx at the first call."""
    import networkx

    drawn = networkx.MultiDiGraph(name=graph.name)
    drawn.add_node(START, kind="start")
    for i, name in enumerate(graph.names):
        drawn.add_node(name, kind=graph.defs[i].kind)
    for line in lines(graph):
        if line.target == END:
            drawn.add_node(END, kind="end")
        drawn.add_edge(line.source, line.target, kind=line.kind, label=line.label)
    return drawn
