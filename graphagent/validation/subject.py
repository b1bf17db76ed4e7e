"""The graph under validation, with what several rules need of it, worked out once and when first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import Place
from graphagent.graph.draw import Line, lines
from graphagent.graph.names import END, START
from graphagent.validation.access import Access, accesses
from graphagent.validation.explore import Exploration, explore, explore_supersteps
from graphagent.validation.facts import Bounds, Facts
from graphagent.validation.outcomes import Choices, choices
from graphagent.validation.prove import Proof, prove
from graphagent.validation.report import LOWER, Diagnostic, Severity, TraceStep

if TYPE_CHECKING:
    import networkx


class Subject:
    """What a rule looks at. `severities`: the default severity by code."""

    def __init__(self, graph: CompiledGraph, facts: Facts, bounds: Bounds, severities: Mapping[str, Severity]) -> None:
        self.graph = graph
        self.facts = facts
        self.bounds = bounds
        self.severities = severities

    @cached_property
    def digraph(self) -> networkx.DiGraph:
        """Every transition a run can make, START and END included (END only if it is named), parallel ones merged.

        An edge has `kinds`: the set of `edge`, `route`, `join`, `jump`, `map`, `error`. A node whose targets aren't
        declared leads to every node.
        """
        import networkx

        graph = self.graph
        made = networkx.DiGraph()
        made.add_node(START)
        made.add_nodes_from(graph.names)
        ends = [END] if graph.names_end else []
        anywhere = (
            Line(graph.names[i], name, "jump") for i in sorted(self.choices.open) for name in (*graph.names, *ends)
        )
        leaving = (Line(graph.names[i], END, "jump") for i in sorted(self.choices.leaving) if graph.names_end)
        for line in (*lines(graph), *anywhere, *leaving):
            if made.has_edge(line.source, line.target):
                made.edges[line.source, line.target]["kinds"].add(line.kind)
            else:
                made.add_edge(line.source, line.target, kinds={line.kind})
        return made

    @cached_property
    def reachable(self) -> frozenset[str]:
        """Nodes that START leads to in the drawing, START and END not among them."""
        import networkx

        return frozenset(networkx.descendants(self.digraph, START) - {END})

    @cached_property
    def cycles(self) -> Mapping[str, int]:
        """The number of the cycle (strongly connected component) for each node that lies on one."""
        import networkx

        found: dict[str, int] = {}
        for number, component in enumerate(networkx.strongly_connected_components(self.digraph)):
            one = next(iter(component))
            if len(component) > 1 or self.digraph.has_edge(one, one):
                found.update(dict.fromkeys(component, number))
        return found

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """What every node reads and writes, in order of declaration."""
        return accesses(self.graph)

    @cached_property
    def choices(self) -> Choices:
        """The declared alternatives of every node."""
        return choices(self.graph)

    @cached_property
    def proof(self) -> Proof | None:
        """A proof that the graph is sound, which makes the search needless."""
        return prove(self.graph, self.choices)

    @property
    def decided_by(self) -> Literal["reduction", "rank", "search", "bound"]:
        """Which stage settled the behaviour."""
        if self.proof is not None:
            return self.proof.stage
        explored = [x for x in (self.__dict__.get("eager"), self.__dict__.get("supersteps")) if x is not None]
        return "search" if explored and all(x.complete for x in explored) else "bound"

    @property
    def states(self) -> tuple[int, int]:
        """States explored, eager and in supersteps."""
        eager, supersteps = self.__dict__.get("eager"), self.__dict__.get("supersteps")
        return (len(eager.markings) if eager else 0, len(supersteps.markings) if supersteps else 0)

    @cached_property
    def eager(self) -> Exploration:
        """All behaviour, one completion at a time, reduced to one schedule for all interleavings."""
        return explore(self.graph, self.choices, self.bounds)

    @cached_property
    def supersteps(self) -> Exploration:
        """All behaviour in supersteps."""
        return explore_supersteps(self.graph, self.choices, self.bounds)

    @cached_property
    def _places(self) -> Mapping[tuple[str, ...], Place]:
        """Where things were declared: by two nodes what leads from one to the other, by one name a join (its id or its
        target) or else a node. The first declaration counts, edges before routes before joins."""
        graph = self.graph
        pairs = [((edge.source, edge.target), edge.place) for edge in graph.edges]
        pairs += [((r.source, target), r.place) for r in graph.routes for target in (r.labels or {}).values()]
        pairs += [((r.source, r.default), r.place) for r in graph.routes if r.default is not None]
        pairs += [((source, join.target), join.place) for join in graph.joins for source in join.sources]
        pairs += [((edge.source, edge.target), edge.place) for edge in graph.error_edges]
        names = [((name,), join.place) for join in graph.joins for name in (join.id, join.target)]
        names += [((node.id,), node.place) for node in graph.defs]
        return dict(reversed([*pairs, *names]))

    def place(self, *names: str) -> Place:
        """Where what leads from the first of these names to the second was declared, or else the join with the id or
        into the target that comes first, or the node. Empty for a name that is none of these."""
        return self._places.get(names[:2]) or self._places.get(names[:1]) or Place()

    def finding(
        self,
        code: str,
        message: str,
        at: Iterable[str] = (),
        *,
        where: Place | None = None,
        severity: Severity | None = None,
        trace: Iterable[TraceStep] = (),
        fix: str = "",
        related: Iterable[str] = (),
        inferred: bool = False,
    ) -> Diagnostic:
        """A finding with the severity of its rule, one lower if it rests on inference, and the place of `at`."""
        names = tuple(at)
        chosen = severity or self.severities[code]
        return Diagnostic(
            code,
            LOWER[chosen] if inferred else chosen,
            message,
            self.graph.name,
            names,
            where if where is not None else self.place(*names) if names else Place(),
            tuple(trace),
            fix,
            tuple(related),
            inferred,
        )
