"""In which order the exploration looks at the nodes of a frontier, and where order of arrival decides."""

from __future__ import annotations

from typing import NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.names import END_INDEX
from graphagent.validation.outcomes import Choices


class Ranks(NamedTuple):
    """`downstream`: per node, smaller the further it is from the entry. `cyclic`: nodes on a cycle. `ordered`: a join
    whose firing depends on the order of arrivals lies on a cycle, or two Sends of one node do."""

    downstream: tuple[int, ...]
    cyclic: frozenset[int]
    ordered: bool

    def later(self, nodes: frozenset[int]) -> Ranks:
        """The same with these nodes after all others."""
        size = len(self.downstream)
        return self._replace(downstream=tuple(r + size * (i in nodes) for i, r in enumerate(self.downstream)))


def ranks(graph: CompiledGraph, choices: Choices) -> Ranks:
    """Worked out on the graph of all alternatives, joins and error edges."""
    import networkx

    ways = networkx.DiGraph()
    ways.add_nodes_from(range(len(graph.names)))
    for i in range(len(graph.names)):
        targets = {*graph.plain[i], *(graph.join_tables[j].target for j, _ in graph.arrivals[i])}
        targets.update(target for outcome in choices.of[i] for target in outcome.targets())
        ways.add_edges_from((i, target) for target in targets if target != END_INDEX)
    condensed = networkx.condensation(ways)
    place = {number: rank for rank, number in enumerate(reversed(list(networkx.topological_sort(condensed))))}
    mapping = condensed.graph["mapping"]
    cyclic = frozenset(
        node
        for _, data in condensed.nodes(data=True)
        for node in data["members"]
        if len(data["members"]) > 1 or ways.has_edge(node, node)
    )
    ordered = any(table.mode != "all" and table.target in cyclic for table in graph.join_tables)
    return Ranks(tuple(place[mapping[i]] for i in range(len(graph.names))), cyclic, ordered)
