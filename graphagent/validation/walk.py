"""Random walks through the declared outcomes of a graph: how they end, and what of the graph they see."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import RouteDef
from graphagent.graph.marking import Marking
from graphagent.graph.transitions import start, starving
from graphagent.validation.coverage import OTHERWISE, Coverage, Label, labels_of, routes_by_node
from graphagent.validation.explore import Pick
from graphagent.validation.memory import Memory
from graphagent.validation.outcomes import Choices, Outcome, choices, route_options, tied
from graphagent.validation.report import script_of
from graphagent.validation.taken import ending, take

WalkEngine = Literal["superstep", "eager"]
CUT_OFF = "cut off"
RULED_OUT = "ruled out by assume"
MOST_ACTIVATIONS = 1000
_TRIES = 50
"""How often a superstep is drawn anew whose choices can't be made together."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came of the walks.

    `coverage.ended` counts their ends. `examples`: by end the shortest walk that came to it, as a script that
    `graphagent simulate --script` takes. `activations`: of all walks. `undeclared`: nodes whose targets aren't
    declared, for which any node was taken; `cut`: nodes with more alternatives than were drawn from.
    """

    coverage: Coverage
    engine: WalkEngine
    seed: int
    runs: int
    activations: int
    examples: dict[str, str]
    undeclared: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()

    @property
    def went_wrong(self) -> int:
        """How many walks stalled or ended without END."""
        fine = ("completed", CUT_OFF, RULED_OUT)
        return sum(count for end, count in self.coverage.ended.items() if end not in fine)


def simulate(
    graph: CompiledGraph,
    runs: int = 100,
    seed: int = 0,
    *,
    engine: WalkEngine = "superstep",
    max_activations: int = MOST_ACTIVATIONS,
) -> Simulation:
    """So many random walks, each cut off after `max_activations`; the same seed walks the same ways.

    With the eager engine activations end one by one in random order, else superstep by superstep. Choices tied by
    `same_as` and `assume` are kept to. Functions of the graph are not called.
    """
    walker = _Walker(graph, random.Random(seed), engine)
    shortest: dict[str, tuple[Pick, ...]] = {}
    activations = 0
    for _ in range(runs):
        end, picks = walker.walk(max_activations)
        activations += len(picks)
        walker.coverage.ended[end] += 1
        if end not in shortest or len(picks) < len(shortest[end]):
            shortest[end] = picks
    names = graph.names
    return Simulation(
        walker.coverage,
        engine,
        seed,
        runs,
        activations,
        {end: script_text(graph, walker.options, picks) for end, picks in shortest.items()},
        tuple(names[node] for node in sorted(walker.options.open)),
        tuple(names[node] for node in sorted(walker.options.cut)),
    )


def script_text(graph: CompiledGraph, options: Choices, picks: Sequence[Pick]) -> str:
    """Picks as `parse_script` reads them."""
    return script_of((graph.names[pick.node], options.of[pick.node][pick.outcome].text) for pick in picks)


class _Walker:
    """Walks one graph and counts what it meets."""

    def __init__(self, graph: CompiledGraph, chance: random.Random, engine: WalkEngine) -> None:
        self.graph = graph
        self.chance = chance
        self.eager = engine == "eager"
        self.options = choices(graph)
        self.memory = Memory(graph)
        self.coverage = Coverage(graph)
        self.labels = _Labels(graph)

    def walk(self, most: int) -> tuple[str, tuple[Pick, ...]]:
        """How a walk ended, and its picks."""
        graph = self.graph
        marking, kept, picks = start(graph), self.memory.empty, list[Pick]()
        self.coverage.begin(graph)
        while marking.frontier:
            if len(picks) >= most:
                return CUT_OFF, tuple(picks)
            chosen = self._one(marking, kept) if self.eager else self._all(marking, kept)
            if chosen is None:
                return RULED_OUT, tuple(picks)
            labels: list[Label] = []
            for pick in chosen.values():
                outcome = self.options.of[pick.node][pick.outcome]
                kept = self.memory.after(kept, pick.node, outcome)
                labels += self.labels.drawn(pick.node, outcome, self.chance)
            done = [self.options.of[pick.node][pick.outcome].completion(place) for place, pick in chosen.items()]
            taken = take(graph, marking, done)
            picks += chosen.values()
            self.coverage.count(graph, [graph.names[pick.node] for pick in chosen.values()], taken, labels)
            marking = taken.after
        self.coverage.starved.update(one.join for one in starving(graph, marking))
        return ending(graph, marking), tuple(picks)

    def _one(self, marking: Marking, kept: tuple[str | None, ...]) -> dict[int, Pick] | None:
        """One activation, any of those that can choose something."""
        places = list(range(len(marking.frontier)))
        self.chance.shuffle(places)
        for place in places:
            pick = self._drawn(marking, place, kept)
            if pick is not None:
                return {place: pick}
        return None

    def _all(self, marking: Marking, kept: tuple[str | None, ...]) -> dict[int, Pick] | None:
        """All activations of a superstep; None if they can choose nothing together."""
        for _ in range(_TRIES):
            chosen: dict[int, Pick] = {}
            so_far = kept
            for place in range(len(marking.frontier)):
                pick = self._drawn(marking, place, so_far)
                if pick is None:
                    break
                chosen[place] = pick
                so_far = self.memory.after(so_far, pick.node, self.options.of[pick.node][pick.outcome])
            outcomes = [(pick.outcome, self.options.of[pick.node][pick.outcome]) for pick in chosen.values()]
            if len(chosen) == len(marking.frontier) and self.memory.together(marking.frontier, outcomes, kept):
                return chosen
        return None

    def _drawn(self, marking: Marking, place: int, kept: tuple[str | None, ...]) -> Pick | None:
        activation = marking.frontier[place]
        allowed = list(self.memory.allowed(activation.node, kept, self.options))
        if not allowed:
            return None
        return Pick(activation.node, self.chance.choice(allowed)[0], bool(activation.group))


class _Labels:
    """Draws the labels that routers may have returned for an outcome: several can lead to one target."""

    def __init__(self, graph: CompiledGraph) -> None:
        self.graph = graph
        self.apart = tied(graph)
        self.routes = routes_by_node(graph)
        self.known: dict[tuple[str, int], dict[str, tuple[int, ...]]] = {}

    def drawn(self, node: int, outcome: Outcome, chance: random.Random) -> list[Label]:
        """A label for each target of each route."""
        found: list[Label] = []
        routes = self.routes.get(self.graph.names[node], ())
        for place, (route, text) in enumerate(zip(routes, outcome.labels, strict=False)):
            found += self._of_route(route, place, text, chance)
        return found

    def _of_route(self, route: RouteDef, place: int, text: str, chance: random.Random) -> list[Label]:
        every = list(labels_of(route, place, self.graph.index))
        exact = [label for label in every if label.label == text]
        if exact and (route.source in self.apart or text == OTHERWISE):
            return exact[:1]
        found = []
        targets = self._targets(route, place).get(text, ())
        for target in targets:
            able = [label for label in every if label.target == self.graph.name_of(target)]
            if len(targets) > 1:  # the default is taken alone
                able = [label for label in able if label.label != OTHERWISE]
            found += [chance.choice(able)] if able else []
        return found

    def _targets(self, route: RouteDef, place: int) -> dict[str, tuple[int, ...]]:
        """Which targets the text of an outcome of a route stands for."""
        key = (route.source, place)
        if key not in self.known:
            self.known[key] = dict(route_options(self.graph, route, route.source in self.apart))
        return self.known[key]


def ends_text(ended: Counter[str]) -> str:
    """How runs ended, the most frequent end first."""
    return ", ".join(f"{count} {end}" for end, count in ended.most_common())
