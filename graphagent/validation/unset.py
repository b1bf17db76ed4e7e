"""GA401 and GA402: fields that a node needs, or its router, and that may be unset when it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from graphagent.graph.names import START
from graphagent.validation.access import Access, Reading, by_field
from graphagent.validation.flow import Flow
from graphagent.validation.report import Diagnostic
from graphagent.validation.subject import Subject

MOST_WAYS = 50
"""Findings of one graph for which a way is looked for, to be shown in the message."""


def unset_reads(subject: Subject, flow: Flow, reached: Sequence[Access]) -> Iterator[Diagnostic]:
    """All findings of both rules. Where a node before the reader writes what isn't known, nothing is said."""
    found = _Found(subject, flow, reached)
    for access in reached:
        name = access.node
        unset = flow.without(access.reads.needs, flow.seen(name))
        missing = flow.without(unset, flow.overlaid(name))
        late = flow.without(access.routing.needs, flow.routed(name)) - access.reads.needs
        for field in sorted(missing):
            yield from found.judged(access, field, access.reads, f"node '{name}'")
        for field in sorted(late):
            yield from found.judged(access, field, access.routing, f"the router of node '{name}'")
        for field in sorted(unset - missing):
            yield found.only_sent(access, field)


class _Found:
    """Tells whether a field that is not surely set can be set at all."""

    def __init__(self, subject: Subject, flow: Flow, reached: Sequence[Access]) -> None:
        self.subject = subject
        self.flow = flow
        self.writers = by_field(reached, lambda access: access.writes.fields)
        self.unknown = self._mask(access for access in reached if access.writes.origin == "unknown")
        self.guessed = self._mask(access for access in reached if access.writes.origin == "inferred")
        self.before = _before(subject)
        self.ways = 0

    def _mask(self, nodes: Iterable[Access]) -> int:
        found = 0
        for access in nodes:
            found |= 1 << self.subject.graph.index[access.node]
        return found

    def judged(self, access: Access, field: str, reading: Reading, reader: str) -> Iterator[Diagnostic]:
        """GA401 if nothing before the reader writes the field, else GA402."""
        before = self.before[access.node]
        if before & self.unknown:
            return
        inferred = reading.origin != "declared" or bool(before & self.guessed)
        writers = self.writers.get(field, [])
        sources = [other.node for other in writers if self._mask([other]) & before and self._hands_on(other, access)]
        if reading is access.routing and field in access.writes.fields:
            sources.append(access.node)
        if sources:
            yield self._sometimes_unset(access.node, field, reader, sources, inferred)
        else:
            elsewhere = [other.node for other in writers if other is not access]
            yield self._never_set(access.node, field, reader, elsewhere, inferred)

    def _hands_on(self, writer: Access, reader: Access) -> bool:
        """True if what is written can come to the reader: a writer that leads there only by failing has not written."""
        drawing, index = self.subject.digraph, self.subject.graph.index
        return any(
            following == reader.node or (following in index and self.before[reader.node] >> index[following] & 1)
            for following, way in drawing.adj[writer.node].items()
            if way["kinds"] != {"error"}
        )

    def only_sent(self, access: Access, field: str) -> Diagnostic:
        """GA402 for a field that only an overlay brings, on some ways."""
        name = access.node
        return self.subject.finding(
            "GA402",
            f"node '{name}' reads '{field}', which only the items that are sent to it bring along; on another way here "
            f"nothing writes it: give the field a default, or send every run of '{name}' an overlay with it",
            (name, field),
            inferred=access.reads.origin != "declared",
        )

    def _never_set(self, name: str, field: str, reader: str, elsewhere: list[str], inferred: bool) -> Diagnostic:
        if elsewhere:
            shown = ", ".join(f"'{other}'" for other in elsewhere[:3])
            why = f"only {shown}, which {'does' if len(elsewhere) == 1 else 'do'} not lead to '{name}', writes it"
            if any(self.before[name] >> self.subject.graph.index[other] & 1 for other in elsewhere):
                why = f"only {shown} writes it, of which a failure leads to '{name}', but no success"
        else:
            why = f"nothing before '{name}' writes it"
        return self.subject.finding(
            "GA401",
            f"{reader} reads '{field}', which has no default and is no input, and {why}: give the field a default, "
            f"name it in inputs=[...], or write it in a node that leads to '{name}'",
            (name, field),
            fix=f"give '{field}' a default, name it in inputs=[...], or write it before '{name}'",
            inferred=inferred,
        )

    def _sometimes_unset(self, name: str, field: str, reader: str, sources: list[str], inferred: bool) -> Diagnostic:
        way = self._way_without(name, field)
        shown = " -> ".join(f"'{node}'" for node in way)
        where = f"on the way {shown} nothing writes it" if way else "not every way here surely writes it"
        written = ", ".join(f"'{source}'" for source in sorted(sources)[:3])
        return self.subject.finding(
            "GA402",
            f"{reader} reads '{field}', which {written} may have written, but {where}: give the field a default, or "
            f"write it on every way to '{name}'",
            (name, field),
            fix=f"give '{field}' a default, or write it on every way to '{name}'",
            inferred=inferred,
        )

    def _way_without(self, name: str, field: str) -> list[str]:
        """A shortest way to a node on which no node surely writes the field; empty if the drawing has none."""
        import networkx

        self.ways += 1
        if self.ways > MOST_WAYS:
            return []
        drawing = self.subject.digraph
        access = self.flow.access

        def passes(node: str) -> bool:
            return node in (START, name) or (node in access and field not in access[node].writes.surely)

        try:
            allowed = drawing.subgraph(node for node in drawing if passes(node))
            found: list[str] = networkx.shortest_path(allowed, START, name)[1:]
        except networkx.NetworkXNoPath:
            return []
        return found


def _before(subject: Subject) -> dict[str, int]:
    """Per node the set, as a bit mask over node indices, of those that lead to it, itself left out."""
    import networkx

    index = subject.graph.index
    condensed = networkx.condensation(subject.digraph)
    members = {
        number: sum(1 << index[name] for name in data["members"] if name in index)
        for number, data in condensed.nodes(data=True)
    }
    upto: dict[int, int] = {}
    for number in networkx.topological_sort(condensed):
        upto[number] = members[number]
        for earlier in condensed.predecessors(number):
            upto[number] |= upto[earlier]
    return {name: upto[condensed.graph["mapping"][name]] & ~(1 << place) for name, place in index.items()}
