"""What a node may choose when it ends, as far as it is declared: the alternatives that validation goes through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from typing import Any, NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef, RouteDef
from graphagent.graph.jumps import jump_kinds
from graphagent.graph.marking import Completion
from graphagent.graph.names import END, END_INDEX
from graphagent.validation.returns import gotos, may_choose_none, may_stay

MOST = 1024
"""Alternatives of one node that are gone through; a node with more is not decided (GA309)."""


class Outcome(NamedTuple):
    """One alternative. `text` names it among those of its node (empty: the only one); `labels`: what each of its
    routes chose, by place of the route; `wide`: more than one item of a fan-out; the rest as in `Completion`."""

    text: str = ""
    chosen: tuple[int, ...] = ()
    goto: tuple[int, ...] | None = None
    sends: tuple[int, ...] | None = None
    error: str | None = None
    labels: tuple[str, ...] = ()
    wide: bool = False

    def completion(self, position: int) -> Completion:
        """What `fire` takes for the activation at this place of the frontier."""
        sends: Any = None if self.sends is None else tuple((target, {}) for target in self.sends)
        return Completion(position, self.chosen, self.goto, sends, None, self.error)

    def targets(self) -> tuple[int, ...]:
        """Every node it names, END included."""
        return (*self.chosen, *(self.goto or ()), *(self.sends or ()))


class Choices(NamedTuple):
    """The alternatives of every node, by index; `cut`: nodes that have more than are listed; `open`: nodes that may
    lead anywhere, since their targets aren't declared."""

    of: tuple[tuple[Outcome, ...], ...]
    cut: frozenset[int] = frozenset()
    open: frozenset[int] = frozenset()

    @property
    def leaving(self) -> frozenset[int]:
        """Nodes that may jump to END, which they need not declare."""
        return frozenset(i for i, listed in enumerate(self.of) if any(END_INDEX in (o.goto or ()) for o in listed))


def choices(graph: CompiledGraph) -> Choices:
    """The declared alternatives of every node of the graph."""
    found: list[tuple[Outcome, ...]] = []
    cut: set[int] = set()
    unknown: set[int] = set()
    routes: dict[str, list[RouteDef]] = {}
    for route in graph.routes:
        routes.setdefault(route.source, []).append(route)
    apart = tied(graph)
    for i, node in enumerate(graph.defs):
        listed = list(_first(_outcomes(graph, node, routes.get(node.id, []), apart), MOST + 1))
        if len(listed) > MOST:
            cut.add(i)
        if any(route.labels is None for route in routes.get(node.id, ())) or _jumps_anywhere(graph, i):
            unknown.add(i)
        listed = listed[:MOST]
        found.append((listed[0]._replace(text=""),) if len(listed) == 1 else tuple(listed))
    return Choices(tuple(found), frozenset(cut), frozenset(unknown))


def _first(items: Iterator[Outcome], count: int) -> Iterator[Outcome]:
    for _, item in zip(range(count), items, strict=False):
        yield item


def _jumps_anywhere(graph: CompiledGraph, index: int) -> bool:
    kinds = jump_kinds(graph.defs[index].fn)
    return graph.jumps[index].any_node and bool(kinds) and not graph.jumps[index].labels


def _outcomes(
    graph: CompiledGraph, node: NodeDef, routes: Sequence[RouteDef], apart: frozenset[str]
) -> Iterator[Outcome]:
    index = graph.index[node.id]
    if node.kind == "map":
        worker, collect = graph.index[node.config["worker"]], _at(graph, node.config["collect"])
        yield from _sends(graph, [worker])
        yield Outcome("none", goto=(collect,))
    else:
        jumps = list(_jumps(graph, node, index))
        yield from jumps
        if routes or not jumps or graph.plain[index] or graph.arrivals[index]:
            yield from _routed(graph, routes, node.id in apart)
        elif may_stay(node.fn):
            yield Outcome("stay")
    for _, target in graph.failures[index]:
        yield Outcome(f"error:{_shown(graph.name_of(target))}", goto=(target,), error="error")


def _shown(label: str) -> str:
    return "+".join("END" if part == END else part for part in label.split("+"))


def _at(graph: CompiledGraph, name: str) -> int:
    return END_INDEX if name == END else graph.index[name]


def _routed(graph: CompiledGraph, routes: Sequence[RouteDef], apart: bool) -> Iterator[Outcome]:
    """Every combination of what the routes may choose; without routes, the one way that is left."""
    options = [route_options(graph, route, apart) for route in routes]
    for combined in product(*options):
        chosen = tuple(dict.fromkeys(chain.from_iterable(targets for _, targets in combined)))
        labels = tuple(label for label, _ in combined)
        yield Outcome(",".join(map(_shown, labels)), chosen=chosen, labels=labels)


def route_options(graph: CompiledGraph, route: RouteDef, apart: bool) -> list[tuple[str, tuple[int, ...]]]:
    """Label (or labels joined by `+`) and targets: an entry per set of targets, or with `apart` per label."""
    if route.labels is None:
        every = [(name, (i,)) for i, name in enumerate(graph.names)]
        return [*every, (END, (END_INDEX,))]
    by_target: dict[int, str] = {}
    for label, target in route.labels.items():
        if target == END or target in graph.index:
            by_target.setdefault(_at(graph, target), str(getattr(label, "value", label)))
    default = None if route.default is None else _at(graph, route.default)
    if route.sets is not None:
        wanted: Mapping[str, int] = {text: target for target, text in by_target.items()}
        return [("+".join(s), tuple(wanted[x] for x in s if x in wanted)) for s in route.sets]
    if apart and not route.many:
        return _each_label(graph, route, default)
    if not route.many:
        if default is not None:
            by_target.setdefault(default, "otherwise")
        single: list[tuple[str, tuple[int, ...]]] = [(text, (target,)) for target, text in by_target.items()]
        return single
    targets = list(by_target.items())
    subsets = chain.from_iterable(combinations(targets, size) for size in range(1, len(targets) + 1))
    listed: list[tuple[str, tuple[int, ...]]] = [
        ("+".join(text for _, text in s), tuple(target for target, _ in s)) for s in _cut(subsets)
    ]
    if default is not None and (default,) not in [targets for _, targets in listed]:
        listed.append(("otherwise", (default,)))
    if default is None and (route.empty_ok or may_choose_none(route.router)):
        listed.append(("none", ()))
    return listed


def _each_label(graph: CompiledGraph, route: RouteDef, default: int | None) -> list[tuple[str, tuple[int, ...]]]:
    listed: list[tuple[str, tuple[int, ...]]] = [
        (str(getattr(label, "value", label)), (_at(graph, target),))
        for label, target in (route.labels or {}).items()
        if target == END or target in graph.index
    ]
    return listed if default is None else [*listed, ("otherwise", (default,))]


def tied(graph: CompiledGraph) -> frozenset[str]:
    """The nodes whose labels matter one by one: named by `same_as` or `assume`, or saying `same_as`."""
    alike = [name for route in graph.routes if route.same_as for name in (route.source, route.same_as)]
    return frozenset([*alike, *(name for choice in graph.definition.assumptions for name in choice)])


def _cut(subsets: Iterator[Any]) -> list[Any]:
    return [subset for _, subset in zip(range(MOST + 1), subsets, strict=False)]


def _jumps(graph: CompiledGraph, node: NodeDef, index: int) -> Iterator[Outcome]:
    """Gotos and Sends: to what is declared, or can be seen in the function."""
    kinds = node.metadata.get("jumps") or jump_kinds(node.fn)
    declared = node.destinations
    written = {name for names in gotos(node.fn).sets for name in names}
    if declared is not None:
        targets = list(dict.fromkeys(_at(graph, target) for target in declared.values()))
        kinds = kinds or ("goto",)
    elif kinds:
        static = {*graph.plain[index], *(graph.join_tables[j].target for j, _ in graph.arrivals[index])}
        seen = [
            target
            for label, target in graph.jumps[index].labels.items()
            if label in written or (target not in static and (gotos(node.fn).open or "send" in kinds))
        ]
        targets = seen or ([*range(len(graph.names)), END_INDEX] if graph.jumps[index].any_node else [])
    else:
        return
    if END in written and END_INDEX not in targets:  # which a node need not declare
        targets.append(END_INDEX)
    collector = node.metadata.get("collector")
    if "goto" in kinds:
        yield from _gotos(graph, node, index, targets)
    if "send" in kinds:
        named = node.metadata.get("members")
        members = [target for target in targets if target != END_INDEX]
        members = members if named is None else [graph.index[name] for name in named]
        yield from _sends(graph, members)
        if collector is not None:
            yield Outcome("none", goto=(_at(graph, collector),))
        elif "goto" not in kinds:
            yield Outcome("none", sends=())


def _gotos(graph: CompiledGraph, node: NodeDef, index: int, targets: Sequence[int]) -> Iterator[Outcome]:
    """A goto to each target, and to several at once where the function says so; none alone of those that it is only
    seen to name together."""
    seen = gotos(node.fn)
    labels = graph.jumps[index].labels
    known = {END: END_INDEX, **graph.index, **labels} if graph.jumps[index].any_node else {END: END_INDEX, **labels}
    sets = [tuple(dict.fromkeys(known[name] for name in names if name in known)) for names in seen.sets]
    alone = {names[0] for names in sets if len(names) == 1}
    together = set[int]() if seen.open else {target for names in sets if len(names) > 1 for target in names}
    for target in targets:
        if target in alone or target not in together:
            yield Outcome(f"goto:{_shown(graph.name_of(target))}", goto=(target,))
    for names in dict.fromkeys(names for names in sets if len(names) > 1):
        yield Outcome(f"goto:{'+'.join(_shown(graph.name_of(target)) for target in names)}", goto=names)


def _sends(graph: CompiledGraph, members: Sequence[int]) -> Iterator[Outcome]:
    for target in members:
        yield Outcome(f"send:{graph.names[target]}", sends=(target,))
    for target in members:
        yield Outcome(f"send:{graph.names[target]}*2", sends=(target, target), wide=True)
    if len(members) > 1:
        text = "+".join(graph.names[target] for target in members)
        yield Outcome(f"send:{text}", sends=tuple(members))
