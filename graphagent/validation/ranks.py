"""In which order the exploration looks at the nodes of a frontier, and where order of arrival decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.names import END_INDEX
from graphagent.validation.outcomes import Choices


class Ranks(NamedTuple):
    """`downstream`: per node, smaller the further it is from the entry. `cyclic`: nodes on a cycle. `ordered`: a join
    whose firing depends on the order of arrivals lies on a cycle, or a node leads to another both by a join and
    otherwise."""

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
    ordered = ordered or any(_meets_itself(graph, choices, members) for members in _leaving_together(choices))
    return Ranks(tuple(place[mapping[i]] for i in range(len(graph.names))), cyclic, ordered)


def _leaving_together(choices: Choices) -> Iterator[tuple[int, ...]]:
    """Nodes whose edges fire in one instant: each by itself, and the members of a Send group."""
    for i, outcomes in enumerate(choices.of):
        yield (i,)
        yield from {members for outcome in outcomes if len(members := tuple(sorted(set(outcome.sends or ())))) > 1}


def _meets_itself(graph: CompiledGraph, choices: Choices, nodes: tuple[int, ...]) -> bool:
    """Whether what leaves these nodes can trigger one node in two ways, one of them a join: then it runs once or twice,
    depending on whether the other sources of the join have come before."""
    direct: set[int] = set()
    joined: list[int] = []
    for i in nodes:
        joined += [graph.join_tables[j].target for j, _ in graph.arrivals[i]]
        direct.update(graph.plain[i])
        chosen = {target for outcome in choices.of[i] for target in outcome.chosen}
        direct.update(target for target in chosen if (i, target) not in graph.via_join)
    targets = set(joined) - {END_INDEX}
    return bool(targets & direct) or any(joined.count(target) > 1 for target in targets)
