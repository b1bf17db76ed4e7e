"""Which fields are surely set where: a must-analysis over all ways of a graph (greatest fixed point, on bit masks).

On plain ways only what every one of them brings is sure. A join that waits for k of its sources brings a field if fewer
than k of them lack it, so one that waits for all brings what any of them does. A node adds what it writes on every
return, and what it must have found set, since else it has failed. An overlay is seen by the node it is sent to, and by
no other. A node whose writes are not known may have set anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.draw import lines
from graphagent.graph.names import END, START
from graphagent.validation.outcomes import choices

if TYPE_CHECKING:
    from graphagent.validation.access import Access


class Way(NamedTuple):
    """One way into a node: from `sources`, of which `need` must have ended. `failed`: its only source has failed, so it
    has written nothing. `overlay`: the fields that are laid over the state there (a bit mask)."""

    target: str
    sources: tuple[str, ...]
    need: int
    failed: bool = False
    overlay: int = 0


class Flow:
    """The fields that are set before and after each node of a graph, and at its end."""

    def __init__(self, graph: CompiledGraph, found: Iterable[Access]) -> None:
        self.graph = graph
        self.access = {access.node: access for access in found}
        self.bits = {name: 1 << i for i, name in enumerate(graph.schema.names)}
        self.everything = (1 << len(self.bits)) - 1
        inputs = graph.definition.inputs
        defaults = [f.name for f in graph.schema if not f.required]
        self.given = self.mask(defaults) | self.mask(inputs or ())
        found_choices = choices(graph)
        self.leaving = frozenset(graph.names[i] for i in found_choices.leaving)
        self.sent = {
            name: frozenset(graph.name_of(target) for outcome in listed for target in outcome.sends or ())
            for name, listed in zip(graph.names, found_choices.of, strict=True)
        }
        self.ways: dict[str, list[Way]] = {name: [] for name in (*graph.names, END)}
        for way in self._ways():
            self.ways[way.target].append(way)
        self.before = dict.fromkeys(graph.names, self.everything)
        self.after = dict.fromkeys(graph.names, self.everything)
        self._solve()

    def mask(self, names: Iterable[str]) -> int:
        """The bit mask of fields."""
        found = 0
        for name in names:
            found |= self.bits.get(name, 0)
        return found

    def names(self, mask: int) -> frozenset[str]:
        """The fields of a bit mask."""
        return frozenset(name for name, bit in self.bits.items() if mask & bit)

    def without(self, names: Iterable[str], mask: int) -> frozenset[str]:
        """Those of some fields that are not in a bit mask."""
        return frozenset(name for name in names if not self.bits.get(name, 0) & mask)

    def seen(self, node: str) -> int:
        """The fields that are surely set for a node, overlays included."""
        found = self.everything
        for way in self.ways[node]:
            found &= self.brought(way) | way.overlay
        return found

    def brought(self, way: Way) -> int:
        """The fields of the state that are surely set where a way arrives."""
        if not way.sources:
            return self.given
        if way.failed:
            return self.before[way.sources[0]]
        if len(way.sources) == 1:
            return self.after[way.sources[0]]
        found = 0
        for bit in self.bits.values():
            lacking = sum(not self.after[source] & bit for source in way.sources)
            if lacking < way.need:
                found |= bit
        return found

    def at_end(self) -> int:
        """The fields that are surely set when END is reached, whichever way."""
        found = self.everything
        for way in self.ways[END]:
            found &= self.brought(way)
        return found

    def overlaid(self, node: str) -> int:
        """The fields that some way lays over the state of a node."""
        found = 0
        for way in self.ways[node]:
            found |= way.overlay
        return found

    def routed(self, node: str) -> int:
        """The fields that are surely set for the routers of a node: after its own writes, without an overlay."""
        return self.before[node] | self.left(node)

    def left(self, node: str) -> int:
        """The fields that a node which has ended well has surely written, or met."""
        access = self.access[node]
        if access.writes.origin == "unknown":
            return self.everything
        met = 0 if self.overlaid(node) else self.mask(access.reads.needs)
        return self.mask(access.writes.surely) | met

    def _solve(self) -> None:
        adds = {name: self.left(name) | self.mask(access.routing.needs) for name, access in self.access.items()}
        followers: dict[str, set[str]] = {name: set() for name in self.graph.names}
        for way in (way for ways in self.ways.values() for way in ways if way.target != END):
            for source in way.sources:
                followers[source].add(way.target)
        todo = list(reversed(self.graph.names))
        waiting = set(todo)
        while todo:
            name = todo.pop()
            waiting.discard(name)
            before = self.everything
            for way in self.ways[name]:
                before &= self.brought(way)
            after = before | adds[name]
            if (before, after) != (self.before[name], self.after[name]):
                self.before[name], self.after[name] = before, after
                fresh = followers[name] - waiting
                waiting |= fresh
                todo += sorted(fresh)

    def _ways(self) -> Iterator[Way]:
        graph = self.graph
        drawn = set()
        for line in lines(graph):
            if line.kind == "join" or self._arrives(line.source, line.target, line.kind):
                continue
            drawn.add((line.source, line.target))
            sources = () if line.source == START else (line.source,)
            none = line.kind == "map" and line.label == "none"
            overlay = 0 if none or not sources else self._overlay(line.source, line.target, line.kind)
            yield Way(line.target, sources, 1, line.kind == "error", overlay)
        for name, access in self.access.items():
            for target in access.overlays:
                if target in graph.index and (name, target) not in drawn:
                    yield Way(str(target), (name,), 1, overlay=self._overlay(name, str(target), "jump"))
        for name in self.leaving:
            if (name, END) not in drawn:
                yield Way(END, (name,), 1)
        for join in graph.joins:
            need = {"all": len(join.sources), "active": 1, "any": 1}.get(str(join.mode), join.mode)
            yield Way(join.target, join.sources, int(need))

    def _arrives(self, source: str, target: str, kind: str) -> bool:
        """True for a route or jump that counts as the arrival of its source at a join."""
        if kind not in ("route", "jump") or target not in self.graph.index:
            return False
        pair = (self.graph.index[source], self.graph.index[target])
        return pair in self.graph.via_join and pair[1] not in self.graph.plain[pair[0]]

    def _overlay(self, source: str, target: str, kind: str) -> int:
        overlays = self.access[source].overlays
        if target in overlays:
            names = overlays[target]
        elif kind == "jump" and None in overlays and target in self.sent[source]:
            names = None
        else:
            return 0
        return self.everything if names is None else self.mask(names)


def needed(graph: CompiledGraph, found: Iterable[Access]) -> frozenset[str]:
    """The fields without a default that a node or router of a graph needs before the graph itself has surely written
    them, so that they have to be handed in."""
    flow = Flow(graph, found)
    wanted: set[str] = set()
    for name, access in flow.access.items():
        wanted |= flow.without(access.reads.needs, flow.seen(name))
        wanted |= flow.without(access.routing.needs, flow.routed(name)) - access.reads.needs
    return frozenset(wanted)


def surely_written(graph: CompiledGraph, found: Iterable[Access]) -> frozenset[str]:
    """The fields that a graph has surely written when it reaches END, whatever it is given."""
    flow = Flow(graph, found)
    flow_names = flow.names(flow.at_end()) if flow.ways[END] else frozenset()
    return flow_names - flow.names(flow.given)
