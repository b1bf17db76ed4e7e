"""GA406 and GA408: outputs that a run can end without, and writes that nobody gets to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from graphagent.graph.names import END, END_INDEX
from graphagent.graph.transitions import starving
from graphagent.validation.access import Access, by_field
from graphagent.validation.concurrency import together
from graphagent.validation.explore import Exploration, Hop, Pick
from graphagent.validation.flow import Flow
from graphagent.validation.report import Diagnostic
from graphagent.validation.subject import Subject


def missing_outputs(subject: Subject, flow: Flow, reached: Sequence[Access]) -> Iterator[Diagnostic]:
    """GA406: a run that ends well without having set a declared output.

    A field that every way to END brings is set. For any other a run is looked for in which no node succeeds that surely
    writes it, or can't do without it; branches may end apart, so that one of them misses what another one writes.
    """
    outputs = subject.graph.definition.outputs or ()
    at_end = flow.at_end() if flow.ways[END] else 0
    for field in sorted(flow.without(outputs, at_end | flow.given)):
        bit = flow.bits[field]
        sure = [a.node for a in reached if flow.left(a.node) & bit]
        hops = _ending_without(subject, frozenset(subject.graph.index[name] for name in sure))
        if hops is None and subject.eager.complete:
            continue
        known = "" if hops is not None else " (not every run could be looked at within the bounds)"
        open_inputs = subject.graph.definition.inputs is None
        given_note = ", unless it is given as input" if open_inputs else ""
        yield subject.finding(
            "GA406",
            f"a run can end without having set the output '{field}', which has no default{given_note}{known}: write it "
            f"on every way to END, or give it a default",
            (field, *sorted(a.node for a in reached if field in a.writes.fields)),
            severity="warning" if open_inputs or hops is None else None,
            trace=subject.eager.trace(hops, f"the run ends, and '{field}' is not set") if hops is not None else (),
            fix=f"write '{field}' on every way to END, or give it a default",
            inferred=any(access.writes.origin == "inferred" for access in reached),
        )


def _ending_without(subject: Subject, writers: frozenset[int]) -> list[Hop] | None:
    """A shortest way to a good end on which none of these nodes runs; None if there is none."""
    explored = subject.eager
    came: dict[int, Hop | None] = {0: None}
    todo = [0]
    for state in todo:
        if not explored.markings[state].frontier and _good(subject, explored, state):
            hops = []
            hop = came[state]
            while hop is not None:
                hops.append(hop)
                hop = came[hop.source]
            return hops[::-1]
        for move in explored.moves[state] or ():
            wrote = any(pick.node in writers and not _failed(explored, pick) for pick in move.picks)
            if move.target not in came and not wrote:
                came[move.target] = Hop(state, move.picks, move.target)
                todo.append(move.target)
    return None


def _failed(explored: Exploration, pick: Pick) -> bool:
    """A node that left by an error edge has written nothing."""
    return explored.choices.of[pick.node][pick.outcome].error is not None


def _good(subject: Subject, explored: Exploration, state: int) -> bool:
    marking = explored.markings[state]
    return not starving(subject.graph, marking) and (marking.ended or not subject.graph.names_end)


def lost_writes(subject: Subject, reached: Sequence[Access]) -> Iterator[Diagnostic]:
    """GA408: on every way on, the field is written again before it is read (backward may-analysis of what is read).

    Nothing is said of a field that anything reads, or may read, that can run at the same time as the writer or as what
    follows it up to the next write; and what is there at the end counts as read.
    """
    if subject.choices.cut:
        return
    access = {item.node: item for item in reached}
    ways: dict[str, _Ways] = {}
    written = by_field(reached, lambda item: item.writes.fields)
    for field in subject.graph.schema:
        writers = written.get(field.name, [])
        if not field.plain or len(writers) < 2:
            continue
        ways = ways or {name: _ways(subject, name) for name in access}
        alive = _read_later(field.name, access, ways)
        for writer in writers:
            if writer.writes.origin == "unknown" or alive[writer.node]:
                continue
            between, over = _until_written(field.name, writer.node, access, ways)
            if not over or _looked_at_beside(subject, field.name, access, {writer.node, *between}):
                continue
            again = ", ".join(f"'{name}'" for name in over)
            yield subject.finding(
                "GA408",
                f"what node '{writer.node}' writes to '{field.name}' is lost: on every way on, {again} "
                f"{'writes' if len(over) == 1 else 'write'} it again before it is read; read it, drop the write, or "
                f"give the field a merge rule",
                (writer.node, *over, field.name),
                fix=f"read '{field.name}' before {again}, or drop the write in '{writer.node}'",
                inferred=any(item.writes.origin == "inferred" or item.reads.origin == "inferred" for item in reached),
            )


class _Ways(NamedTuple):
    """What follows a node that ended well, and one that failed; END, too, stands for a branch that ends there."""

    well: frozenset[str]
    failed: frozenset[str]


def _ways(subject: Subject, name: str) -> _Ways:
    graph = subject.graph
    node = graph.index[name]
    well: set[int] = set()
    failed: set[int] = set()
    for outcome in subject.choices.of[node]:
        joins = tuple(graph.join_tables[join].target for join, _ in graph.arrivals[node])
        targets = outcome.sends if outcome.sends is not None else outcome.goto
        targets = graph.plain[node] + outcome.chosen + joins if targets is None else targets
        (well if outcome.error is None else failed).update(targets or (END_INDEX,))
    return _Ways(frozenset(map(graph.name_of, well)), frozenset(map(graph.name_of, failed)))


def _reads(item: Access, field: str) -> bool:
    return field in item.reads.fields or item.reads.origin == "unknown"


def _routes_by(item: Access, field: str) -> bool:
    return field in item.routing.fields or item.routing.origin == "unknown"


def _read_later(field: str, access: Mapping[str, Access], ways: Mapping[str, _Ways]) -> dict[str, bool]:
    """Whether what a node that ended well leaves in the field may be read, by its router or after it, or is there at
    the end. Least fixed point."""
    later = {name: _routes_by(item, field) for name, item in access.items()}  # after the node
    needed = {name: _reads(item, field) for name, item in access.items()} | {END: True}  # before it
    changed = True
    while changed:
        changed = False
        for name in reversed(list(access)):
            if not later[name] and any(needed.get(target, False) for target in ways[name].well):
                later[name] = changed = True
            passes = field not in access[name].writes.surely and later[name]
            if not needed[name] and (passes or any(needed.get(target, False) for target in ways[name].failed)):
                needed[name] = changed = True
    return later


def _until_written(
    field: str, start: str, access: Mapping[str, Access], ways: Mapping[str, _Ways]
) -> tuple[set[str], list[str]]:
    """The nodes that may run between a writer and the next ones, and those next ones in order of their names."""
    between: set[str] = set()
    over: set[str] = set()
    todo = sorted(ways[start].well & access.keys())
    while todo:
        name = todo.pop()
        if name in between | over:
            continue
        again = field in access[name].writes.surely
        (over if again else between).add(name)
        todo += sorted((ways[name].failed if again else ways[name].failed | ways[name].well) & access.keys())
    return between | over, sorted(over)


def _looked_at_beside(subject: Subject, field: str, access: Mapping[str, Access], nodes: set[str]) -> bool:
    """Whether a node that may read the field can run at the same time as one of these, or as another run of itself."""
    readers = [name for name, item in access.items() if _reads(item, field) or _routes_by(item, field)]
    return any(True for _ in together(subject).among(readers, nodes))
