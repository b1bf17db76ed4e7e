"""The drawing: it has every transition that a run can make, and none that is not declared."""

from __future__ import annotations

import random
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs import flow
from support.random_graphs import Document, compiled, random_graphs

from graphagent import END, START, Command, CompiledGraph, Executor, MemoryCheckpoints, StateGraph
from graphagent.graph.draw import lines
from graphagent.graph.marking import Marking
from graphagent.graph.transitions import fire, start
from graphagent.validation.outcomes import Choices, choices

LONGEST = 12
"""Activations in a frontier beyond which a walk is given up: unjoined loops grow for ever."""


def drawn(graph: CompiledGraph) -> set[tuple[str, str]]:
    """The pairs of nodes with a line between them."""
    return {(line.source, line.target) for line in lines(graph)}


def test_c161_no_end_is_drawn_that_is_not_declared() -> None:
    """C161: a node that declares jumps to two nodes has exactly these two lines, in every form of the drawing."""
    builder = flow("START -> plan", "one -> END", "two -> END").add_node("far", lambda state: None)
    builder.add_edge("one", "far")

    def jump(state: Any) -> Any:
        return Command(goto="one")

    builder.add_node("turn", jump, destinations=["one", "two"]).add_edge("plan", "turn")
    graph = builder.compile()
    assert {target for source, target in drawn(graph) if source == "turn"} == {"one", "two"}
    assert {*graph.to_networkx().successors("turn")} == {"one", "two"}
    ids = {name: f"n{i}" for i, name in enumerate(graph.names)}
    arrows = [
        text.split() for text in graph.to_mermaid().splitlines() if text.strip().startswith(f"{ids['turn']} -.->")
    ]
    assert {arrow[-1] for arrow in arrows} == {ids["one"], ids["two"]}
    assert graph.to_dot().count('"turn" -> ') == 2


def test_a_label_that_names_no_node_is_drawn_as_the_default() -> None:
    """A declared label without a node of its own takes the default; the drawing has no line to a node that isn't."""

    def router(state: Any) -> Literal["b", "maybe"]:
        return "maybe"

    graph = flow("START -> a", "b -> END").add_conditional_edges("a", router, default="b").compile()
    assert drawn(graph) == {(START, "a"), ("a", "b"), ("b", END)}
    assert "otherwise" in graph.to_mermaid()


@pytest.mark.parametrize("engine", ["superstep", "eager"])
async def test_c162_a_late_collector_behind_dynamic_jumps(engine: Any, anyio_backend: str) -> None:
    """C162: two branches jump to a collector that is declared last, and it to the end; what ran is drawn."""
    seen: list[tuple[str, str, tuple[str, ...]]] = []

    def jumping(*targets: str) -> Any:
        async def node(state: Any, ctx: Any) -> Any:
            seen.append((ctx.activation.id, ctx.activation.node, ctx.activation.trigger))
            return Command(goto=targets[0]) if targets else None

        return node

    builder = flow("START -> s -> a, b", s=jumping(), a=jumping("late"), b=jumping("late"))
    builder.add_node("late", jumping(END), destinations=[END])
    graph = builder.compile()
    result = await Executor(graph, MemoryCheckpoints(), engine=engine).run({})
    assert result.status == "completed"
    node_of = {activation: node for activation, node, _ in seen}
    ran = {(node_of[cause], node) for _, node, trigger in seen for cause in trigger}
    assert {("a", "late"), ("b", "late")} <= ran <= drawn(graph)
    assert ("late", END) in drawn(graph)


@given(random_graphs(), st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_c162_every_transition_of_any_run_is_drawn(doc: Document, seed: int) -> None:
    """C162 on random graphs: whatever triggers a node, or reaches END, has a line to it."""
    graph = compiled(doc)
    Walk(graph, random.Random(seed)).go(20)


class Walk:
    """A random run of the transition function, in which every activation names those that triggered it."""

    def __init__(self, graph: CompiledGraph, rng: random.Random) -> None:
        self.graph = graph
        self.rng = rng
        self.choices: Choices = choices(graph)
        self.drawn = drawn(graph)
        self.mixed = any(len({*(o.sends or ())}) > 1 for outcomes in self.choices.of for o in outcomes)
        self.ran: set[str] = set()

    def go(self, steps: int) -> None:
        """Run that many calls of `fire`, looking at each."""
        marking = start(self.graph)
        assert all((START, self.graph.names[activation.node]) in self.drawn for activation in marking.frontier)
        while marking.frontier and len(marking.frontier) <= LONGEST and steps:
            marking = self.step(marking)
            steps -= 1

    def step(self, marking: Marking) -> Marking:
        """One call that ends some of the frontier."""
        places = self.rng.sample(range(len(marking.frontier)), self.rng.randint(1, len(marking.frontier)))
        names = [self.graph.names[marking.frontier[place].node] for place in places]
        done = [
            self.rng.choice(self.choices.of[marking.frontier[place].node]).completion(place)._replace(origin=name)
            for place, name in zip(places, names, strict=True)
        ]
        self.ran.update(names)
        after = fire(self.graph, marking, done)
        before = {id(activation) for activation in marking.frontier}
        for activation in after.frontier:
            if id(activation) not in before:
                self.look(self.graph.names[activation.node], activation.trigger or names)
        if after.ended and not marking.ended:
            assert any((name, END) in self.drawn for name in self.ran)
        return after

    def look(self, target: str, sources: Any) -> None:
        """All that triggered it lead there; of a group with different members it is enough that one does."""
        led = [(source, target) in self.drawn for source in sources]
        assert any(led) if self.mixed else all(led), (sources, target)


def test_the_walk_would_notice() -> None:
    """The property fails for a drawing that leaves a route out."""
    builder: StateGraph = flow("START -> a", "b -> END").add_conditional_edges("a", lambda state: "b", ["b"])
    walk = Walk(builder.compile(), random.Random(1))
    walk.drawn.discard(("a", "b"))
    with pytest.raises(AssertionError):
        walk.go(5)
