"""All that can happen: every marking a run can reach, by `fire` itself.

Nodes of one frontier don't compete for a trigger, and what one of them chooses neither enables nor disables what
another may choose. So the alternatives of any one activation are a persistent set (Godefroid 1996; Valmari's stubborn
sets), and one schedule stands for all interleavings: breadth first, the activation that lies furthest downstream
before the others; on a cycle the next one is added when nothing new comes of it (the cycle proviso, against ignoring
one for ever). That does not hold where the order of arrivals decides (joins of mode `active`, `any` or a number in a
loop), nor where choices are tied to each other; there every interleaving is explored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Marking
from graphagent.graph.transitions import fire, start
from graphagent.validation.facts import Bounds
from graphagent.validation.growth import Growth
from graphagent.validation.memory import Memory
from graphagent.validation.outcomes import Choices, Outcome
from graphagent.validation.ranks import Ranks, ranks
from graphagent.validation.report import TraceStep

MOST_COMBINED = 4096
"""Combinations of choices of one superstep that are gone through."""


class Pick(NamedTuple):
    """One activation that ended: its node, which of the node's alternatives, whether it was of a Send group."""

    node: int
    outcome: int
    grouped: bool = False


class Move(NamedTuple):
    """From one state to another: what ended (one activation, or with supersteps all)."""

    target: int
    picks: tuple[Pick, ...]


class Hop(NamedTuple):
    """A move with where it began."""

    source: int
    picks: tuple[Pick, ...]
    target: int


class Goal(NamedTuple):
    """What a search looks for: a marking of which `holds` is true. The nodes of `late` end after all others that are
    live, since they are to be seen live."""

    holds: Callable[[Marking], bool]
    late: frozenset[int] = frozenset()


class Exploration:
    """The states that were reached, by number; 0 is the start.

    `moves`: per state, None where it was not followed. `growing`: states that were not followed since their frontier
    covers that of an earlier one, so that it can grow without bound. `complete`: no bound was hit; `stopped` says
    which. `reached`: the state in which the goal holds, where one was looked for and found; nothing was followed after.
    """

    def __init__(self, graph: CompiledGraph, choices: Choices) -> None:
        self.graph = graph
        self.choices = choices
        self.markings: list[Marking] = []
        self.moves: list[list[Move] | None] = []
        self.parents: list[tuple[int, tuple[Pick, ...]] | None] = []
        self.growing: dict[int, int] = {}
        self.stopped = ""
        self.reached: int | None = None

    @property
    def complete(self) -> bool:
        """No bound was hit and every alternative was gone through."""
        return not self.stopped

    @property
    def terminals(self) -> Iterator[int]:
        """States in which nothing is left to run."""
        return (i for i, marking in enumerate(self.markings) if not marking.frontier)

    def path(self, state: int) -> list[Hop]:
        """The moves that lead from the start to a state, as they were found first."""
        hops: list[Hop] = []
        while (parent := self.parents[state]) is not None:
            hops.append(Hop(parent[0], parent[1], state))
            state = parent[0]
        return hops[::-1]

    def trace(self, hops: Sequence[Hop], note: str = "") -> tuple[TraceStep, ...]:
        """The steps of a trace, and a last one with the note."""
        steps = []
        for number, hop in enumerate(hops):
            steps += [self._step(number, pick, hop.source) for pick in hop.picks]
        if note:
            last = hops[-1].target if hops else 0
            steps.append(TraceStep(len(hops), "", "", self.live(last), self.arrived(last), note))
        return tuple(steps)

    def _step(self, number: int, pick: Pick, source: int) -> TraceStep:
        outcome = self.choices.of[pick.node][pick.outcome]
        return TraceStep(number, self.graph.names[pick.node], outcome.text, self.live(source), self.arrived(source))

    def live(self, state: int) -> tuple[str, ...]:
        """The nodes that may run in a state."""
        return tuple(self.graph.names[activation.node] for activation in self.markings[state].frontier)

    def arrived(self, state: int) -> Mapping[str, tuple[str, ...]]:
        """The sources that have arrived at each join that waits in a state."""
        graph = self.graph
        return {
            table.id: tuple(graph.names[table.sources[slot]] for slot, _ in join.arrived)
            for table, join in zip(graph.join_tables, self.markings[state].joins, strict=True)
            if join is not None
        }


class _Search:
    """Breadth first from one marking."""

    def __init__(self, graph: CompiledGraph, choices: Choices, bounds: Bounds, begin: Marking | None) -> None:
        self.found = Exploration(graph, choices)
        self.graph = graph
        self.bounds = bounds
        self.memory = Memory(graph)
        self.growth = Growth()
        self.ids: dict[Any, int] = {}
        self.kept: list[tuple[str | None, ...]] = []
        self.deadline = time.monotonic() + bounds.max_seconds
        self.add(start(graph) if begin is None else begin, self.memory.empty, None)

    def add(
        self, marking: Marking, kept: tuple[str | None, ...], parent: tuple[int, tuple[Pick, ...]] | None
    ) -> tuple[int, bool]:
        """The number of a state, and whether it is new."""
        found = self.found
        key = (marking.key(), kept)
        known = self.ids.get(key)
        if known is not None:
            return known, False
        number = self.ids[key] = len(found.markings)
        found.markings.append(marking)
        found.moves.append(None)
        found.parents.append(parent)
        self.kept.append(kept)
        smaller = self.growth.add(marking, kept, None if parent is None else parent[0])
        if smaller is not None:
            found.growing[number] = smaller
        return number, True

    def over(self) -> bool:
        """True if a bound is hit; notes which."""
        if len(self.found.markings) > self.bounds.max_states:
            self.found.stopped = f"{self.bounds.max_states} states"
        elif time.monotonic() > self.deadline:
            self.found.stopped = f"{self.bounds.max_seconds:g} seconds"
        return bool(self.found.stopped)


def explore(
    graph: CompiledGraph,
    choices: Choices,
    bounds: Bounds,
    *,
    begin: Marking | None = None,
    wide: bool = True,
    reduced: bool = True,
    goal: Goal | None = None,
) -> Exploration:
    """All states, one completion at a time, as the eager engine runs.

    `begin`: where to start (default: at the entry points). `wide`: also fan out to more than one item. `reduced` False:
    every interleaving. `goal`: stop at the first state in which it holds.
    """
    search = _Search(graph, choices, bounds, begin)
    order = ranks(graph, choices)
    persistent = reduced and not search.memory.used and not order.ordered
    if goal is not None:
        order = order.later(goal.late)
    todo = 0
    while todo < len(search.found.markings):
        if goal is not None and goal.holds(search.found.markings[todo]):
            search.found.reached = todo
            break
        if search.over():
            break
        if todo not in search.found.growing:
            _expand(search, todo, order, wide, persistent)
        todo += 1
    return search.found


def _expand(search: _Search, state: int, order: Ranks, wide: bool, persistent: bool) -> None:
    found = search.found
    marking = found.markings[state]
    places: dict[tuple[int, int], int] = {}
    for position, activation in enumerate(marking.frontier):
        places.setdefault((activation.node, activation.group), position)
    moves: list[Move] = []
    found.moves[state] = moves
    for position in sorted(places.values(), key=lambda place: order.downstream[marking.frontier[place].node]):
        activation = marking.frontier[position]
        if activation.node in found.choices.cut:
            found.stopped = f"the choices of node '{search.graph.names[activation.node]}', which are too many"
        fresh = False
        for index, outcome in search.memory.allowed(activation.node, search.kept[state], found.choices):
            if outcome.wide and not wide:
                continue
            picks = (Pick(activation.node, index, bool(activation.group)),)
            kept = search.memory.after(search.kept[state], activation.node, outcome)
            after = fire(search.graph, marking, (outcome.completion(position),))
            target, new = search.add(after, kept, (state, picks))
            fresh = fresh or new
            moves.append(Move(target, picks))
        if persistent and (fresh or activation.node not in order.cyclic):
            return


def explore_supersteps(
    graph: CompiledGraph, choices: Choices, bounds: Bounds, *, begin: Marking | None = None, wide: bool = True
) -> Exploration:
    """All states at the borders of supersteps: every activation of a frontier ends in one step."""
    search = _Search(graph, choices, bounds, begin)
    found = search.found
    todo = 0
    while todo < len(found.markings):
        if search.over():
            break
        if found.markings[todo].frontier and todo not in found.growing:
            found.moves[todo] = []
            for chosen in _combined(search, todo, wide):
                frontier = found.markings[todo].frontier
                picks = tuple(Pick(a.node, i, bool(a.group)) for a, (i, _) in zip(frontier, chosen, strict=True))
                kept = search.kept[todo]
                for activation, (_, outcome) in zip(frontier, chosen, strict=True):
                    kept = search.memory.after(kept, activation.node, outcome)
                done = [outcome.completion(position) for position, (_, outcome) in enumerate(chosen)]
                target, _ = search.add(fire(graph, found.markings[todo], done), kept, (todo, picks))
                found.moves[todo].append(Move(target, picks))  # type: ignore[union-attr]
        elif todo not in found.growing:
            found.moves[todo] = []
        todo += 1
    return found


def _combined(search: _Search, state: int, wide: bool) -> Iterator[tuple[tuple[int, Outcome], ...]]:
    """Every combination of what the activations of a frontier may choose, as far as they are not too many."""
    frontier = search.found.markings[state].frontier
    options = []
    total = 1
    for activation in frontier:
        if activation.node in search.found.choices.cut:
            search.found.stopped = f"the choices of node '{search.graph.names[activation.node]}', which are too many"
        allowed = search.memory.allowed(activation.node, search.kept[state], search.found.choices)
        options.append([item for item in allowed if wide or not item[1].wide])
        total *= len(options[-1])
    if total > MOST_COMBINED:
        search.found.stopped = f"{total} combinations of choices in one superstep"
        return
    for combination in product(*options):
        if search.memory.together(frontier, combination, search.kept[state]):
            yield combination
