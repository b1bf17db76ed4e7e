"""The loops of a graph: which can't be left, which have no bound, which are entered at several nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING

from graphagent.graph.names import START
from graphagent.validation.dominance import Dominance
from graphagent.validation.outcomes import Outcome
from graphagent.validation.subject import Subject

if TYPE_CHECKING:
    import networkx

Names = tuple[str, ...]
"""Nodes, in the order of the graph."""


def rings(ways: networkx.DiGraph) -> Iterator[set[str]]:
    """The strongly connected components that have a cycle."""
    import networkx

    for component in networkx.strongly_connected_components(ways):
        one = next(iter(component))
        if len(component) > 1 or ways.has_edge(one, one):
            yield component


def endless(subject: Subject, ways: networkx.DiGraph) -> Iterator[Names]:
    """Loops in which, whatever is chosen, something always goes on.

    In a loop, nodes are struck off that have a choice which triggers none of those left, until there is none; what
    stays keeps itself going (a trap of the graph of choices, as in safety games: Thomas 1995). Removing only the nodes
    that can leave the loop at once, as often proposed, would also hit a lap that another choice leads out of.
    """
    todo = list(rings(ways))
    while todo:
        part = todo.pop()
        kept = _kept(subject, part)
        if len(kept) == len(part):
            yield ordered(subject, part)
        elif kept:
            todo += rings(ways.subgraph(kept))


def ordered(subject: Subject, names: Iterable[str]) -> Names:
    """The names in the order of the graph."""
    return tuple(sorted(names, key=subject.graph.index.__getitem__))


def _kept(subject: Subject, part: set[str]) -> set[str]:
    """The largest subset in which each choice of each node triggers some node of the subset."""
    index, choices = subject.graph.index, subject.choices
    left: dict[tuple[int, int], int] = {}  # by node and choice: how many nodes of the subset it triggers
    triggered_by: dict[int, list[tuple[int, int]]] = {}
    inside = {index[name] for name in part}
    gone: list[int] = []
    for node in inside:
        if node in choices.cut:
            gone.append(node)
            continue
        for number, outcome in enumerate(choices.of[node]):
            if outcome.error is None:
                triggered = triggers(subject, node, outcome, inside) & inside
                left[node, number] = len(triggered)
                for target in triggered:
                    triggered_by.setdefault(target, []).append((node, number))
                if not triggered:
                    gone.append(node)
    while gone:
        node = gone.pop()
        if node in inside:
            inside.discard(node)
            for choice in triggered_by.get(node, ()):
                left[choice] -= 1
                if not left[choice]:
                    gone.append(choice[0])
    return {subject.graph.names[node] for node in inside}


def triggers(subject: Subject, node: int, outcome: Outcome, inside: Set[int]) -> set[int]:
    """What a node triggers when it chooses this. An arrival at a join counts if the join waits for all its sources and
    they are all `inside`: then no arrival is lost, and none waits for what is elsewhere."""
    graph = subject.graph
    targets = set(outcome.targets())
    arrivals = [slot for target in targets for slot in graph.via_join.get((node, target), ())]
    targets -= {graph.join_tables[join].target for join, _ in arrivals} - {*graph.plain[node], *(outcome.sends or ())}
    if outcome.goto is None and outcome.sends is None:
        targets.update(graph.plain[node])
        arrivals += graph.arrivals[node]
    tables = (graph.join_tables[join] for join, _ in arrivals)
    return targets | {table.target for table in tables if table.need == table.total and inside >= {*table.sources}}


def unbounded(subject: Subject, loop: Names) -> bool:
    """True if nothing bounds the laps of a loop: no `limits(laps=...)`, and no node that decides whether to go round
    again reads a field that the loop counts up. Not where some of them don't say what they read."""
    graph = subject.graph
    laps: Mapping[str, int] = graph.definition.limits.get("laps", {})
    if any(name in laps for name in loop):
        return False
    inside = {graph.index[name] for name in loop}
    deciding = [node for node in inside if _decides(subject, node, inside)]
    read = [graph.defs[node].reads for node in deciding]
    if not all(read):
        return False
    counted = {field for node in inside for field in graph.defs[node].writes or () if _counts(subject, field, node)}
    return counted.isdisjoint(field for fields in read for field in fields or ())


def _decides(subject: Subject, node: int, inside: set[int]) -> bool:
    return any(
        not triggers(subject, node, outcome, inside) & inside
        for outcome in subject.choices.of[node]
        if outcome.error is None
    )


def _counts(subject: Subject, field: str, node: int) -> bool:
    """True if the node counts with the field: adds to it, or reads and writes it as a number."""
    declared = subject.graph.schema.fields.get(field)
    if declared is None:
        return False
    own = field in (subject.graph.defs[node].reads or ())
    return declared.reducer.name == "add" or (own and declared.declared in (int, float))


def side_entered(subject: Subject, dominance: Dominance) -> Iterator[tuple[Names, Names]]:
    """Loops without a head, and the nodes they are entered at: those that are left when every edge back to a node that
    dominates its source is taken out (Hecht and Ullman 1974: then a reducible graph has no cycle)."""
    import networkx

    graph, cycles = subject.digraph, subject.cycles
    forward = networkx.DiGraph()
    for one in cycles.keys() & subject.reachable:
        inside = [other for other in graph.successors(one) if cycles.get(other) == cycles[one]]
        forward.add_edges_from((one, other) for other in inside if not dominance.dominates(other, one))
    for part in rings(forward):
        entered = [name for name in part if any(p not in part and _runs(subject, p) for p in graph.predecessors(name))]
        yield ordered(subject, part), ordered(subject, entered)


def _runs(subject: Subject, name: str) -> bool:
    return name == START or name in subject.reachable
