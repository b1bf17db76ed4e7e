"""Which nodes lie on every way to another (dominators; Cooper, Harvey and Kennedy 2006, in networkx)."""

from __future__ import annotations

from graphagent.graph.names import START
from graphagent.validation.subject import Subject

Vertex = str | tuple[str]
"""A node by its id, or a join by its id in a tuple."""


class Dominance:
    """Answers for the part of a graph that START leads to, in which every join is a vertex of its own.

    Made once, `dominates` takes constant time: it compares places in a walk round the tree of dominators.
    """

    def __init__(self, subject: Subject) -> None:
        import networkx

        above = networkx.immediate_dominators(_with_joins(subject), START)
        below: dict[Vertex, list[Vertex]] = {}
        for vertex, parent in above.items():
            if vertex != START:
                below.setdefault(parent, []).append(vertex)
        self._first: dict[Vertex, int] = {}
        self._last: dict[Vertex, int] = {}
        todo: list[tuple[Vertex, bool]] = [(START, False)]
        while todo:
            vertex, left = todo.pop()
            if left:
                self._last[vertex] = len(self._first)
            else:
                self._first[vertex] = len(self._first)
                todo += [(vertex, True), *((child, False) for child in below.get(vertex, ()))]

    def dominates(self, one: Vertex, other: Vertex) -> bool:
        """True if every way from START to `other` passes `one`; a vertex dominates itself. Both must be reachable."""
        return self._first[one] <= self._first[other] < self._last[one]


def _with_joins(subject: Subject) -> object:
    """The drawing, in which what arrives at a join leads to the join and only the join to its target."""
    import networkx

    graph = subject.graph
    made = networkx.DiGraph()
    made.add_node(START)
    for source, target, kinds in subject.digraph.edges(data="kinds"):
        if kinds != {"join"} and ("edge" in kinds or not _arrives(subject, source, target)):
            made.add_edge(source, target)
    for join in graph.joins:
        made.add_edge((join.id,), join.target)
        made.add_edges_from((source, (join.id,)) for source in join.sources)
    return made


def _arrives(subject: Subject, source: str, target: str) -> bool:
    """True if going from `source` to `target` always means to arrive at a join; only Sends go past it."""
    graph = subject.graph
    if source not in graph.index or target not in graph.index:
        return False
    node, into = graph.index[source], graph.index[target]
    sent = any(into in (outcome.sends or ()) for outcome in subject.choices.of[node])
    return (node, into) in graph.via_join and not sent
