"""Definition checks (rules GA0xx, and the field names of GA405 and GA407): what `compile()` refuses.

Pure functions over the recorded definition; no networkx, so that compiling stays cheap. The validator registers the
same functions again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from unicodedata import normalize

from graphagent.errors import alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import EdgeDef, ErrorEdgeDef, GraphDef, NodeDef, Place, Problem, RouteDef
from graphagent.graph.jumps import visible_jumps
from graphagent.graph.names import END, START
from graphagent.graph.reach import reachable, rival_joins
from graphagent.graph.schema import StateSchema
from graphagent.graph.signature import declared_labels, takes_arguments, wants_context

Check = Callable[[GraphDef, StateSchema], Iterator[Problem]]


def check_definition(graph: GraphDef, schema: StateSchema, *, strict: bool = True) -> list[Problem]:
    """All findings, in a fixed order of rules. Without `strict`, undeclared targets (GA008, GA009) are warnings."""
    found = [problem for check in CHECKS for problem in check(graph, schema)]
    if not any(problem.severity == "error" for problem in found):
        found += list(_rival_joins(graph))
    if strict:
        return found
    return [Problem(p.code, "warning", p.message, p.at, p.place) if p.code in ("GA008", "GA009") else p for p in found]


def _error(code: str, message: str, at: tuple[str, ...], place: Place) -> Problem:
    return Problem(code, "error", message, at, place)


def _unknown(code: str, what: str, name: str, graph: GraphDef, at: tuple[str, ...], place: Place) -> Problem:
    known = [node.id for node in graph.nodes]
    return _error(code, f"{what} '{name}', which is not a node: {alternatives(name, known)}", at, place)


def _ids(graph: GraphDef) -> set[str]:
    return {node.id for node in graph.nodes}


def check_schema(graph: GraphDef, schema: StateSchema) -> Iterator[Problem]:
    """GA407: reducer, type and default of a field don't fit."""
    for text in schema.problems:
        yield _error("GA407", text, (), Place())


def check_entry(graph: GraphDef, schema: StateSchema) -> Iterator[Problem]:
    """GA001 no entry, GA002 an entry that is no node."""
    ids = _ids(graph)
    if not graph.entries:
        starts, ring = _beginnings(graph)
        where = f"; nothing leads to {', '.join(map(repr, starts))}" if starts else ""
        where += f"; there is only a ring: {' -> '.join(map(repr, ring))}" if ring else ""
        text = f"graph '{graph.name}' has no entry point{where}; call set_entry_point(...) or add_edge(START, ...)"
        yield _error("GA001", text, tuple(ring[:-1]), Place())
    for name, place in graph.entries:
        if name not in ids:
            yield _unknown("GA002", "the entry point is", name, graph, (name,), place)


def _beginnings(graph: GraphDef) -> tuple[list[str], list[str]]:
    """Nodes without a predecessor, and a ring (its first node again at the end) that none of them leads to."""
    before: dict[str, list[str]] = {node.id: [] for node in graph.nodes}
    after: dict[str, list[str]] = {node.id: [] for node in graph.nodes}
    ways = [(edge.source, edge.target) for edge in graph.edges]
    ways += [(edge.source, edge.target) for edge in graph.error_edges]
    ways += [(source, join.target) for join in graph.joins for source in join.sources]
    ways += [(route.source, target) for route in graph.routes for target in (route.labels or {}).values()]
    for source, target in ways:
        if source in after and target in before:
            before[target].append(source)
            after[source].append(target)
    starts = [name for name, sources in before.items() if not sources]
    led_to = reachable(starts, {name: frozenset(targets) for name, targets in after.items()})
    line = [name for name in before if name not in led_to][:1]
    while line and before[line[-1]][0] not in line:  # who is not led to has a predecessor that is not led to
        line.append(before[line[-1]][0])
    if not line:
        return starts, []
    first = before[line[-1]][0]
    return starts, [first, *reversed(line[line.index(first) :])]


def check_ids(graph: GraphDef, schema: StateSchema) -> Iterator[Problem]:
    """GA003: ids that look alike (the same but for case or Unicode form; twins are found when they are added);
    GA004: reserved, empty or blank ids, and edges into START."""
    alike: dict[str, NodeDef] = {}
    for node in graph.nodes:
        if not isinstance(node.id, str) or not node.id.strip():
            yield _error("GA004", f"a node id is {node.id!r}; give it a name", (str(node.id),), node.place)
        elif node.id in (START, END):
            yield _error("GA004", f"'{node.id}' is reserved; choose another node id", (node.id,), node.place)
        twin = alike.setdefault(normalize("NFC", str(node.id)).casefold(), node)
        if twin is not node:
            text = f"node '{node.id}' looks like '{twin.id}', added at {twin.place}; give one of them another id"
            yield Problem("GA003", "warning", text, (twin.id, node.id), node.place)
    for edge in graph.edges:
        if edge.target == START:
            yield _error(
                "GA004", f"an edge leads from '{edge.source}' into START; nothing may", (edge.source, START), edge.place
            )


def check_edges(graph: GraphDef, schema: StateSchema) -> Iterator[Problem]:
    """GA005, GA006: ends of plain and error edges that are no nodes; GA011: the same edge twice."""
    ids = _ids(graph)
    both: list[EdgeDef | ErrorEdgeDef] = [*graph.edges, *graph.error_edges]
    for edge in both:
        at = (edge.source, edge.target)
        if edge.source not in ids:
            yield _unknown("GA005", "an edge starts at", edge.source, graph, at, edge.place)
        if edge.target not in ids and edge.target not in (END, START):
            yield _unknown("GA006", f"an edge from '{edge.source}' leads to", edge.target, graph, at, edge.place)
    seen: dict[tuple[str, str], Place] = {}
    for plain in graph.edges:
        at = (plain.source, plain.target)
        if at in seen:
            text = (
                f"the edge '{plain.source}' -> '{plain.target}' is declared twice, first at {seen[at]}; it counts once"
            )
            yield Problem("GA011", "warning", text, at, plain.place)
        seen.setdefault(at, plain.place)


def check_routes(graph: GraphDef, schema: StateSchema) -> Iterator[Problem]:
    """GA005, GA007, GA008, GA009, GA012, GA013 and GA015 of conditional routes."""
    ids = _ids(graph)
    destinations = {node.id: node.destinations or {} for node in graph.nodes}
    routed = {route.source for route in graph.routes}
    for route in graph.routes:
        if route.source not in ids:
            yield _unknown("GA005", "a route starts at", route.source, graph, (route.source,), route.place)
        if not callable(route.router):
            text = f"the router of '{route.source}' is {route.router!r}, not a function of the state"
            yield _error("GA015", text, (route.source,), route.place)
        elif not takes_arguments(route.router, 1):
            text = f"the router of '{route.source}' can't be called with the state as its one argument"
            yield _error("GA015", text, (route.source,), route.place)
        yield from _targets(graph, route, ids, destinations.get(route.source, {}))
        if route.same_as is not None and route.same_as not in routed:
            text = f"the route of '{route.source}' is same_as '{route.same_as}', which has no route"
            yield _error("GA007", text, (route.source, route.same_as), route.place)
    yield from _route_company(graph)


def _targets(graph: GraphDef, route: RouteDef, ids: set[str], destinations: Mapping[str, str]) -> Iterator[Problem]:
    source = route.source
    if route.labels is None:
        text = (
            f"the router of '{source}' doesn't declare its targets; pass path_map=[...] or annotate its return "
            f"type with Literal[...] or an Enum"
        )
        yield _error("GA008", text, (source,), route.place)
        return
    annotated = declared_labels(route.router) if callable(route.router) else None
    own_labels = annotated is not None and set(map(str, annotated)) == set(map(str, route.labels))
    for label, target in route.labels.items():
        if target in ids or target == END:
            continue
        if own_labels and route.default is not None:
            continue
        code = "GA009" if own_labels else "GA007"
        what = f"the route of '{source}' leads by label {label!r} to"
        yield _unknown(code, what, str(target), graph, (source, str(target)), route.place)
    if route.default is not None and route.default not in ids and route.default != END:
        yield _unknown("GA007", f"the default of '{source}' is", route.default, graph, (source,), route.place)
    for label in annotated or ():
        value = getattr(label, "value", label)
        known = {*route.labels, *route.labels.values(), *destinations, *destinations.values(), END}
        if label not in known and value not in known and route.default is None:
            text = (
                f"the router of '{source}' may return {value!r}, which has no target: "
                f"{alternatives(str(value), map(str, route.labels))}; add it to path_map or give a default"
            )
            yield _error("GA009", text, (source, str(value)), route.place)


def _route_company(graph: GraphDef) -> Iterator[Problem]:
    first: dict[str, RouteDef] = {}
    for route in graph.routes:
        if route.source in first:
            text = f"node '{route.source}' has another route, declared at {first[route.source].place}; both fire"
            yield Problem("GA012", "warning", text, (route.source,), route.place)
        first.setdefault(route.source, route)
    plain = {edge.source for edge in graph.edges}
    for source, route in first.items():
        if source in plain and not route.with_edges:
            text = f"node '{source}' has a plain edge beside its route; both fire; say with_edges=True if that is meant"
            yield Problem("GA013", "warning", text, (source,), route.place)


def check_joins(graph: GraphDef, schema: StateSchema) -> Iterator[Problem]:
    """GA010: joins without sources, with unknown ends, with an impossible mode, or two with one id; GA019."""
    ids = _ids(graph)
    for join in graph.joins:
        at = (*join.sources, join.target)
        if not join.sources:
            text = f"the join into '{join.target}' has no sources; name the nodes it waits for"
            yield _error("GA010", text, (join.target,), join.place)
        for name in join.sources:
            if name not in ids:
                yield _unknown("GA010", f"the join into '{join.target}' waits for", name, graph, at, join.place)
        if join.target not in ids and join.target != END:
            yield _unknown("GA010", "a join leads to", join.target, graph, at, join.place)
        number = join.mode if isinstance(join.mode, int) and not isinstance(join.mode, bool) else None
        if number is None and join.mode not in ("all", "active", "any"):
            text = f"the join into '{join.target}' has mode {join.mode!r}; known: 'all', 'active', 'any', or a number"
            yield _error("GA010", text, at, join.place)
        elif number is not None and not 1 <= number <= len(join.sources):
            text = f"the join into '{join.target}' wants {number} of {len(join.sources)} sources"
            yield _error("GA010", text, at, join.place)
        if len(join.sources) == 1:
            text = f"the join into '{join.target}' has one source; a plain edge does the same"
            yield Problem("GA019", "info", text, at, join.place)
    for name, count in Counter(join.id for join in graph.joins).items():
        if count > 1:
            text = f"{count} joins have the id '{name}'; give each its own: add_join_edge(..., id=...)"
            yield _error("GA010", text, (name,), next(j.place for j in graph.joins if j.id == name))


def check_breakpoints(graph: GraphDef, schema: StateSchema) -> Iterator[Problem]:
    """GA014: an interrupt list names a node that isn't there."""
    ids = _ids(graph)
    for name, place in [*graph.before, *graph.after]:
        if name not in ids:
            yield _unknown("GA014", "a breakpoint is set on", name, graph, (name,), place)


def check_nodes(graph: GraphDef, schema: StateSchema) -> Iterator[Problem]:
    """GA015: a node bound to nothing; GA007, GA009: destinations; GA405: fields that the state doesn't declare."""
    ids = _ids(graph)
    sources = {edge.source for edge in graph.edges}
    for node in graph.nodes:
        if node.kind == "function" and (not callable(node.fn) or not takes_arguments(node.fn, 1 + _context(node))):
            text = f"node '{node.id}' is bound to {node.fn!r}; it needs fn(state) or fn(state, ctx)"
            yield _error("GA015", text, (node.id,), node.place)
        if node.kind in ("llm", "tools", "code", "skill") and node.fn is None and not node.config:  # from a document
            text = f"node '{node.id}' of kind '{node.kind}' is bound to nothing; pass its function under its id"
            yield _error("GA015", text, (node.id,), node.place)
        if node.kind == "subgraph" and not isinstance(node.child, CompiledGraph):
            text = f"node '{node.id}' has no compiled graph as its child, but {node.child!r}; pass graph.compile()"
            yield _error("GA015", text, (node.id,), node.place)
        for target in (node.destinations or {}).values():
            if target not in ids and target != END:
                yield _unknown("GA007", f"a destination of '{node.id}' is", target, graph, (node.id,), node.place)
        yield from _fields(node, schema)
        if node.kind == "map":
            for role in ("worker", "collect"):
                name = node.config[role]
                if name not in ids and (role == "worker" or name != END):
                    yield _unknown("GA007", f"{role} of '{node.id}' is", name, graph, (node.id,), node.place)
        if node.kind == "function" and node.destinations is None:
            jumps, seen = visible_jumps(node.fn, ids)
            if jumps and not seen and node.id not in sources:
                text = (
                    f"node '{node.id}' jumps (Command.goto or Send) to nodes that can't be seen in its function; "
                    f"declare destinations=[...]"
                )
                yield _error("GA009", text, (node.id,), node.place)


def _context(node: NodeDef) -> int:
    return int(wants_context(node.fn)) if node.fn else 0


def _fields(node: NodeDef, schema: StateSchema) -> Iterator[Problem]:
    named = {"reads": node.reads, "writes": node.writes}
    if node.kind == "map":
        named = {"over": (node.config["over"],), "item_key": (node.config["item_key"],)}
    if node.cache is not None:
        named["cache fields"] = node.cache.fields
    for role, fields in named.items():
        for name in fields or ():
            if name not in schema.fields:
                text = f"{role} of '{node.id}' names '{name}', which the state doesn't declare: "
                yield _error("GA405", text + alternatives(name, schema.names), (node.id, name), node.place)


def check_interface(graph: GraphDef, schema: StateSchema) -> Iterator[Problem]:
    """GA405 for `inputs` and `outputs`; unknown nodes in policies and callbacks."""
    for role, fields in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        for name in fields or ():
            if name not in schema.fields:
                text = f"{role} names '{name}', which the state doesn't declare: {alternatives(name, schema.names)}"
                yield _error("GA405", text, (name,), Place())
    ids = _ids(graph)
    for node, guards in graph.must_pass:
        for name in (node, *guards):
            if name not in ids:
                yield _unknown("GA006", "must_pass names", name, graph, (name,), Place())
    for target, _ in graph.callbacks:
        if target is not None and target not in ids:
            yield _unknown("GA006", "callbacks are set on", target, graph, (target,), Place())


def _rival_joins(graph: GraphDef) -> Iterator[Problem]:
    """GA020: two active joins that wait for each other, so that neither could ever be judged."""
    for one, other in rival_joins(graph):
        text = (
            f"the active joins '{one.id}' and '{other.id}' wait for each other: each can still bring a source of the "
            f"other; make one of them mode 'all', or let one lead to the other only"
        )
        yield _error("GA020", text, (one.target, other.target), one.place)


CHECKS: tuple[Check, ...] = (
    check_schema,
    check_entry,
    check_ids,
    check_edges,
    check_routes,
    check_joins,
    check_breakpoints,
    check_nodes,
    check_interface,
)
