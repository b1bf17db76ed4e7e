"""What of a graph has been seen to happen: nodes, edges, labels of routes, joins; counted, merged, kept as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from graphagent.errors import UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import RouteDef
from graphagent.graph.draw import lines
from graphagent.graph.names import END, START
from graphagent.validation.taken import Taken

SCHEMA = 1
OTHERWISE = "otherwise"
"""The label of a route's default."""
_SEEN = {"nodes": "run", "edges": "taken", "labels": "chosen", "joins": "filled"}


class Edge(NamedTuple):
    """An edge by the ids of its ends; `kind`: edge, route, join, jump, map or error."""

    source: str
    target: str
    kind: str

    def __str__(self) -> str:
        return f"{_shown(self.source)} -> {_shown(self.target)}" + (f" ({self.kind})" if self.kind != "edge" else "")


class Label(NamedTuple):
    """A label of a route: `route` is the place of the route among those of its node, from 0."""

    source: str
    route: int
    label: str
    target: str

    def __str__(self) -> str:
        number = f" (route {self.route + 1})" if self.route else ""
        return f"{self.source} ? {self.label} -> {_shown(self.target)}{number}"


class Coverage:
    """How often each part of one graph was seen; what was never seen is there with 0.

    `late` and `starved` say how often a join absorbed a late arrival or was still waiting at the end; neither is a
    goal, so only `joins` (firings) counts for `percent`. `ended` counts how runs ended.
    """

    def __init__(self, graph: CompiledGraph) -> None:
        self.graph = graph.name
        self.fingerprint = graph.fingerprint
        self.nodes: Counter[str] = Counter(dict.fromkeys(graph.names, 0))
        self.edges: Counter[Edge] = Counter({Edge(one.source, one.target, one.kind): 0 for one in lines(graph)})
        self.labels: Counter[Label] = Counter(dict.fromkeys(_labels(graph), 0))
        self.joins: Counter[str] = Counter({table.id: 0 for table in graph.join_tables})
        self.late: Counter[str] = Counter()
        self.starved: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self._kinds = _kinds(self.edges)

    def begin(self, graph: CompiledGraph) -> None:
        """Count that a run began: the edges out of START."""
        self.edges.update(Edge(START, name, "edge") for name in graph.entry_points)

    def count(self, graph: CompiledGraph, nodes: Iterable[str], taken: Taken, labels: Iterable[Label] = ()) -> None:
        """Count what one call of `fire` did; `nodes`: those that ended, `labels`: what their routers returned."""
        self.nodes.update(name for name in nodes if name in self.nodes)
        for way in taken.ways:
            ends = (graph.name_of(way.source), graph.name_of(way.target))
            kinds = self._kinds.get(ends, ())
            kind = way.kind if way.kind in kinds else next(iter(kinds), None)
            if kind is not None:  # else it is not declared, so that nobody can miss it
                self.edges[Edge(*ends, kind)] += 1
        self.labels.update(label for label in labels if label in self.labels)
        self.joins.update(graph.join_tables[join].id for join in taken.fired)
        self.late.update(graph.join_tables[join].id for join in taken.late)

    @property
    def _goals(self) -> tuple[tuple[str, Counter[Any]], ...]:
        return (("nodes", self.nodes), ("edges", self.edges), ("labels", self.labels), ("joins", self.joins))

    @property
    def seen(self) -> Mapping[str, tuple[int, int]]:
        """Per kind of part how many were seen, and how many there are."""
        return {name: (sum(map(bool, counts.values())), len(counts)) for name, counts in self._goals}

    @property
    def missing(self) -> Mapping[str, tuple[Any, ...]]:
        """Per kind of part those that were never seen, as declared."""
        return {name: tuple(part for part, count in counts.items() if not count) for name, counts in self._goals}

    def add(self, document: Mapping[str, Any]) -> int:
        """Add counts that `to_json` wrote; returns how many parts of it this version of the graph doesn't have.

        Raises UsageError for a document of another form.
        """
        try:
            given = _read(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"this is no coverage of schema {SCHEMA}: {type(error).__name__}: {error}") from error
        unknown = 0
        for name, counts in self._goals:
            for part, count in given[name].items():
                if part in counts:
                    counts[part] += count
                else:
                    unknown += 1
        self.late.update({name: n for name, n in given["late"].items() if name in self.joins})
        self.starved.update({name: n for name, n in given["starved"].items() if name in self.joins})
        self.ended.update(given["ended"])
        return unknown

    def to_json(self) -> dict[str, Any]:
        """Plain data that `add` reads."""
        seen = self.seen.items()
        return {
            "graph": self.graph,
            "fingerprint": self.fingerprint,
            "percent": round(percent([self]), 2),
            "seen": {name: {"seen": some, "of": every} for name, (some, every) in seen},
            "ended": dict(self.ended),
            "nodes": dict(self.nodes),
            "edges": [{**edge._asdict(), "count": count} for edge, count in self.edges.items()],
            "labels": [{**label._asdict(), "count": count} for label, count in self.labels.items()],
            "joins": {
                name: {"fired": count, "late": self.late[name], "starved": self.starved[name]}
                for name, count in self.joins.items()
            },
            "missing": {name: list(map(str, parts)) for name, parts in self.missing.items()},
        }


def percent(coverages: Iterable[Coverage]) -> float:
    """The share of all parts of these graphs that were seen, from 0 to 100."""
    pairs = [pair for coverage in coverages for pair in coverage.seen.values()]
    every = sum(of for _, of in pairs)
    return 100.0 * sum(seen for seen, _ in pairs) / every if every else 100.0


def coverage_text(coverage: Coverage) -> str:
    """A coverage as text: a line of figures, then what was never seen."""
    shown = [f"{name} {seen}/{of}" for name, (seen, of) in coverage.seen.items() if of]
    out = [f"{coverage.graph}: {percent([coverage]):.1f} % ({', '.join(shown)})"]
    for name, parts in coverage.missing.items():
        out += [f"  {name} never {_SEEN[name]}:"] if parts else []
        out += [f"    {part}" for part in parts]
    for said, counts in (("absorbed late arrivals", coverage.late), ("starved at the end", coverage.starved)):
        out += [f"  join '{name}' {said}: {count}" for name, count in counts.items()]
    return "\n".join(out)


def labels_of(route: RouteDef, place: int, nodes: Mapping[str, Any]) -> Iterator[Label]:
    """The labels of a route that lead somewhere, and its default; none where they aren't declared."""
    if route.labels is None:
        return
    for label, target in route.labels.items():
        if target == END or target in nodes:
            yield Label(route.source, place, label_text(label), target)
    if route.default is not None:
        yield Label(route.source, place, OTHERWISE, route.default)


def label_text(label: Any) -> str:
    """A label as text: the value of a member of an Enum."""
    return str(getattr(label, "value", label))


def routes_by_node(graph: CompiledGraph) -> Mapping[str, list[RouteDef]]:
    """The routes of each node that has any, in order."""
    found: dict[str, list[RouteDef]] = {}
    for route in graph.routes:
        found.setdefault(route.source, []).append(route)
    return found


def _labels(graph: CompiledGraph) -> Iterator[Label]:
    for routes in routes_by_node(graph).values():
        for place, route in enumerate(routes):
            yield from labels_of(route, place, graph.index)


def _kinds(edges: Iterable[Edge]) -> Mapping[tuple[str, str], list[str]]:
    kinds: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        kinds.setdefault((edge.source, edge.target), []).append(edge.kind)
    return kinds


def _read(document: Mapping[str, Any]) -> Mapping[str, Counter[Any]]:
    joins = document["joins"].items()
    return {
        "nodes": Counter(document["nodes"]),
        "edges": Counter({Edge(e["source"], e["target"], e["kind"]): int(e["count"]) for e in document["edges"]}),
        "labels": Counter(
            {Label(x["source"], x["route"], x["label"], x["target"]): int(x["count"]) for x in document["labels"]}
        ),
        "joins": Counter({name: int(one["fired"]) for name, one in joins}),
        "late": Counter({name: one["late"] for name, one in joins if one["late"]}),
        "starved": Counter({name: one["starved"] for name, one in joins if one["starved"]}),
        "ended": Counter(document["ended"]),
    }


def _shown(name: str) -> str:
    return {START: "START", END: "END"}.get(name, name)
