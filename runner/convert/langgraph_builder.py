"""From LangGraph's `StateGraph` builder, which knows joins and declared targets, to the canonical document.

How the two differ: LangGraph's END is only the lack of further tasks, so a list of Sends that may be empty beside other
ways leads to END; a goto fires beside plain edges, so declared destinations become a route; a deferred node waits for
what still runs, so several ways into it become a join of mode `active`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from graphagent.graph.names import END, START
from runner.convert.routers import Leads, leads, returns_command


class Way(NamedTuple):
    """One thing that decides where a node leads. `labels`: None if its targets aren't known."""

    labels: dict[str, str] | None
    seen: Leads


class Conversion:
    """Collects the document of one builder; `document` is the result."""

    def __init__(self, builder: Any, name: str) -> None:
        self.builder = builder
        self.names = list(builder.nodes)
        self.order = {name: i for i, name in enumerate([START, *self.names, END])}
        self.edges = sorted(builder.edges, key=lambda edge: tuple(self.order.get(end, -1) for end in edge))
        self.waiting = sorted((list(sources), target) for sources, target in builder.waiting_edges)
        self.document: dict[str, Any] = {
            "name": name,
            "engine": "superstep",
            "entry": [],
            "nodes": {id: _node(spec) for id, spec in builder.nodes.items()},
            "edges": [],
            "routes": [],
            "joins": [],
            "errors": [],
            "state": _state(getattr(builder, "channels", {})),
            "inputs": None,
        }
        self.orphans = {*self.names} - set(self._declared())
        self._enter()
        for source in self.names:
            self._leave(source, source)
        self._join()
        defer(self.document, [name for name in self.names if getattr(builder.nodes[name], "defer", False)])

    def _declared(self) -> Iterator[str]:
        """The nodes that some edge, branch, destination or error handler leads to."""
        yield from (target for _, target in [*self.edges, *self.waiting])
        for branches in self.builder.branches.values():
            for branch in branches.values():
                yield from (branch.ends or {}).values()
        for spec in self.builder.nodes.values():
            yield from getattr(spec, "ends", None) or ()
            yield getattr(spec, "error_handler_node", None) or END

    def _enter(self) -> None:
        """START leads to nodes, or to a router of its own where its edges are conditional."""
        if not self.builder.branches.get(START):
            self.document["entry"] = [target for source, target in self.edges if source == START]
            return
        router = fresh(self.document["nodes"], "start")
        self.document["nodes"] = {router: {"kind": "router", **UNKNOWN}, **self.document["nodes"]}
        self.document["entry"] = [router]
        self._leave(START, router)

    def _leave(self, source: str, name: str) -> None:
        """Plain edges, routes and error edges out of one node, which the document calls `name`."""
        plain = [[name, target] for start, target in self.edges if start == source]
        self.document["edges"] += plain
        ways = list(self._ways(source))
        lone = len(ways) == 1 and not plain and not any(source in sources for sources, _ in self.waiting)
        for way in ways:
            self._route(name, way, lone, bool(plain))
        handler = getattr(self.builder.nodes.get(source), "error_handler_node", None)
        if handler in self.document["nodes"]:
            self.document["errors"].append([name, handler, ["Exception"]])

    def _ways(self, source: str) -> Iterator[Way]:
        for branch in self.builder.branches.get(source, {}).values():
            seen = leads(branch.path, self.names)
            named = {name: name for name in seen.named} if seen.known else None
            yield Way({str(k): v for k, v in branch.ends.items()} if branch.ends else named, seen)
        spec = self.builder.nodes.get(source)
        if spec is None:
            return
        seen = leads(spec.runnable, self.names)
        ends = getattr(spec, "ends", None) or ()
        if not ends and not seen.jumps:
            return
        declared = {label or name: name for name, label in ends.items()} if isinstance(ends, Mapping) else None
        labels: dict[str, str] | None = declared or {name: name for name in ends or seen.named}
        if not ends and not seen.known:
            labels = None
        elif not returns_command(spec.runnable):
            labels = {**(labels or {}), "no goto": END}  # destinations say where it may go, not that it must
        yield Way(labels, seen)

    def _route(self, source: str, way: Way, lone: bool, beside: bool) -> None:
        """The routes of the document for one way out. `lone`: there is no other; `beside`: there are plain edges."""
        labels, many, sent = way.labels, way.seen.many, self._sent(way)
        if labels is None:
            self.document["unchecked"] = True
        elif sent and lone:
            rest = labels if way.seen.sends is None else {k: v for k, v in labels.items() if v not in sent}
            self.document["routes"].append(
                {"from": source, "select": "map", "targets": sent, "collector": END if rest else None}
            )
            labels = rest
        elif sent:
            labels, many = {**{target: target for target in sent}, **labels}, True
        sets = way.seen.sets if labels is not None and many and not sent else None
        if labels is not None and sets and all(name in labels for chosen in sets for name in chosen):
            chosen = [[labels[name] for name in one] for one in sets]
            self.document["routes"].append({"from": source, "select": "sets", "targets": chosen, "with_edges": beside})
        elif labels is not None and len(set(labels.values())) == 1 and not many and not sent:
            self._edge(source, *set(labels.values()))
        elif labels is None or labels:
            route: dict[str, Any] = {"from": source, "select": "many" if many else "one", "targets": labels}
            self.document["routes"].append(route | {"with_edges": beside, "default": END if many else None})

    def _edge(self, source: str, target: str) -> None:
        """What always leads to one target is an edge."""
        if [source, target] not in self.document["edges"]:
            self.document["edges"].append([source, target])

    def _sent(self, way: Way) -> list[str]:
        """The nodes that are sent to. Declared targets are trusted: a Send to another node counts if nothing else
        leads there."""
        if way.labels is None:
            return []
        declared = [target for target in dict.fromkeys(way.labels.values()) if target != END]
        if way.seen.sends is None:
            return declared
        return [target for target in way.seen.sends if target in declared or target in self.orphans]

    def _join(self) -> None:
        """Waiting edges, and what came `then` after a branch in older versions."""
        taken: dict[str, int] = {}
        then = [
            ([name for name in branch.ends.values() if name != END], branch.then, "active")
            for branches in self.builder.branches.values()
            for branch in branches.values()
            if getattr(branch, "then", None) and branch.ends
        ]
        for sources, target, mode in [*((s, t, "all") for s, t in self.waiting), *then]:
            taken[target] = taken.get(target, 0) + 1
            id = target if taken[target] == 1 else f"{target}#{taken[target]}"
            join = {"id": id, "from": sources, "to": target, "mode": mode}
            self.document["joins"].append(join)
            self._part(join)

    def _part(self, join: dict[str, Any]) -> None:
        """A choice of a join's target by one of its sources is no arrival in LangGraph: it triggers the target beside
        the join. Both then come by a node of their own, so that they come as late."""
        target = join["to"]
        chosen = [r for r in self.document["routes"] if r["from"] in join["from"] and target in _targets(r)]
        for route in chosen:
            between(self.document, route, target)
        if chosen:
            join["to"] = fresh(self.document["nodes"], f"join to {target}")
            self.document["nodes"][join["to"]] = {"kind": "join", **UNKNOWN}
            self.document["edges"].append([join["to"], target])


UNKNOWN: Mapping[str, Any] = {"reads": None, "writes": None}
"""What a node of another framework reads and writes."""


def fresh(taken: Collection[str], wanted: str) -> str:
    """An id that no node has."""
    while wanted in taken:
        wanted += "_"
    return wanted


def between(document: dict[str, Any], route: dict[str, Any], target: str) -> str:
    """A node of its own on the way from a route to one of its targets; its id."""
    name = fresh(document["nodes"], f"{route['from']} to {target}")
    document["nodes"][name] = {"kind": "function", **UNKNOWN}
    document["edges"].append([name, target])
    targets = route["targets"]
    if isinstance(targets, dict):
        route["targets"] = {label: name if end == target else end for label, end in targets.items()}
    else:
        route["targets"] = [_renamed(item, target, name) for item in targets]
    return name


def _renamed(item: Any, old: str, new: str) -> Any:
    if isinstance(item, list):
        return [_renamed(name, old, new) for name in item]
    return new if item == old else item


def defer(document: dict[str, Any], deferred: Iterable[str]) -> None:
    """A deferred node runs once, when all that leads to it has come or can't come any more."""
    joined = {join["to"] for join in document["joins"]}
    for target in deferred:
        plain = [source for source, end in document["edges"] if end == target]
        routes = [route for route in document["routes"] if target in _targets(route)]
        if target in joined or len(plain) + len(routes) < 2:
            continue
        sources = [*plain, *(between(document, route, target) for route in routes)]
        document["edges"] = [edge for edge in document["edges"] if edge[1] != target]
        document["joins"].append({"id": target, "from": sources, "to": target, "mode": "active"})


def _targets(route: Mapping[str, Any]) -> list[str]:
    targets = route["targets"]
    if isinstance(targets, dict):
        return list(targets.values())
    return [name for item in targets or () for name in (item if isinstance(item, list) else [item])]


def _node(spec: Any) -> dict[str, Any]:
    runnable = spec.runnable
    kind = "subgraph" if hasattr(runnable, "get_graph") and hasattr(runnable, "nodes") else "function"
    if getattr(runnable, "tools_by_name", None):
        kind = "tool"
    retried = getattr(spec, "retry_policy", None) or getattr(spec, "retry", None)
    return {"kind": kind, **UNKNOWN, **({"retry": True} if retried else {})}


def _state(channels: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, as far as their channels tell: replaced by one writer, or merged by some function."""
    return {
        name: {
            "type": "Any",
            "reducer": "last" if type(channel).__name__ == "LastValue" else "custom",
            "required": True,
        }
        for name, channel in channels.items()
        if not name.startswith("_")  # which no state class of ours can have
    }
