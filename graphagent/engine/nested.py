"""Which graph each frame of a lineage belongs to: the root's, or that of a child graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from graphagent.graph.compiled import CompiledGraph

_PLACE = re.compile(r"@\d+\.\d+$")  # the row that an activation started from, and its place there


def graphs_within(graph: CompiledGraph) -> list[CompiledGraph]:
    """The graph and its child graphs at every depth, each once, parents first."""
    found: dict[int, CompiledGraph] = {}
    todo = [graph]
    while todo:
        one = todo.pop(0)
        if id(one) not in found:
            found[id(one)] = one
            todo += [node.child for node in one.defs if isinstance(node.child, CompiledGraph)]
    return list(found.values())


def graphs_by_frame(graph: CompiledGraph, namespaces: Iterable[str]) -> Mapping[str, CompiledGraph | None]:
    """The graph of each frame, parents first; None for a frame of a node that has no child graph (any more).

    A frame inside no other is one of `graph` itself. A frame of a child graph is named by the activation that runs it
    (see `graphagent.engine.frame.child_namespace`), under the id that its node had then.
    """
    found: dict[str, CompiledGraph | None] = {}
    for namespace in sorted(namespaces, key=lambda name: (len(name), name)):
        parents = [other for other in found if _is_within(namespace, other)]
        if not parents:
            found[namespace] = graph if not _PLACE.search(namespace) else None
            continue
        parent = max(parents, key=len)
        inside = found[parent]
        own = namespace[len(parent) + 1 :] if parent else namespace
        found[namespace] = None if inside is None else _child(inside, _PLACE.sub("", own))
    return found


def _is_within(namespace: str, other: str) -> bool:
    """True for a child frame of a frame; one of a run in a namespace of its own is within none."""
    if not _PLACE.search(namespace):
        return False
    return namespace != other and (not other or namespace.startswith(f"{other}/"))


def _child(graph: CompiledGraph, path: str) -> CompiledGraph | None:
    """The child graph of the activation with this path: branches, then the node; ids may have slashes in them."""
    named = [(name, node) for node in graph.defs for name in (node.id, *node.formerly)]
    fitting: Iterator[tuple[int, CompiledGraph]] = (
        (len(name), node.child)
        for name, node in named
        if isinstance(node.child, CompiledGraph) and (path == name or path.endswith(f"/{name}"))
    )
    return max(fitting, key=lambda found: found[0], default=(0, None))[1]
