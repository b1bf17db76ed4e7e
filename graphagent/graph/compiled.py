"""The frozen graph: what was declared, by name, and the integer tables that the engine runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphagent.graph import draw
from graphagent.graph.definition import EdgeDef, ErrorEdgeDef, GraphDef, JoinDef, NodeDef, Problem, RouteDef
from graphagent.graph.document import write_document
from graphagent.graph.joins import JoinTable
from graphagent.graph.marking import JoinState, Marking
from graphagent.graph.names import END, END_INDEX
from graphagent.graph.routes import Jumps, Route
from graphagent.graph.schema import StateSchema

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CompiledGraph:
    """A graph that can be validated and run; nothing about it changes any more.

    By name: `nodes`, `edges`, `joins`, `routes`, `error_edges`, `schema`, `fingerprint` (topology and state schema,
    whatever the source text or the order of declaration), `order` (node ids as declared: it decides merge order),
    `warnings`. The tables are by node index in that order; END is -1.
    """

    name: str
    definition: GraphDef
    schema: StateSchema
    fingerprint: str
    warnings: tuple[Problem, ...]
    strict: bool
    names_end: bool  # some edge, route or jump leads to END

    nodes: Mapping[str, NodeDef]
    edges: tuple[EdgeDef, ...]
    joins: tuple[JoinDef, ...]
    routes: tuple[RouteDef, ...]
    error_edges: tuple[ErrorEdgeDef, ...]

    names: tuple[str, ...]
    index: Mapping[str, int]
    defs: tuple[NodeDef, ...]
    entries: tuple[int, ...]
    plain: tuple[tuple[int, ...], ...]
    arrivals: tuple[tuple[tuple[int, int], ...], ...]  # per node: (join, slot)
    routers: tuple[tuple[Route, ...], ...]
    jumps: tuple[Jumps, ...]
    failures: tuple[tuple[tuple[tuple[type[Exception], ...], int], ...], ...]
    join_tables: tuple[JoinTable, ...]
    via_join: Mapping[tuple[int, int], tuple[tuple[int, int], ...]]  # (source, target) -> (join, slot)
    local: bool  # no join needs to know what is still running
    no_joins: tuple[JoinState | None, ...]
    initial: Marking
    singles: tuple[Marking, ...]  # per node: the marking in which it alone runs
    before: Mapping[int, bool | Callable[[Any], bool]]
    after: Mapping[int, bool | Callable[[Any], bool]]

    @property
    def order(self) -> tuple[str, ...]:
        """Node ids in order of declaration."""
        return self.names

    @property
    def entry_points(self) -> tuple[str, ...]:
        """The ids of the nodes that a run starts with."""
        return tuple(self.names[i] for i in self.entries)

    def name_of(self, index: int) -> str:
        """The id of a node index, also of END."""
        return END if index == END_INDEX else self.names[index]

    def to_mermaid(self) -> str:
        """The graph as Mermaid flowchart text."""
        return draw.mermaid(self)

    def to_dot(self) -> str:
        """The graph in Graphviz DOT."""
        return draw.dot(self)

    def to_networkx(self) -> networkx.MultiDiGraph:
        """The graph as a networkx multigraph: nodes with `kind`, edges with `kind` and `label`."""
        return draw.to_networkx(self)

    def to_json(self) -> dict[str, Any]:
        """The canonical document of the graph; `StateGraph.from_json` reads it back."""
        return write_document(self.definition, self.schema, self.fingerprint)

    def __repr__(self) -> str:
        return f"<CompiledGraph '{self.name}' {len(self.names)} nodes {self.fingerprint}>"
