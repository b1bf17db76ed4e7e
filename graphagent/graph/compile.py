"""From the recorded definition to the frozen graph and its tables. The definition has passed its checks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import GraphDef, JoinDef, NodeDef, Problem, RouteDef
from graphagent.graph.document import topology
from graphagent.graph.joins import JoinTable
from graphagent.graph.jumps import visible_jumps
from graphagent.graph.marking import Activation, Marking
from graphagent.graph.names import END, END_INDEX
from graphagent.graph.reach import bringers, predecessors, successors
from graphagent.graph.routes import Jumps, Route
from graphagent.graph.schema import StateSchema
from graphagent.graph.signature import is_async

Index = Mapping[str, int]


def build(definition: GraphDef, schema: StateSchema, problems: tuple[Problem, ...], *, strict: bool) -> CompiledGraph:
    """The compiled graph of a checked definition."""
    names = tuple(node.id for node in definition.nodes)
    index: dict[str, int] = {name: i for i, name in enumerate(names)}
    at: Index = {**index, END: END_INDEX}
    tables = _join_tables(definition, at)
    arrivals: list[list[tuple[int, int]]] = [[] for _ in names]
    via_join: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
    for j, table in enumerate(tables):
        for slot, source in enumerate(table.sources):
            arrivals[source].append((j, slot))
            via_join[source, table.target] = (*via_join.get((source, table.target), ()), (j, slot))
    plain: list[dict[int, None]] = [{} for _ in names]
    for edge in definition.edges:
        plain[at[edge.source]][at[edge.target]] = None
    routers: list[list[Route]] = [[] for _ in names]
    for route in definition.routes:
        destinations = definition.nodes[at[route.source]].destinations or {}
        routers[at[route.source]].append(_route(route, destinations, at))
    failures: list[list[tuple[tuple[type[Exception], ...], int]]] = [[] for _ in names]
    for failure in definition.error_edges:
        failures[at[failure.source]].append((failure.errors, at[failure.target]))
    no_joins = (None,) * len(tables)
    singles = tuple(Marking((Activation(i),), no_joins) for i in range(len(names)))
    return CompiledGraph(
        name=definition.name,
        definition=definition,
        schema=schema,
        fingerprint=fingerprint(definition, schema),
        warnings=tuple(problem for problem in problems if problem.severity != "error"),
        strict=strict,
        names_end=_names_end(definition),
        nodes=MappingProxyType({node.id: node for node in definition.nodes}),
        edges=tuple(definition.edges),
        joins=tuple(definition.joins),
        routes=tuple(definition.routes),
        error_edges=tuple(definition.error_edges),
        names=names,
        index=MappingProxyType(index),
        defs=tuple(definition.nodes),
        entries=tuple(sorted({index[name] for name, _ in definition.entries})),
        plain=tuple(tuple(targets) for targets in plain),
        arrivals=tuple(tuple(item) for item in arrivals),
        routers=tuple(tuple(item) for item in routers),
        jumps=_jumps(definition, at, strict),
        failures=tuple(tuple(item) for item in failures),
        join_tables=tables,
        via_join=MappingProxyType(via_join),
        local=all(table.mode == "all" for table in tables),
        no_joins=no_joins,
        initial=_initial(definition, index, singles),
        singles=singles,
        before=_breakpoints(definition, index, "interrupt_before", [name for name, _ in definition.before]),
        after=_breakpoints(definition, index, "interrupt_after", [name for name, _ in definition.after]),
    )


def _initial(definition: GraphDef, index: Index, singles: tuple[Marking, ...]) -> Marking:
    """One activation per entry point; several are the first split of the run."""
    entries = sorted({index[name]: name for name, _ in definition.entries}.items())
    if len(entries) == 1:
        return singles[entries[0][0]]
    frontier = tuple(Activation(i, ((name, -1),), trigger=()) for i, name in entries)
    return Marking(frontier, singles[0].joins)


def fingerprint(definition: GraphDef, schema: StateSchema) -> str:
    """Sixteen hexadecimal digits of topology and state schema, independent of source text and declaration order."""
    text = json.dumps(topology(definition, schema), sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _join_tables(definition: GraphDef, at: Index) -> tuple[JoinTable, ...]:
    nonlocal_joins = any(join.mode != "all" for join in definition.joins)
    before = predecessors(successors(definition)) if nonlocal_joins else {}

    def table(join: JoinDef) -> JoinTable:
        total = len(join.sources)
        need = {"all": total, "active": 0, "any": 1}.get(str(join.mode), join.mode)
        assert isinstance(need, int)
        can_bring: tuple[frozenset[int], ...] = ()
        if join.mode != "all":
            can_bring = tuple(
                frozenset(at[name] for name in bringers([source], join.target, before)) for source in join.sources
            )
        mode = str(join.mode) if isinstance(join.mode, str) else "n"
        return JoinTable(join.id, at[join.target], tuple(at[s] for s in join.sources), need, total, mode, can_bring)

    return tuple(table(join) for join in definition.joins)


def _route(route: RouteDef, destinations: Mapping[str, str], at: Index) -> Route:
    labels: dict[Any, int] = {}
    declared = {**destinations, **(route.labels or {})}  # a label of path_map goes before one of destinations
    for target in declared.values():  # a declared target is also a label of its own, weaker than a real one
        if target in at:
            labels[target] = at[target]
    for label, target in declared.items():
        if target in at:
            labels[label] = at[target]
            value = getattr(label, "value", None)
            if isinstance(value, str):
                labels.setdefault(value, at[target])
    default = None if route.default is None else at[route.default]
    router: Any = route.router
    return Route(route.source, router, is_async(router), labels, route.many, default, route.labels is None)


def _jumps(definition: GraphDef, at: Index, strict: bool) -> tuple[Jumps, ...]:
    """Per node: where its edges, joins and routes lead, and what it declares or can be seen to name besides."""
    labels: dict[str, dict[str, int]] = {node.id: {} for node in definition.nodes}
    for edge in definition.edges:
        labels[edge.source][edge.target] = at[edge.target]
    for join in definition.joins:
        for source in join.sources:
            labels[source][join.target] = at[join.target]
    for route in definition.routes:
        labels[route.source] |= {target: at[target] for target in (route.labels or {}).values() if target in at}
    ids = frozenset(labels)
    return tuple(_jumps_of(node, labels[node.id], ids, at, strict) for node in definition.nodes)


def _jumps_of(node: NodeDef, labels: dict[str, int], ids: frozenset[str], at: Index, strict: bool) -> Jumps:
    if node.kind == "map":
        labels |= {node.config[role]: at[node.config[role]] for role in ("worker", "collect")}
    if node.destinations is not None:
        labels |= {target: at[target] for target in node.destinations.values()}
        labels |= {label: at[target] for label, target in node.destinations.items()}
        return Jumps(labels, True, False)
    _, seen = visible_jumps(node.fn, ids)
    labels |= {name: at[name] for name in seen if name not in labels}
    return Jumps(labels, False, not strict)


def _names_end(definition: GraphDef) -> bool:
    named = [edge.target for edge in definition.edges]
    named += [join.target for join in definition.joins] + [edge.target for edge in definition.error_edges]
    for route in definition.routes:
        named += [*(route.labels or {}).values(), route.default or ""]
    for node in definition.nodes:
        named += (node.destinations or {}).values()
    return END in named


def _breakpoints(
    definition: GraphDef, index: Index, attribute: str, listed: list[str]
) -> Mapping[int, bool | Callable[[Any], bool]]:
    found: dict[int, bool | Callable[[Any], bool]] = {index[name]: True for name in listed}
    for node in definition.nodes:
        condition = getattr(node, attribute)
        if condition is not False:
            found[index[node.id]] = condition
    return MappingProxyType(found)
