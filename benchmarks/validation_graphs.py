"""The graphs that the validation benchmark measures: as large, or as branchy, as graphs get."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import BaseModel

from graphagent import StateGraph

Part = tuple[str, str]
"""A part of a graph by the node it is entered at and the node it is left at."""


class State(BaseModel):
    """Without fields: shape and behaviour don't depend on them."""


def work(state: Any) -> None:
    """A node that is never run."""


def choose(state: Any) -> Any:
    """A router that is never run; its labels are those of the path map."""


class Draft:
    """A builder with the few shapes that the workloads are made of."""

    def __init__(self, name: str) -> None:
        self.builder = StateGraph(State, name=name)
        self.count = 0

    def node(self, name: str = "") -> str:
        name = name or f"n{self.count}"
        self.count += 1
        self.builder.add_node(name, work)
        return name

    def route(self, source: str, *targets: str) -> None:
        self.builder.add_conditional_edges(source, choose, targets)

    def closed(self, first: str, last: str) -> StateGraph:
        return self.builder.set_entry_point(first).set_finish_point(last)

    def chain(self, size: int) -> Part:
        names = [self.node() for _ in range(size)]
        for source, target in itertools.pairwise(names):
            self.builder.add_edge(source, target)
        return names[0], names[-1]

    def choice(self, *branches: Part) -> Part:
        first, last = self.node(), self.node()
        self.route(first, *(entry for entry, _ in branches))
        for _, exit in branches:
            self.builder.add_edge(exit, last)
        return first, last

    def fork(self, *branches: Part) -> Part:
        first, last = self.node(), self.node()
        for entry, _ in branches:
            self.builder.add_edge(first, entry)
        self.builder.add_join_edge([exit for _, exit in branches], last)
        return first, last

    def loop(self, body: Part) -> Part:
        last = self.node()
        self.builder.add_edge(body[1], last)
        after = self.node()
        self.route(last, after, body[0])
        return body[0], after


def mixed(nodes: int = 10_000, edges: int = 30_000, seed: int = 1) -> StateGraph:
    """A long ladder of plain edges, routes that skip ahead or go back, and joins: `edges` transitions in all."""
    rng = random.Random(seed)
    draft = Draft(f"mixed-{nodes}")
    names = [draft.node() for _ in range(nodes)]
    left = edges - 2
    for i in range(nodes - 1):
        ahead = names[min(i + rng.randint(2, 50), nodes - 1)]
        targets = dict.fromkeys((names[i + 1], ahead, names[max(0, i - rng.randint(1, 30))]))
        if rng.random() < 0.4:
            draft.route(names[i], *targets)
            left -= len(targets)
        else:
            for target in {names[i + 1]: None, ahead: None}:
                draft.builder.add_edge(names[i], target)
                left -= 1
    while left > 0:
        last = rng.randrange(60, nodes)
        sources = rng.sample(range(last - 50, last), left if left < 6 else 3)
        draft.builder.add_join_edge([names[source] for source in sources], names[last], id=f"join-{left}")
        left -= len(sources)
    return draft.closed(names[0], names[-1])


def structured(size: int, seed: int = 1) -> StateGraph:
    """About `size` nodes in nested sequences, choices, forks and loops: sound by construction."""
    rng = random.Random(seed)
    draft = Draft(f"structured-{size}")

    def part(budget: int) -> Part:
        if budget < 6:
            return draft.chain(max(1, budget))
        kind = rng.choice(("sequence", "choice", "fork", "loop"))
        if kind == "loop":
            return draft.loop(part(budget - 2))
        shares = rng.randint(2, 3)
        room = budget if kind == "sequence" else budget - 2
        parts = [part(max(1, room // shares)) for _ in range(shares)]
        if kind == "choice":
            return draft.choice(*parts)
        if kind == "fork":
            return draft.fork(*parts)
        for (_, exit), (entry, _) in itertools.pairwise(parts):
            draft.builder.add_edge(exit, entry)
        return parts[0][0], parts[-1][1]

    first, last = part(20)
    while draft.count < size:
        entry, exit = part(min(40, max(1, size - draft.count)))
        draft.builder.add_edge(last, entry)
        last = exit
    return draft.closed(first, last)


def parallel(branches: int = 12) -> StateGraph:
    """Branches side by side, each of five nodes: one, a router, two to choose from, one."""
    draft = Draft(f"parallel-{branches}")
    return draft.closed(*draft.fork(*(_routed(draft) for _ in range(branches))))


def _routed(draft: Draft) -> Part:
    first, router, one, other, last = (draft.node() for _ in range(5))
    draft.builder.add_edge(first, router)
    draft.route(router, one, other)
    draft.builder.add_edge(one, last).add_edge(other, last)
    return first, last


def loops(branches: int = 5, body: int = 9) -> StateGraph:
    """Branches side by side, each a loop that a router leaves; `body`: its other nodes."""
    draft = Draft(f"loops-{branches}")
    return draft.closed(*draft.fork(*(draft.loop(draft.chain(body)) for _ in range(branches))))


class Workload(NamedTuple):
    """A graph to validate. `rules`: the beginnings of the codes that are checked; None: all."""

    title: str
    make: Callable[[], StateGraph]
    rules: tuple[str, ...] | None = None


WORKLOADS: dict[str, Workload] = {
    "structure": Workload("shape of 10,000 nodes and 30,000 transitions", mixed, ("GA0", "GA1")),
    "structured-250": Workload("250 structured nodes", lambda: structured(250)),
    "structured-1000": Workload("1,000 structured nodes", lambda: structured(1000)),
    "parallel": Workload("12 branches of 5 nodes with a router each", parallel),
    "loops": Workload("5 branches with a loop of 10 nodes each", loops),
}
