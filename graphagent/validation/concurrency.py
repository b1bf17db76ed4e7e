"""Which nodes can be live in one marking, so that they run at the same time.

First the structural concurrency relation (Kovalyov 1992; Kovalyov and Esparza 1996): the least relation that holds
between what starts together, between the targets of one ending, and between a target and whatever is related to all
that its trigger consumes. It is polynomial, holds for every pair that can be live together, and for sound free-choice
graphs for no other: there it is proof. What it leaves open is settled by looking for a run: in a small graph among all
interleavings, else among those in which the two nodes end as late as possible.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from operator import and_, or_
from typing import TYPE_CHECKING, NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Marking
from graphagent.graph.names import END_INDEX
from graphagent.validation.explore import Exploration, Goal, explore, explore_supersteps
from graphagent.validation.facts import Bounds
from graphagent.validation.memory import Memory
from graphagent.validation.outcomes import Outcome
from graphagent.validation.report import TraceStep

if TYPE_CHECKING:
    from graphagent.validation.subject import Subject

Slot = tuple[int, int]
"""A join, and which of its sources."""
FEW_STATES = 1_000
"""Up to this many states all interleavings are gone through, which gives shortest traces."""
MOST_STATES = 20_000
MOST_SECONDS = 2.0
"""Where the search for one pair, or for all supersteps, gives up; all pairs of a graph share the seconds."""


class Evidence(NamedTuple):
    """That two nodes can be live together.

    `certain`: proved, or shown by the trace; else the structure allows it and no run was found within the bounds.
    `trace`: a way to where both are live (empty if proved without one). `in_step`: they can also be live in one
    superstep; None if that was not asked for or not found out.
    """

    certain: bool
    trace: tuple[TraceStep, ...] = ()
    in_step: bool | None = None


def together(subject: Subject) -> Together:
    """The relation for the graph of a subject, kept with it."""
    known = subject.__dict__.get("_together")
    if known is None:
        known = subject.__dict__["_together"] = Together(subject)
    relation: Together = known
    return relation


class Together:
    """Which nodes can be live in one marking; asked pair by pair, and worked out only as far as asked."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.graph = subject.graph
        self.choices = subject.choices
        self.seconds = min(MOST_SECONDS, subject.bounds.max_seconds)
        self._known: dict[tuple[int, int, bool], Evidence | None] = {}

    def pair(self, a: str, b: str, *, traced: bool = True) -> Evidence | None:
        """How it is known that two nodes can be live together; None if they can't.

        For one node twice: two of its activations, which only a fan-out makes at the same time. `traced` False: a
        proof is enough, no trace need be looked for.
        """
        one, other = sorted((self.graph.index[a], self.graph.index[b]))
        key = (one, other, traced)
        if key not in self._known:
            self._known[key] = self._settle(one, other, traced)
        return self._known[key]

    def among(self, ones: Iterable[str], others: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The pairs, one node of each, that the structure allows to be live together."""
        mask = _mask(self.graph.index[name] for name in others)
        for name in ones:
            node = self.graph.index[name]
            itself = 1 << node if node in self._fanned else 0
            for other in _bits((self._structure[node] & ~(1 << node) | itself) & mask):
                yield name, self.graph.names[other]

    def may(self, a: str, b: str) -> bool:
        """Whether the structure allows two nodes to be live together; False is proof that they never are."""
        one, other = self.graph.index[a], self.graph.index[b]
        return one in self._fanned if one == other else bool(self._structure[one] >> other & 1)

    def _settle(self, a: int, b: int, traced: bool) -> Evidence | None:
        if not self.may(self.graph.names[a], self.graph.names[b]):
            return None
        found = self._seen(self._few, self._live_in_few, a, b)
        if found is None and self._few.complete:
            return None
        if found is None and (traced or not self.exact):
            begun = time.monotonic()
            goal = Goal(_both(a, b), frozenset({a, b}))
            late = explore(self.graph, self.choices, Bounds(MOST_STATES, max(self.seconds, 0.0)), goal=goal)
            self.seconds -= time.monotonic() - begun
            if late.reached is not None:
                found = self._trace(late, late.reached, a, b)
            elif late.complete:
                return None
        if self.subject.facts.engine == "eager":
            return Evidence(found is not None or self.exact, found or ())
        stepped = self._seen(self._steps, self._live_in_steps, a, b)
        in_step = stepped is not None if stepped is not None or self._steps.complete else None
        if stepped is not None and self.subject.facts.engine == "superstep":
            found = stepped
        return Evidence(found is not None or self.exact, found or (), in_step)

    def _seen(self, explored: Exploration, live: _Live, a: int, b: int) -> tuple[TraceStep, ...] | None:
        states = live.twice.get(a, 0) if a == b else live.once.get(a, 0) & live.once.get(b, 0)
        return self._trace(explored, next(_bits(states)), a, b) if states else None

    def _trace(self, explored: Exploration, state: int, a: int, b: int) -> tuple[TraceStep, ...]:
        names = self.graph.names
        what = f"two of '{names[a]}'" if a == b else f"'{names[a]}' and '{names[b]}'"
        return explored.trace(explored.path(state), f"{what} run at the same time")

    @cached_property
    def _few(self) -> Exploration:
        return explore(self.graph, self.choices, Bounds(FEW_STATES, self.subject.bounds.max_seconds), reduced=False)

    @cached_property
    def _steps(self) -> Exploration:
        return explore_supersteps(self.graph, self.choices, Bounds(MOST_STATES, MOST_SECONDS))

    @cached_property
    def _live_in_few(self) -> _Live:
        return _live(self._few)

    @cached_property
    def _live_in_steps(self) -> _Live:
        return _live(self._steps)

    @cached_property
    def _structure(self) -> list[int]:
        return _related(_net(self.subject))

    @cached_property
    def _fanned(self) -> frozenset[int]:
        """Nodes of which a fan-out starts several."""
        sends = [outcome.sends for listed in self.choices.of for outcome in listed if outcome.sends]
        return frozenset(target for targets in sends for target in targets)

    @cached_property
    def exact(self) -> bool:
        """True if the structural relation holds for no pair that can't be live together."""
        jumps = any(_leads_on(self.choices.of[node]) for node in self._fanned)
        loose = jumps or self.choices.open or self.choices.cut or Memory(self.graph).used
        return self.subject.proof is not None and not loose and self.graph.local


def _both(a: int, b: int) -> Callable[[Marking], bool]:
    """Whether both are live in a marking; for one node: two activations of it, one of them at least of a fan-out."""

    def one_node(marking: Marking) -> bool:
        groups = [activation.group for activation in marking.frontier if activation.node == a]
        return len(groups) > 1 and any(groups)

    def two_nodes(marking: Marking) -> bool:
        nodes = {activation.node for activation in marking.frontier}
        return a in nodes and b in nodes

    return one_node if a == b else two_nodes


class _Live(NamedTuple):
    """Per node the states, as a bit mask, in which it is live; and those in which several activations of it are."""

    once: Mapping[int, int]
    twice: Mapping[int, int]


def _live(explored: Exploration) -> _Live:
    once: dict[int, int] = {}
    twice: dict[int, int] = {}
    for state, marking in enumerate(explored.markings):
        for node in {activation.node for activation in marking.frontier}:
            once[node] = once.get(node, 0) | 1 << state
        for node in {activation.node for activation in marking.frontier if activation.group}:
            if _both(node, node)(marking):
                twice[node] = twice.get(node, 0) | 1 << state
    return _Live(once, twice)


def _leads_on(outcomes: Sequence[Outcome]) -> bool:
    """True if a member of a fan-out can start others before the fan-out has ended."""
    return any(outcome.chosen or outcome.goto or outcome.sends for outcome in outcomes)


class _Net(NamedTuple):
    """The graph as a Petri net: places are the nodes, by index, and behind them the slots of joins.

    `begin`: places marked at the start. `made`: per place that is the only input of its transitions, the outputs of
    each. `joined`: inputs and output of each join that waits for all. `twice`: places that a fan-out marks twice.
    Joins of other modes pass every single arrival on, which allows for more than they do.
    """

    size: int
    begin: frozenset[int]
    made: Sequence[Sequence[frozenset[int]]]
    joined: Sequence[tuple[frozenset[int], int]]
    twice: frozenset[int]


def _net(subject: Subject) -> _Net:
    graph = subject.graph
    count = len(graph.names)
    tables = [(j, table) for j, table in enumerate(graph.join_tables) if table.target != END_INDEX]
    slots = [(j, slot) for j, table in tables for slot in range(table.total)]
    place = {slot: count + i for i, slot in enumerate(slots)}
    made: list[list[frozenset[int]]] = [[] for _ in range(count + len(slots))]
    joined = []
    for name in subject.reachable:
        node = graph.index[name]
        outputs = {_outputs(graph, node, outcome, place) for outcome in subject.choices.of[node]}
        if node in subject.choices.cut:
            every = {graph.index[target] for target in subject.digraph.successors(name) if target in graph.index}
            outputs.add(frozenset(every | {place[slot] for slot in graph.arrivals[node] if slot in place}))
        made[node] = list(outputs)
    for j, table in enumerate(graph.join_tables):
        inputs = [place[j, slot] for slot in range(table.total) if (j, slot) in place]
        if inputs and table.mode == "all":
            joined.append((frozenset(inputs), table.target))
        else:
            for slot_place in inputs:
                made[slot_place].append(frozenset({table.target}))
    wide = {target for listed in subject.choices.of for o in listed if o.wide for target in o.sends or ()}
    twice = frozenset(node for node in wide if _leads_on(subject.choices.of[node]))
    return _Net(len(made), frozenset(graph.entries), made, joined, twice)


def _outputs(graph: CompiledGraph, node: int, outcome: Outcome, place: Mapping[Slot, int]) -> frozenset[int]:
    """The places that a node marks when it ends with an outcome; those of END are left out."""
    if outcome.sends is not None:
        return frozenset(outcome.sends)
    jumped = outcome.goto is not None
    targets = outcome.goto or () if jumped else graph.plain[node] + outcome.chosen
    marked: set[int] = set() if jumped else {place[slot] for slot in graph.arrivals[node] if slot in place}
    for target in targets:
        through = graph.via_join.get((node, target))
        if through and target not in graph.plain[node]:
            marked.update(place[slot] for slot in through if slot in place)
        elif target != END_INDEX:
            marked.add(target)
    return frozenset(marked)


def _related(net: _Net) -> list[int]:
    """Per place the set, as a bit mask, of the places that the structure allows to be marked together with it."""
    related = [0] * net.size
    grown: dict[int, int] = {}  # what has come to each place since it was looked at last

    def relate(place: int, others: int) -> None:
        new = others & ~related[place]
        if not new:
            return
        related[place] |= new
        grown[place] = grown.get(place, 0) | new
        for other in _bits(new):
            if not related[other] >> place & 1:
                related[other] |= 1 << place
                grown[other] = grown.get(other, 0) | 1 << place

    def start_together(places: Iterable[int]) -> None:
        mask = _mask(places)
        for place in places:
            relate(place, mask & ~(1 << place))

    start_together(net.begin)
    for outputs in net.made:
        for targets in outputs:
            start_together(targets)
    for place in net.twice:
        relate(place, 1 << place)
    waits: dict[int, list[tuple[frozenset[int], int]]] = {}
    for inputs, target in net.joined:
        for place in inputs:
            waits.setdefault(place, []).append((inputs, target))
    follows = [frozenset().union(*outputs) for outputs in net.made]
    while grown:
        place = next(iter(grown))
        new = grown.pop(place)
        for target in follows[place]:
            relate(target, new)
        for inputs, target in waits.get(place, ()):
            common = reduce(and_, (related[other] for other in inputs))
            relate(target, common)
    return related


def _mask(places: Iterable[int]) -> int:
    return reduce(or_, (1 << place for place in places), 0)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
