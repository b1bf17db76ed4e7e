"""From a LangGraph graph to the canonical document of a graph, which the validator, `draw` and `compat` take.

LangGraph is never imported: what is handed in is looked at by its attributes. A compiled graph or a builder shows
most: joins, declared and visible targets, breakpoints, the checkpointer. The drawing, `get_graph().to_json()`, shows
edges only: joins are plain edges there, and the way out of a conditional edge is one of its targets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from graphagent.errors import UsageError
from graphagent.graph.names import END, START
from runner.convert.langgraph_builder import UNKNOWN, Conversion, defer, fresh


def from_langgraph(graph: Any, *, name: str = "") -> dict[str, Any]:
    """The canonical document (engine `superstep`) of a LangGraph graph.

    `graph`: a compiled graph, a `StateGraph` builder, a drawing (`get_graph()`), or the data of one (`to_json()`).
    `name`: that of the document (default: the graph's own). Nodes whose routers name targets that can't be seen make
    the document `unchecked`. Raises UsageError for anything else.
    """
    if isinstance(graph, Mapping) and "nodes" in graph and "edges" in graph:
        return _from_drawing(graph, name or "graph")
    builder = graph if hasattr(graph, "waiting_edges") else getattr(graph, "builder", None)
    if hasattr(builder, "waiting_edges") and hasattr(builder, "branches"):
        document = Conversion(builder, name or _name(graph)).document
        return document if builder is graph else document | _run(graph)
    try:
        drawing = graph.get_graph() if hasattr(graph, "get_graph") else graph
    except ValueError as error:  # of a sequence of runnables that has a graph inside
        raise UsageError(f"'{type(graph).__name__}' can't be drawn: {error}; pass the graph inside it") from error
    if not isinstance(drawing, type) and hasattr(drawing, "to_json") and hasattr(drawing, "edges"):
        return _from_drawing(drawing.to_json(), name or _name(graph))
    raise UsageError(
        f"'{type(graph).__name__}' is no LangGraph graph; pass a compiled graph, a StateGraph, its get_graph(), or "
        f"the data of get_graph().to_json()"
    )


def documents(graph: Any, *, name: str = "") -> dict[str, dict[str, Any]]:
    """The document of a graph and of every graph inside it, by path: the graph's name, then `name/node`.

    Raises UsageError as `from_langgraph` does.
    """
    own = from_langgraph(graph, name=name)
    found = {own["name"]: own}
    if hasattr(graph, "get_subgraphs"):
        for node, child in graph.get_subgraphs():
            found |= documents(child, name=f"{own['name']}/{node}")
    return found


def _name(graph: Any) -> str:
    named = getattr(graph, "name", None)
    return named if isinstance(named, str) and named else "graph"


def _run(graph: Any) -> dict[str, Any]:
    """What a compiled graph knows beside its builder. Without a checkpointer it may still get one where it is run."""
    nodes = list(graph.builder.nodes)
    said: dict[str, Any] = {}
    for when in ("before", "after"):
        listed = getattr(graph, f"interrupt_{when}_nodes", ()) or ()
        said[f"interrupt_{when}"] = nodes if listed == "*" else list(listed)
    if getattr(graph, "checkpointer", None):
        said["checkpointer"] = True
    return said


def _from_drawing(drawing: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The document of what was drawn: conditional edges of one source are one route."""
    nodes = {str(node["id"]): node for node in drawing["nodes"]}
    edges = [(str(edge["source"]), str(edge["target"]), edge) for edge in drawing["edges"]]
    start = fresh(nodes, "start")  # a router of its own, should edges out of START be conditional
    routes: dict[str, dict[str, str]] = {}
    for source, target, edge in edges:
        if edge.get("conditional"):
            labels = routes.setdefault(start if source == START else source, {})
            label = str(edge.get("data") or target)
            labels[label if labels.get(label, target) == target else f"{label} to {target}"] = target
    plain = [
        [start if source == START else source, target] for source, target, edge in edges if not edge.get("conditional")
    ]
    kept = [id for id in nodes if id not in (START, END)]
    entry = [start]
    if start not in routes:
        entry = [target for source, target in plain if source == start]
        plain = [edge for edge in plain if edge[0] != start]
    loose = _loose(kept, entry, plain, routes)
    routes |= {source: {} for source in loose if source not in routes}
    plain = [edge for edge in plain if edge != [edge[0], END] or edge[0] not in loose]
    beside = {source for source, _ in plain}
    stops = {id: str((nodes[id].get("metadata") or {}).get("__interrupt", "")) for id in kept}
    document: dict[str, Any] = {
        "name": name,
        "engine": "superstep",
        "unchecked": bool(loose),
        "entry": entry,
        "nodes": {id: {"kind": "function", **UNKNOWN} for id in [*(entry if start in routes else ()), *kept]},
        "edges": plain,
        "routes": [
            {
                "from": source,
                "select": "one",
                "targets": None if source in loose else labels,
                "with_edges": source in beside,
            }
            for source, labels in routes.items()
        ],
        "joins": [],
        "inputs": None,
        "interrupt_before": [id for id in kept if "before" in stops[id]],
        "interrupt_after": [id for id in kept if "after" in stops[id]],
    }
    defer(document, [id for id in kept if (nodes[id].get("metadata") or {}).get("defer")])
    return document


def _loose(
    nodes: list[str], entry: list[str], plain: list[list[str]], routes: Mapping[str, Mapping[str, str]]
) -> Collection[str]:
    """Nodes that may lead to more than is drawn, if the drawing can't be all.

    Sends and jumps are drawn as far as they were declared, so a node may seem to be cut off; then any conditional edge,
    and any node that seems to lead to END only, may lead there. That a run may end after a jump is not drawn at all.
    """
    drawn = {*entry, *(target for _, target in plain), *(end for labels in routes.values() for end in labels.values())}
    if END not in drawn:
        return routes
    if all(node in drawn for node in nodes):
        return ()
    going = {source for source, target in plain if target != END}
    return [*routes, *(node for node in nodes if node not in going and node not in routes)]
