"""The transition function over random graphs: what must hold whatever the graph and the order of things."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from support.markings import graph_of
from support.regions import Builder, Run

from graphagent.engine.marking_codec import decode_marking, encode_marking, overlays_of
from graphagent.errors import GraphDefinitionError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Activation, Arrival, Completion, Group, JoinState, Marking
from graphagent.graph.names import END_INDEX
from graphagent.graph.transitions import fire, start, starving

SEEDS = st.integers(0, 2**64).map(random.Random)
"""Randomness by seed: a fraction of the cost of `st.randoms`, and a failure names its seed all the same."""
LONGEST = 12
"""Activations in a frontier beyond which a random walk is given up: unjoined loops grow for ever."""


def random_graph(rng: random.Random, modes: tuple[str, ...]) -> CompiledGraph:
    """Any graph at all: some nodes, edges and joins between whatever."""
    names = [f"n{i}" for i in range(rng.randint(2, 6))]
    words = [f"^{name}" for name in rng.sample(names, rng.randint(1, 2))]
    words += [f"{rng.choice(names)}>{rng.choice([*names, 'END'])}" for _ in range(rng.randint(1, 7))]
    for i in range(rng.randint(0, 3)):
        sources = ",".join(rng.sample(names, rng.randint(1, min(3, len(names)))))
        words.append(f"{sources}={rng.choice(modes)}>{rng.choice([*names, 'END'])}#j{i}")
    try:
        return graph_of(f"{' '.join(names)}: {' '.join(dict.fromkeys(words))}")
    except GraphDefinitionError:  # active joins that wait for each other
        assume(False)
        raise


def random_completion(rng: random.Random, graph: CompiledGraph, position: int, sends: bool = True) -> Completion:
    """Any way in which an activation may end."""
    targets = tuple(rng.choice([*range(len(graph.names)), END_INDEX]) for _ in range(rng.randint(0, 2)))
    kind = rng.choice(("edges", "route", "goto", "send") if sends else ("edges", "route", "goto"))
    origin = rng.choice((None, f"o{rng.randint(0, 99)}"))
    if kind == "route":
        return Completion(position, chosen=targets, origin=origin)
    if kind == "goto":
        return Completion(position, goto=targets, origin=origin, error=rng.choice((None, "Boom: no")))
    if kind == "send":
        return Completion(position, sends=tuple((t, {"item": t}) for t in targets if t >= 0), origin=origin)
    return Completion(position, origin=origin)


def random_call(rng: random.Random, graph: CompiledGraph, marking: Marking, sends: bool = True) -> list[Completion]:
    """Completions of some activations of the frontier, in some order."""
    places = rng.sample(range(len(marking.frontier)), rng.randint(1, len(marking.frontier)))
    return [random_completion(rng, graph, place, sends) for place in places]


@settings(max_examples=60, deadline=None)
@example(random.Random(18_118_092_547_228_616))  # the one that went on was replaced by an equal one
@given(SEEDS)
def test_random_walks(rng: random.Random) -> None:
    """At every step: the order of completions doesn't matter, who goes on goes on as it was, and markings are stored.

    Also the frontier is in graph order, and the key of a marking without payload has the same future.
    """
    graph = random_graph(rng, ("all", "any", "active", "1"))
    marking = start(graph)
    for _ in range(8):
        if not 0 < len(marking.frontier) < LONGEST:
            break
        call = random_call(rng, graph, marking)
        after = fire(graph, marking, call)
        assert fire(graph, marking, rng.sample(call, len(call))) == after
        going_on = [a for i, a in enumerate(marking.frontier) if i not in {done.position for done in call}]
        kept = [a for a in after.frontier if any(a is one for one in going_on)]
        assert [id(a) for a in kept] == [id(a) for a in going_on]
        assert [a.node for a in after.frontier] == sorted(a.node for a in after.frontier)
        assert fire(graph, stripped(marking), call).key() == after.key()
        assert stored(graph, after) == after
        marking = after


def stripped(marking: Marking) -> Marking:
    """A marking without what its key leaves out."""
    joins = tuple(
        None if state is None else JoinState(tuple((s, (Arrival(),) * len(q)) for s, q in state.arrived), state.fired)
        for state in marking.joins
    )
    frontier = tuple(Activation(a.node, group=a.group) for a in marking.frontier)
    return Marking(frontier, joins, tuple(Group(g.id, g.open, g.exits) for g in marking.groups), marking.ended)


def stored(graph: CompiledGraph, marking: Marking) -> Marking:
    """A marking after a way through JSON; overlays travel apart."""
    plain: Any = json.loads(json.dumps(encode_marking(graph, marking)))
    return decode_marking(graph, plain, overlays_of(marking))


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_no_activation_is_lost_or_doubled(rng: random.Random) -> None:
    """Against a count of tokens: a call runs each target it triggers once and uses up every full set of arrivals."""
    graph = random_graph(rng, ("all",))
    marking = start(graph)
    waiting: Counter[tuple[int, int]] = Counter()
    for _ in range(10):
        if not 0 < len(marking.frontier) < LONGEST:
            break
        call = random_call(rng, graph, marking, sends=False)
        expected = Counter(a.node for i, a in enumerate(marking.frontier) if i not in {c.position for c in call})
        expected.update(triggered(graph, marking, call, waiting))
        marking = fire(graph, marking, call)
        assert Counter(a.node for a in marking.frontier) == expected
        counted = {
            (j, slot): len(queue) for j, state in enumerate(marking.joins) if state for slot, queue in state.arrived
        }
        assert counted == +waiting


def triggered(
    graph: CompiledGraph, marking: Marking, call: list[Completion], waiting: Counter[tuple[int, int]]
) -> set[int]:
    """The nodes that a call triggers, worked out from the declarations; `waiting` counts arrivals at joins."""
    targets: set[int] = set()
    for done in call:
        source = marking.frontier[done.position].node
        chosen = {*done.chosen} if done.goto is None else {*done.goto}
        arrives = {(j, t.sources.index(source)) for j, t in enumerate(graph.join_tables) if source in t.sources}
        for target in chosen - {*graph.plain[source]}:
            through = {(j, slot) for j, slot in arrives if graph.join_tables[j].target == target}
            waiting.update(through if done.goto is not None else ())
            targets |= set() if through else {target}
        targets |= chosen & {*graph.plain[source]}
        if done.goto is None:
            targets |= {*graph.plain[source]}
            waiting.update(arrives)
    for j, table in enumerate(graph.join_tables):
        full = min(waiting[j, slot] for slot in range(table.total))
        waiting.subtract({(j, slot): full for slot in range(table.total)})
        targets |= {table.target} if full else set()
    return targets - {END_INDEX}


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_the_eager_order_runs_what_supersteps_run(rng: random.Random) -> None:
    """Where merges go through joins, single fires in any order run the same nodes, on the same branch paths."""
    builder = Builder(rng)
    region = builder.region(3)
    assume(len(builder.nodes) <= 40)
    try:
        graph = graph_of(builder.text(region))
    except GraphDefinitionError:
        assume(False)
    runs = [Run(graph, builder.kinds, seed=7) for _ in range(3)]
    steps = 0
    while runs[0].marking.frontier:
        runs[0].fire(list(range(len(runs[0].marking.frontier))))
        steps += 1
        assert steps < 2000
    for run in runs[1:]:
        while run.marking.frontier:
            run.fire([rng.randrange(len(run.marking.frontier))])
    for run in runs:
        assert Counter(run.ran) == Counter(runs[0].ran)
        assert run.marking.ended
        assert starving(graph, run.marking) == ()
        assert run.marking.groups == ()
