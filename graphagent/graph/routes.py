"""From what a router, a goto or a Send names to the nodes that run: label lookup with errors that teach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from graphagent.errors import RouteError, alternatives
from graphagent.graph.names import END, END_INDEX

if TYPE_CHECKING:
    from graphagent.graph.compiled import CompiledGraph


class Route(NamedTuple):
    """A compiled conditional route. `labels`: label -> node index; `any_node`: undeclared, any id may be returned."""

    source: str
    router: Callable[..., Any]
    is_async: bool
    labels: Mapping[Any, int]
    many: bool
    default: int | None
    any_node: bool


class Jumps(NamedTuple):
    """Where a node's gotos and Sends may lead. `declared` False: read off the function, or not at all."""

    labels: Mapping[str, int]
    declared: bool
    any_node: bool


def resolve(graph: CompiledGraph, route: Route, returned: Any) -> tuple[int, ...]:
    """The targets of what a router returned, each once, in the order returned. Raises RouteError."""
    if not route.many:
        if isinstance(returned, list | tuple | set | frozenset):
            raise RouteError(
                f"the router of '{route.source}' returned {returned!r}; one label is expected: "
                f"use add_multi_conditional_edges for several",
                node=route.source,
                label=returned,
            )
        return (_label(graph, route, returned),)
    if returned is None or isinstance(returned, str):
        returned = [] if not returned else [returned]
    labels = [label for label in returned if label is not None and label != ""]
    if not labels:
        return () if route.default is None else (route.default,)
    return tuple(dict.fromkeys(_label(graph, route, label) for label in labels))


def _label(graph: CompiledGraph, route: Route, label: Any) -> int:
    try:
        target = route.labels.get(label)
    except TypeError:
        target = None
    if target is not None:
        return target
    if label == END:
        return END_INDEX
    if route.any_node and label in graph.index:
        return graph.index[label]
    if route.default is not None:
        return route.default
    known = [*map(_text, route.labels), END] if not route.any_node else list(graph.names)
    raise RouteError(
        f"the router of '{route.source}' returned {_text(label)!r}, which leads nowhere: "
        f"{alternatives(_text(label), known)} (labels: {', '.join(map(repr, known[:12]))}); "
        f"add it to path_map or give a default",
        node=route.source,
        label=label,
    )


def _text(label: Any) -> str:
    return str(getattr(label, "value", label))


def resolve_jump(graph: CompiledGraph, node: int, name: Any, what: str) -> int:
    """The node that a goto or Send of `node` names. Raises RouteError."""
    jumps = graph.jumps[node]
    target = jumps.labels.get(name) if isinstance(name, str) else None
    if target is not None:
        return target
    if name == END and what == "goto":
        return END_INDEX
    if jumps.any_node and name in graph.index:
        return graph.index[name]
    source = graph.names[node]
    if isinstance(name, str) and name in graph.index:
        raise RouteError(
            f"node '{source}' jumps ({what}) to '{name}', which it doesn't declare: "
            f"add destinations=['{name}'] to it (declared: {', '.join(map(repr, jumps.labels)) or 'none'})",
            node=source,
            label=name,
        )
    raise RouteError(
        f"node '{source}' jumps ({what}) to '{name}', which is not a node: {alternatives(str(name), graph.names)}",
        node=source,
        label=name,
    )
