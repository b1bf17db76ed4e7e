"""Which graphs a graph runs: those of its subgraph nodes, and those that its functions name."""

from __future__ import annotations

import dis
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from graphagent.graph.builder import StateGraph
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef

_MOST = 200
"""Functions of one module that are followed from one node."""

Nodes = tuple[NodeDef, ...]
"""A graph, whether compiled or not: copies of a builder share their nodes."""


def ring(graph: CompiledGraph) -> list[str] | None:
    """The shortest way from a graph back to itself, as nodes written `graph.node`; None if there is none."""
    queue: deque[tuple[str, Nodes, list[str]]] = deque([(graph.name, graph.defs, [])])
    seen = {_key(graph.defs)}
    while queue:
        name, nodes, way = queue.popleft()
        for node in nodes:
            for inner_name, inner in run_by(node):
                here = [*way, f"{name}.{node.id}"]
                if _key(inner) == _key(graph.defs):
                    return here
                if _key(inner) not in seen:
                    seen.add(_key(inner))
                    queue.append((inner_name, inner, here))
    return None


def run_by(node: NodeDef) -> Iterator[tuple[str, Nodes]]:
    """Name and nodes of every graph that the node runs, or that its function names."""
    candidates = [node.child] if node.kind == "subgraph" else list(_named(node.fn))
    for item in candidates:
        graph = _graph(item)
        if graph is not None:
            yield graph


def _key(nodes: Nodes) -> tuple[int, ...]:
    return tuple(map(id, nodes))


def _graph(item: Any) -> tuple[str, Nodes] | None:
    """A compiled graph, a builder, or what keeps one of them as its `graph`, such as an executor."""
    if isinstance(item, CompiledGraph):
        return item.name, item.defs
    if isinstance(item, StateGraph):
        return item.definition.name, tuple(item.definition.nodes)
    try:
        inner = vars(item).get("graph")
    except TypeError:
        return None
    return _graph(inner) if isinstance(inner, CompiledGraph | StateGraph) else None


def _named(fn: Any) -> Iterator[Any]:
    """What a function names: its globals and closure, and those of functions of its module that it names."""
    while hasattr(fn, "func"):
        fn = fn.func
    queue = [getattr(fn, "__func__", fn)]
    seen: set[int] = set()
    while queue and len(seen) < _MOST:
        function = queue.pop()
        if not isinstance(function, types.FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        for item in _values(function):
            yield item
            if isinstance(item, types.FunctionType) and item.__module__ == function.__module__:
                queue.append(item)


def _values(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]


def _global_names(code: types.CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)
