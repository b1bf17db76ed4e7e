"""What is due in a stored row, and where its child graphs have their rows: read without the graph that wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from graphagent.checkpoint.record import Loaded, Row
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef


class Due(NamedTuple):
    """An activation as it is stored."""

    node: str
    branch: list[list[str]]
    group: int


class Place(NamedTuple):
    """Where an activation stands. `path`: its namespace without `origin`, which says where it started from. What it
    runs has its rows under both, with the name of the call between them if there can be several."""

    node: str
    path: str
    origin: str

    @property
    def space(self) -> str:
        """The namespace of the one child graph that its node runs."""
        return f"{self.path}{self.origin}"


def parts(row: Row) -> tuple[dict[str, Any], list[Due]]:
    """The marking of a row as plain data, and what is due in it."""
    plain = row.marking["m"] if isinstance(row.marking, dict) and "m" in row.marking else row.marking
    if isinstance(plain, str):
        plain = {"f": [[plain]]}
    due = [Due(item[0], item[1] if len(item) > 1 else [], item[2] if len(item) > 2 else 0) for item in plain["f"]]
    return plain, due


def origins(row: Row, due: list[Due]) -> Iterator[tuple[int, int]]:
    """Per activation the row it started from, and its place there."""
    if isinstance(row.marking, dict) and "o" in row.marking:
        yield from ((base, position) for base, position, *_ in row.marking["o"])
    else:
        yield from ((row.base, position) for position in range(len(due)))


def places(loaded: Loaded) -> Iterator[Place]:
    """Where each activation of a stored row stands."""
    due = parts(loaded.row)[1]
    above = f"{loaded.namespace}/" if loaded.namespace else ""
    for one, (base, position) in zip(due, origins(loaded.row, due), strict=True):
        branch = "".join(f"{name}/" for name, _ in one.branch)
        yield Place(one.node, f"{above}{branch}{one.node}", f"@{base}.{position}")


def node_called(graph: CompiledGraph, name: str) -> NodeDef | None:
    """The node of a graph that has a name, or had it in an earlier version."""
    return graph.nodes.get(name) or next((node for node in graph.defs if name in node.formerly), None)


def child_of(graph: CompiledGraph, name: str) -> CompiledGraph | None:
    """The child graph of that node, or None."""
    node = node_called(graph, name)
    return node.child if node is not None and isinstance(node.child, CompiledGraph) else None
