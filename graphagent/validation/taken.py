"""What one call of `fire` did: which edges were taken, which joins fired or absorbed what came late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.joins import arrive, close_lap
from graphagent.graph.marking import ALL_EDGES, Arrival, Completion, JoinState, Marking
from graphagent.graph.transitions import fire, starving

_PAYLOAD = Arrival()  # that of an arrival plays no part in how joins count


class Way(NamedTuple):
    """An edge that was taken: indices of its ends, and its kind as `graphagent.graph.draw.Line` has it."""

    source: int
    target: int
    kind: str


class Taken(NamedTuple):
    """What happened: the marking after it, edges in order, and by join the firings and the late arrivals.

    `late`: arrivals at an `any` or `n` join whose lap had fired already, which therefore start nothing.
    """

    after: Marking
    ways: tuple[Way, ...]
    fired: tuple[int, ...]
    late: tuple[int, ...]


def take(graph: CompiledGraph, marking: Marking, completions: Sequence[Completion]) -> Taken:
    """Fire, and say what that did. Pure, as `fire` is."""
    after = fire(graph, marking, completions)
    exits = list(_exits(graph, marking, completions))
    fired, late = _joined(graph, marking, exits, after)
    return Taken(after, tuple(dict.fromkeys(_ways(graph, exits))), fired, late)


def ending(graph: CompiledGraph, marking: Marking) -> str:
    """How a run ends that has nothing left to run: `completed`, `stalled at 'join'` or `END not reached`."""
    starved = starving(graph, marking)
    if starved:
        return "stalled at " + ", ".join(f"'{one.join}'" for one in starved)
    return "END not reached" if graph.names_end and not marking.ended else "completed"


class _Exit(NamedTuple):
    """A node that is left: for targets that it chose, and if `static` by its plain edges and joins too.

    `joins`: a target behind a join is an arrival there; False for a member of a Send group, which arrives when its
    group ends.
    """

    node: int
    targets: tuple[int, ...]
    kind: str
    static: bool = False
    joins: bool = True


def _exits(graph: CompiledGraph, marking: Marking, completions: Sequence[Completion]) -> Iterator[_Exit]:
    """In the order in which `fire` has them."""
    left = {group.id: group.open for group in marking.groups}
    due = {group.id: dict.fromkeys(group.exits) for group in marking.groups}
    for done in sorted(completions, key=lambda done: done.position):
        activation = marking.frontier[done.position]
        node, group = activation.node, activation.group
        yield _chosen(graph, node, done, grouped=bool(group))
        if group:
            if done.goto is None and done.sends is None:
                due[group][node, ALL_EDGES] = None
            chosen = done.chosen if done.goto is None else done.goto
            due[group] |= {(node, target): None for target in chosen if (node, target) in graph.via_join}
            left[group] -= 1
            if not left[group]:
                yield from _released(list(due[group]))


def _chosen(graph: CompiledGraph, node: int, done: Completion, *, grouped: bool) -> _Exit:
    fans_out = graph.defs[node].kind == "map"
    if done.sends is not None:
        return _Exit(node, tuple(target for target, _ in done.sends), "map" if fans_out else "jump", joins=False)
    if done.goto is not None:
        kind = "error" if done.error is not None else "map" if fans_out else "jump"
        return _Exit(node, done.goto, kind, joins=not grouped)
    return _Exit(node, done.chosen, "route", static=not grouped, joins=not grouped)


def _released(due: list[tuple[int, int]]) -> Iterator[_Exit]:
    """What was due behind a Send group that has ended."""
    for node in dict.fromkeys(node for node, _ in due):
        targets = tuple(target for source, target in due if source == node and target != ALL_EDGES)
        yield _Exit(node, targets, "", static=(node, ALL_EDGES) in due)


def _ways(graph: CompiledGraph, exits: Sequence[_Exit]) -> Iterator[Way]:
    for one in exits:
        if one.kind:  # else the edge was taken when the member chose it
            yield from (Way(one.node, target, one.kind) for target in one.targets)
        if one.static:
            yield from (Way(one.node, target, "edge") for target in graph.plain[one.node])
            yield from (Way(one.node, graph.join_tables[join].target, "join") for join, _ in graph.arrivals[one.node])


def _arrivals(graph: CompiledGraph, exits: Sequence[_Exit]) -> Iterator[tuple[int, int]]:
    """Every arrival: the join and its slot."""
    for one in exits:
        if not one.joins:
            continue
        slots = dict.fromkeys(graph.arrivals[one.node] if one.static else ())
        for target in one.targets:
            if target not in graph.plain[one.node]:
                slots |= dict.fromkeys(graph.via_join.get((one.node, target), ()))
        yield from slots


def _joined(
    graph: CompiledGraph, marking: Marking, exits: Sequence[_Exit], after: Marking
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Joins that fired, and joins that absorbed a late arrival, once for each time."""
    states: list[JoinState | None] = list(marking.joins)
    fired: list[int] = []
    late: list[int] = []
    for join, slot in _arrivals(graph, exits):
        before = states[join]
        states[join], firings = arrive(graph.join_tables[join], before, [(slot, _PAYLOAD)])
        fired += [join] * len(firings)
        if before is not None and before.fired and not firings and slot not in dict(before.arrived):
            late.append(join)
    for join, state in enumerate(states):
        now = after.joins[join]
        if state is not None and (now is None or now.key() != state.key()):  # judged: nothing more can come
            fired += [join] * len(close_lap(graph.join_tables[join], state)[1])
    return tuple(fired), tuple(late)
