"""Earliest steps and ways past guards, on random graphs, against a search that knows no shortcut."""

from __future__ import annotations

import random

import pytest
from support.random_documents import random_document
from support.random_graphs import compiled

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.names import END_INDEX
from graphagent.validation import Bounds, Facts
from graphagent.validation.explore import Exploration, explore, explore_supersteps
from graphagent.validation.outcomes import Choices, choices
from graphagent.validation.passing import avoid
from graphagent.validation.reaching import due, reach, ways
from graphagent.validation.subject import Subject

FEW = Bounds(max_states=1_000, max_seconds=5.0)
SEEDS = range(120)


def subject_of(seed: int) -> Subject:
    """A random graph."""
    return Subject(compiled(random_document(random.Random(seed))), Facts(), Bounds(), {})


def without(graph: CompiledGraph, options: Choices, guard: int) -> Exploration:
    """Every interleaving of runs in which the guard never ends."""
    held = tuple(() if i == guard else of for i, of in enumerate(options.of))
    return explore(graph, options._replace(of=held), FEW, reduced=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_way_past_a_guard_is_found_just_where_there_is_one(seed: int) -> None:
    """For every pair of node and guard the verdict is that of the whole search, and the trace never runs the guard."""
    subject = subject_of(seed)
    graph = subject.graph
    found = ways(graph, subject.choices)
    for guard in range(len(graph.names)):
        whole = without(graph, subject.choices, guard)
        for node in range(len(graph.names)):
            avoided = avoid(subject, found, node, {guard})
            possible = any(due(marking, node) for marking in whole.markings)
            if possible or (whole.complete and not whole.growing):
                assert avoided.verdict in (("yes",) if possible else ("no",)), (graph.names[node], graph.names[guard])
            if avoided.verdict == "yes":
                assert graph.names[guard] not in [step.node for step in avoided.trace[:-1]]
                assert avoided.trace[-1].node == graph.names[node]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_node_runs_before_its_earliest_step(seed: int) -> None:
    """Supersteps never bring a node, or END, sooner than the fixed point says, nor one that it doesn't reach."""
    graph = subject_of(seed).graph
    options = choices(graph)
    stepped = explore_supersteps(graph, options, FEW)
    found = ways(graph, options)
    first: dict[int, int] = {}
    depths: list[int] = []
    for state, marking in enumerate(stepped.markings):
        parent = stepped.parents[state]
        depths.append(0 if parent is None else depths[parent[0]] + 1)
        for node in (*(activation.node for activation in marking.frontier), *([END_INDEX] if marking.ended else [])):
            first.setdefault(node, depths[state])
    for node, depth in first.items():
        assert reach(graph, found, node).steps[node] <= depth
