"""Reachability over a definition: which nodes can still lead to a join's missing source.

Plain breadth-first search on sets; compile-time only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from graphagent.graph.definition import GraphDef, JoinDef
from graphagent.graph.jumps import visible_jumps
from graphagent.graph.names import END

Successors = Mapping[str, frozenset[str]]


def successors(graph: GraphDef) -> dict[str, frozenset[str]]:
    """Per node the nodes it may lead to in one step, over every kind of edge; undeclared jumps may lead anywhere."""
    ids = [node.id for node in graph.nodes]
    out: dict[str, set[str]] = {name: set() for name in ids}
    for edge in graph.edges:
        out[edge.source].add(edge.target)
    for failure in graph.error_edges:
        out[failure.source].add(failure.target)
    for join in graph.joins:
        for name in join.sources:
            out[name].add(join.target)
    for route in graph.routes:
        out[route.source].update(ids if route.labels is None else route.labels.values())
        if route.default is not None:
            out[route.source].add(route.default)
    for node in graph.nodes:
        if node.kind == "map":
            out[node.id].update((node.config["worker"], node.config["collect"]))
        elif node.destinations is not None:
            out[node.id].update(node.destinations.values())
        else:
            jumps, seen = visible_jumps(node.fn, out.keys())
            out[node.id].update(ids if jumps and not seen and not out[node.id] else seen)
    return {name: frozenset(targets - {END}) for name, targets in out.items()}


def reachable(starts: Iterable[str], edges: Successors, without: frozenset[str] = frozenset()) -> set[str]:
    """Nodes reachable from `starts` (these included) without going through a node of `without`."""
    seen: set[str] = set()
    queue = [name for name in starts if name not in without]
    while queue:
        name = queue.pop()
        if name not in seen:
            seen.add(name)
            queue += [target for target in edges.get(name, ()) if target not in without and target not in seen]
    return seen


def predecessors(edges: Successors) -> dict[str, set[str]]:
    """The same edges by their end: per node that any leads to, the nodes they start at."""
    before: dict[str, set[str]] = {}
    for name, targets in edges.items():
        for successor in targets:
            before.setdefault(successor, set()).add(name)
    return before


def bringers(sources: Iterable[str], target: str, before: Mapping[str, Set[str]]) -> set[str]:
    """The nodes that, when they run, can still make one of `sources` run without passing `target` on the way.

    `target` itself is one of them if it leads to a source by a way that does not come back to it. `before`: the
    edges, by their end.
    """
    seen = set(sources)
    queue = list(seen)
    begun = frozenset(seen)
    while queue:
        name = queue.pop()
        if name == target and name not in begun:
            continue
        for earlier in before.get(name, ()):
            if earlier not in seen:
                seen.add(earlier)
                queue.append(earlier)
    return seen


def rival_joins(graph: GraphDef) -> Iterator[tuple[JoinDef, JoinDef]]:
    """Pairs of active joins that can wait for each other: each can bring a source of the other, and neither always
    comes before the other (in a loop through both, one does)."""
    active = [join for join in graph.joins if join.mode == "active"]
    if len(active) < 2:
        return
    edges = successors(graph)
    before = predecessors(edges)
    entries = [name for name, _ in graph.entries]
    brought_by = {join.id: bringers(join.sources, join.target, before) for join in active}
    for i, one in enumerate(active):
        for other in active[i + 1 :]:
            mutual = one.target in brought_by[other.id] and other.target in brought_by[one.id]
            if one.target == other.target or not mutual:
                continue
            first = one.target in reachable(entries, edges, frozenset({other.target}))
            second = other.target in reachable(entries, edges, frozenset({one.target}))
            if first and second:
                yield one, other
