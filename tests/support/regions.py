"""Random well-formed graphs: regions with one entry and one exit, nested, whose merges all go through joins.

A graph is built as text for `support.markings`, with a plan of what each node does when it ends.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Activation, Completion, Marking
from graphagent.graph.transitions import fire, start

Region = tuple[str, str]
"""Entry and exit node."""


@dataclass
class Builder:
    """Collects the parts of a graph; `kinds` says how a node leaves: by its edges, a route, Sends or as a loop.

    With `nests` above 0 some nodes stand for graphs of their own, nested so deep; their parts are in `children`.
    """

    rng: random.Random
    nests: int = 0
    prefix: str = "n"
    nodes: list[str] = field(default_factory=list)
    edges: list[tuple[str, str]] = field(default_factory=list)
    joins: list[tuple[list[str], str, str]] = field(default_factory=list)
    kinds: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    children: dict[str, tuple[Builder, Region]] = field(default_factory=dict)

    def text(self, region: Region) -> str:
        """The whole as text, the exit leading to END."""
        first, last = region
        words = [f"^{first}", f"{last}>END", "none?END", *(f"{source}>{target}" for source, target in self.edges)]
        words += [f"{','.join(sources)}={mode}>{target}" for sources, mode, target in self.joins]
        words += [f"{node}?{','.join(targets)}" for node, (_, targets) in self.kinds.items()]
        return f"{' '.join(self.nodes)}: {' '.join(words)}"

    def region(self, depth: int) -> Region:
        """A random region."""
        if self.nests and self.rng.random() < 0.2:
            return self.child(depth)
        if depth == 0:
            return self.node()
        made: list[Region] = [getattr(self, self.rng.choice(SHAPES))(depth - 1) for _ in range(self.rng.choice((1, 2)))]
        for (_, before), (after, _) in itertools.pairwise(made):
            self.edges.append((before, after))
        return made[0][0], made[-1][1]

    def node(self, _: int = 0) -> Region:
        """A lone node."""
        name = f"{self.prefix}{len(self.nodes)}"
        self.nodes.insert(self.rng.randint(0, len(self.nodes)), name)
        return name, name

    def child(self, depth: int) -> Region:
        """A node that stands for a graph."""
        name = self.node()[0]
        inner = Builder(self.rng, self.nests - 1, f"{name}_")
        self.children[name] = inner, inner.region(min(depth, 1))
        return name, name

    def _fork(self, depth: int) -> tuple[str, list[Region], str]:
        fork, join = self.node()[0], self.node()[0]
        return fork, [self.region(self.rng.randint(0, depth)) for _ in range(self.rng.choice((2, 3)))], join

    def _join(self, branches: list[Region], mode: str, join: str) -> None:
        self.joins.append(([exit for _, exit in branches], mode, join))

    def parallel(self, depth: int) -> Region:
        """All branches run."""
        fork, branches, join = self._fork(depth)
        self.edges += [(fork, entry) for entry, _ in branches]
        self._join(branches, self.rng.choice(("all", "active", str(len(branches)))), join)
        return fork, join

    def some(self, depth: int) -> Region:
        """Some branches run, not always the same ones."""
        fork, branches, join = self._fork(depth)
        self._leaves(fork, "some", [entry for entry, _ in branches])
        self._join(branches, "active", join)
        return fork, join

    def one(self, depth: int) -> Region:
        """One branch runs; plain edges lead on."""
        fork, branches, join = self._fork(depth)
        self._leaves(fork, "one", [entry for entry, _ in branches])
        self.edges += [(exit, join) for _, exit in branches]
        return fork, join

    def fan(self, depth: int) -> Region:
        """Some workers of one or two kinds run, then what follows."""
        fork, after = self.node()[0], self.node()[0]
        workers = [self.node()[0] for _ in range(self.rng.choice((1, 2)))]
        self._leaves(fork, "fan", workers)
        self.edges += [(worker, after) for worker in workers]
        return fork, after

    def loop(self, depth: int) -> Region:
        """The body runs twice before it is left."""
        entry, exit = self.region(depth)
        again, after = self.node()[0], self.node()[0]
        self.edges.append((exit, again))
        self._leaves(again, "loop", [entry, after])
        return entry, after

    def _leaves(self, node: str, kind: str, targets: list[str]) -> None:
        self.kinds[node] = (kind, targets)


SHAPES = ("node", "parallel", "parallel", "some", "one", "fan", "loop")


@dataclass
class Run:
    """A run of such a graph without an engine; what a node does depends on how often it has run, on nothing else."""

    graph: CompiledGraph
    kinds: dict[str, tuple[str, list[str]]]
    seed: int
    marking: Marking = field(init=False)
    counts: dict[str, int] = field(default_factory=dict)
    ran: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.marking = start(self.graph)

    def fire(self, positions: list[int]) -> None:
        """Let some activations end, in one call."""
        self.marking = fire(self.graph, self.marking, [self._done(position) for position in positions])

    def _done(self, position: int) -> Completion:
        activation: Activation = self.marking.frontier[position]
        name = self.graph.names[activation.node]
        visit = self.counts[name] = self.counts.get(name, 0) + 1
        self.ran.append((name, tuple(segment for segment, _ in activation.branch)))
        kind, named = self.kinds.get(name, ("edges", []))
        targets = [self.graph.index[target] for target in named]
        rng = random.Random(f"{self.seed} {name} {visit}")
        if kind == "some":
            return Completion(position, chosen=tuple(rng.sample(targets, rng.randint(1, len(targets)))))
        if kind == "one":
            return Completion(position, chosen=(rng.choice(targets),))
        if kind == "fan":
            return Completion(position, sends=tuple((rng.choice(targets), {}) for _ in range(rng.randint(1, 3))))
        if kind == "loop":
            return Completion(position, chosen=(targets[visit % 2 == 0],))
        return Completion(position)
