"""A graph as a Petri net, where its behaviour is that of a free-choice net with one token at the start.

A place for START, for END, for every node that is due, for every arrival that waits at a join and for every group of
Sends; a transition for every alternative of a node and for every join. What a transition makes is asked of `fire`, so
that the net can't mean anything else than what runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.draw import lines
from graphagent.graph.marking import Activation, Completion, Group, Marking
from graphagent.graph.names import END, END_INDEX, START
from graphagent.graph.transitions import fire
from graphagent.validation.outcomes import Choices, Outcome, tied


class Net(NamedTuple):
    """A net whose arcs all have weight one. `places`: what they stand for; `before` and `after`: per transition the
    places that it empties and fills; `first`: the place with the one token; `last`: the place for END."""

    places: tuple[str, ...]
    before: tuple[frozenset[int], ...]
    after: tuple[frozenset[int], ...]
    first: int
    last: int


class OutOfClassError(Exception):
    """The graph does what such a net can't show."""


class _Node(NamedTuple):
    node: int


class _Slot(NamedTuple):
    join: int
    slot: int


class _Members(NamedTuple):
    nodes: frozenset[int]


Place = _Node | _Slot | _Members
_START = _Node(END_INDEX - 1)
_END = _Node(END_INDEX)
Transition = tuple[tuple[Place, ...], frozenset[Place]]


def image(graph: CompiledGraph, choices: Choices) -> Net:
    """The net of all that can be reached from the start.

    A join with one source is an edge, alternatives that lead to the same places are one, and a group of Sends is one
    token however many members it has: they have no choice, and what follows them comes once. Raises OutOfClassError
    where this is not what happens: joins that don't wait for all, choices that are unknown, too many or tied to each
    other, members of a group that choose, triggers that merge only if they meet, no END.
    """
    if not graph.names_end or tied(graph) or any(table.mode != "all" for table in graph.join_tables):
        raise OutOfClassError
    reached: dict[Place, None] = {_START: None, _END: None}
    transitions: dict[Transition, None] = {}
    todo: list[Place] = [_START]
    joined: set[int] = set()
    for place in todo:
        if isinstance(place, _Slot):
            if place.join in joined:
                continue
            joined.add(place.join)
        for needs, makes in _from(graph, choices, place):
            transitions[needs, makes] = None
            todo += [made for made in makes if made not in reached]
            reached.update(dict.fromkeys(makes))
    _as_drawn(graph, reached, choices)
    numbers: dict[Place, int] = {}
    for place in (*reached, *(place for needs, _ in transitions for place in needs)):
        numbers.setdefault(place, len(numbers))
    before = tuple(frozenset(numbers[place] for place in needs) for needs, _ in transitions)
    after = tuple(frozenset(numbers[place] for place in makes) for _, makes in transitions)
    return Net(tuple(_text(graph, place) for place in numbers), before, after, numbers[_START], numbers[_END])


def _from(graph: CompiledGraph, choices: Choices, place: Place) -> Iterator[Transition]:
    """The transitions that a place leads to; that of a join comes with any of its slots."""
    if place == _START:
        yield (place,), frozenset(_Node(node) for node in graph.entries)
    elif isinstance(place, _Slot):
        table = graph.join_tables[place.join]
        slots = tuple(_Slot(place.join, slot) for slot in range(table.total))
        yield slots, frozenset({_Node(table.target)})
    elif isinstance(place, _Members):
        yield (place,), _behind(graph, place.nodes)
    elif place != _END:
        assert isinstance(place, _Node)
        if place.node in choices.cut or place.node in choices.open:
            raise OutOfClassError
        for makes in dict.fromkeys(_made(graph, choices, place.node, outcome) for outcome in choices.of[place.node]):
            yield (place,), makes


def _made(graph: CompiledGraph, choices: Choices, node: int, outcome: Outcome) -> frozenset[Place]:
    if outcome.sends:
        members = frozenset(outcome.sends)
        if any(choices.of[member] != (Outcome(),) for member in members):
            raise OutOfClassError
        return frozenset({_Members(members)})
    alone = Marking((Activation(node),), graph.no_joins)
    return _filled(graph, fire(graph, alone, (outcome.completion(0),)), (node,))


def _behind(graph: CompiledGraph, members: frozenset[int]) -> frozenset[Place]:
    """What follows when all members of a group have ended."""
    frontier = tuple(Activation(node, group=1) for node in sorted(members))
    marking = Marking(frontier, graph.no_joins, (Group(1, len(frontier)),))
    return _filled(graph, fire(graph, marking, [Completion(i) for i in range(len(frontier))]), members)


def _filled(graph: CompiledGraph, marking: Marking, nodes: Iterable[int]) -> frozenset[Place]:
    """The places that are filled once these nodes have ended. Two ways to one target, one of them by a join, would
    merge only if that join's arrival is the last one: no net says that."""
    due = {activation.node for activation in marking.frontier} | ({END_INDEX} if marking.ended else set())
    joins = {join for node in nodes for join, _ in graph.arrivals[node] if marking.joins[join] is not None}
    targets = [graph.join_tables[join].target for join in joins]
    if len(due) + len(targets) != len(due.union(targets)):
        raise OutOfClassError
    waiting = ((join, state) for join in joins if (state := marking.joins[join]) is not None)
    slots = {_Slot(join, slot) for join, state in waiting for slot, _ in state.arrived}
    return frozenset({*map(_Node, due), *slots})


def _as_drawn(graph: CompiledGraph, reached: Iterable[Place], choices: Choices) -> None:
    """Findings speak of the drawing: what it shows as reachable must be in the net, and no cycle of the net may be
    missing in it."""
    drawn: dict[str, set[str]] = {}
    for line in lines(graph):
        drawn.setdefault(line.source, set()).add(line.target)
    running = {place.node for place in reached if isinstance(place, _Node)} - {_START.node, _END.node}
    running |= {node for place in reached if isinstance(place, _Members) for node in place.nodes}
    if not _descendants(drawn, START) <= {graph.names[node] for node in running} | {END}:
        raise OutOfClassError
    for node in running:
        name = graph.names[node]
        targets = {graph.name_of(target) for outcome in choices.of[node] for target in outcome.targets()}
        hidden = targets - drawn.get(name, set()) - {END}
        if hidden and not hidden <= _descendants(drawn, name):
            raise OutOfClassError


def _descendants(drawn: dict[str, set[str]], name: str) -> set[str]:
    found: set[str] = set()
    queue = [name]
    while queue:
        fresh = drawn.get(queue.pop(), set()) - found
        found |= fresh
        queue += fresh
    return found


def _text(graph: CompiledGraph, place: Place) -> str:
    if place == _START:
        return START
    if isinstance(place, _Slot):
        table = graph.join_tables[place.join]
        return f"{graph.names[table.sources[place.slot]]}&{table.id}"
    if isinstance(place, _Members):
        return "+".join(graph.names[node] for node in sorted(place.nodes)) + "[]"
    return graph.name_of(place.node)
