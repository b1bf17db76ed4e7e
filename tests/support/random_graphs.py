"""Hypothesis strategies for random graphs, as documents that `load_document` reads.

`structured` graphs are sound: blocks inside blocks, tangles of routes among them. `mutated` ones are structured graphs
with one or two faults; `unstructured` ones are drawn node by node, and mostly unsound. `modes` are those that joins may
have: with `("all",)` most graphs are free-choice. `blocks` makes large sound ones without hypothesis.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from graphagent.graph.compile import build
from graphagent.graph.compiled import CompiledGraph
from graphagent.validation.document import load_document

END = "__end__"
MODES: tuple[Any, ...] = ("all", "all", "all", "active", "any", 2)
Document = dict[str, Any]
Draw = Any


def compiled(doc: Document) -> CompiledGraph:
    """The graph of a document, whatever is wrong with it."""
    builder = load_document(doc).builder
    return build(builder.definition, builder.schema, (), strict=True)


def random_graphs(modes: Sequence[Any] = MODES, size: int = 9) -> st.SearchStrategy[Document]:
    """Graphs of all three sorts, of up to `size` nodes."""
    return st.one_of(structured(modes, size), mutated(modes, size), unstructured(modes, size))


@st.composite
def structured(draw: Draw, modes: Sequence[Any] = MODES, size: int = 9) -> Document:
    """A graph grown from blocks: series, choices, forks with a join, loops, fan-outs, error edges,
    tangles of routes; nested."""
    grown = _Growth(draw, modes, draw(st.integers(1, size)))
    if grown.left > 3 and draw(st.integers(0, 3)) == 0:  # two entries, which a join brings together
        grown.left -= 1
        share = grown.left // 2
        (one, first), (other, second) = grown.block(share), grown.block(grown.left)
        last = grown.node()
        grown.join([first, second], last)
        grown.doc["entry"] = [one, other]
    else:
        one, last = grown.block(grown.left)
        grown.doc["entry"] = [one]
    grown.doc["edges"].append([last, END])
    return grown.doc


@st.composite
def mutated(draw: Draw, modes: Sequence[Any] = MODES, size: int = 9) -> Document:
    """A structured graph in which one or two things were changed, added or left out."""
    doc: Document = draw(structured(modes, size))
    for _ in range(draw(st.integers(1, 2))):
        _mutate(draw, doc, size)
    return doc


@st.composite
def unstructured(draw: Draw, modes: Sequence[Any] = MODES, size: int = 9) -> Document:
    """A graph whose nodes lead anywhere, rather onward than back."""
    names = [f"n{i}" for i in range(draw(st.integers(1, size)))]
    doc = _document(names)
    doc["entry"] = names[: draw(st.sampled_from((1, 1, 1, 2)))]
    for i, name in enumerate(names):
        onward = [*names[i + 1 :], END]
        target = st.one_of(st.sampled_from(onward), st.sampled_from(onward), st.sampled_from([*names, END]))
        _leave(draw, doc, name, target)
    for number in range(draw(st.integers(0, min(3, len(names) // 2)))):
        sources = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        to = draw(st.sampled_from([*names[1:], END]))
        doc["joins"].append(_join(f"j{number}", sources, to, draw(st.sampled_from(modes))))
        if draw(st.booleans()):  # a branch that ends at its join
            doc["edges"] = [edge for edge in doc["edges"] if edge[0] not in sources]
    return doc


def _leave(draw: Draw, doc: Document, name: str, target: st.SearchStrategy[str]) -> None:
    """How one node goes on."""
    targets = draw(st.lists(target, min_size=1, max_size=3, unique=True))
    way = draw(st.sampled_from(("edges",) * 6 + ("one",) * 6 + ("many", "sets", "goto", "send", "map", "both")))
    inside = [t for t in targets if t != END]
    if way in ("edges", "both"):
        doc["edges"] += [[name, t] for t in targets]
    if way in ("one", "many", "both"):
        more = draw(st.lists(target, min_size=1, max_size=3, unique=True)) if way == "both" else targets
        doc["routes"].append({"from": name, "select": "one" if way == "both" else way, "targets": more})
    elif way == "sets":
        sets = draw(st.lists(st.lists(target, min_size=1, max_size=2, unique=True), min_size=1, max_size=3))
        doc["routes"].append({"from": name, "select": "sets", "targets": sets})
    elif way in ("goto", "send"):
        doc["nodes"][name] |= {"destinations": targets if way == "goto" else inside, "jumps": [way]}
    elif way == "map" and inside:
        doc["routes"].append({"from": name, "select": "map", "targets": inside[:1], "collector": targets[-1]})
    if draw(st.integers(0, 9)) == 0:
        doc["errors"].append([name, draw(target), ["ValueError"]])


def _document(names: Sequence[str] = ()) -> Document:
    nodes = {name: {"kind": "function"} for name in names}
    return {"name": "random", "entry": [], "nodes": nodes, "edges": [], "routes": [], "joins": [], "errors": []}


def _join(id: str, sources: list[str], to: str, mode: Any) -> dict[str, Any]:
    return {"id": id, "to": to, "from": sources, "mode": min(mode, len(sources)) if isinstance(mode, int) else mode}


def blocks(rnd: random.Random, size: int) -> Document:
    """A large sound graph of about `size` nodes, without hypothesis: series, choices, forks with a join, loops."""
    doc = _document()
    first, last = _grown(rnd, doc, size)
    return doc | {"entry": [first], "edges": [*doc["edges"], [last, END]]}


def _grown(rnd: random.Random, doc: Document, size: int) -> tuple[str, str]:
    """A block of about `size` nodes: its first and its last node."""
    first = f"n{len(doc['nodes'])}"
    doc["nodes"][first] = {"kind": "function"}
    if size < 2:
        return first, first
    kind = rnd.choice(("series", "series", "fork", "choice", "loop")) if size > 3 else "series"
    if kind == "series":
        inner, last = _grown(rnd, doc, size - 1)
        doc["edges"].append([first, inner])
        return first, last
    width = rnd.randint(2, 4)
    inside = [_grown(rnd, doc, (size - 2) // width) for _ in range(1 if kind == "loop" else width)]
    last = f"n{len(doc['nodes'])}"
    doc["nodes"][last] = {"kind": "function"}
    begins, ends = [begin for begin, _ in inside], [end for _, end in inside]
    if kind == "loop":
        doc["edges"].append([first, begins[0]])
        doc["routes"].append({"from": ends[0], "select": "one", "targets": [first, last]})
    elif kind == "choice":
        doc["routes"].append({"from": first, "select": "one", "targets": begins})
        doc["edges"] += [[end, last] for end in ends]
    else:
        doc["edges"] += [[first, begin] for begin in begins]
        doc["joins"].append(_join(last, ends, last, "all"))
    rest = size - 2 - len(inside) * ((size - 2) // width)
    if rest < 1:
        return first, last
    inner, after = _grown(rnd, doc, rest)
    doc["edges"].append([last, inner])
    return first, after


class _Growth:
    """Blocks with one entry and one exit node, made until no nodes are `left`."""

    def __init__(self, draw: Draw, modes: Sequence[Any], left: int) -> None:
        self.draw = draw
        self.modes = modes
        self.left = left
        self.doc = _document()

    def node(self) -> str:
        name = f"n{len(self.doc['nodes'])}"
        self.doc["nodes"][name] = {"kind": "function"}
        return name

    def join(self, sources: list[str], to: str) -> None:
        mode = self.draw(st.sampled_from(self.modes))
        self.doc["joins"].append(_join(f"j{len(self.doc['joins'])}", sources, to, mode))

    def block(self, size: int) -> tuple[str, str]:
        """A block of up to `size` nodes, at least one."""
        kinds = ["node", *(["series"] if size > 1 else []), *(["loop", "map"] if size > 2 else [])]
        kinds += ["choice", "fork", "fork", "fork", "error", "tangle"] if size > 3 else []
        kind = self.draw(st.sampled_from(kinds if size < 4 else kinds[1:]))
        if kind == "node":
            name = self.node()
            return name, name
        if kind == "series":
            share = self.draw(st.integers(1, size - 1))
            (first, one), (other, last) = self.block(share), self.block(size - share)
            self.edge(one, other)
            return first, last
        if kind == "loop":
            first, end = self.block(size - 2)
            last = self.node()
            self.edge(end, last)
            after = self.node()
            self.route(last, [first, after])
            return first, after
        if kind == "map":
            first, worker, last = self.node(), self.node(), self.node()
            self.doc["routes"].append({"from": first, "select": "map", "targets": [worker], "collector": last})
            self.edge(worker, last)
            return first, last
        if kind == "tangle":
            return self._tangle(self.draw(st.integers(2, min(4, size - 2))))
        return self._branches(kind, size - 2)

    def _tangle(self, size: int) -> tuple[str, str]:
        """Nodes that route to each other as they like, so that no smaller block is in them."""
        names = [self.node() for _ in range(size + 2)]
        for name, following in itertools.pairwise(names):
            others = self.draw(st.lists(st.sampled_from(names[1:]), max_size=3))
            self.route(name, list(dict.fromkeys([following, *others])))
        return names[0], names[-1]

    def _branches(self, kind: str, size: int) -> tuple[str, str]:
        share = self.draw(st.integers(1, size - 1))
        first = self.node()
        branches = [self.block(share), self.block(size - share)]
        last = self.node()
        begins, ends = [begin for begin, _ in branches], [end for _, end in branches]
        if kind == "fork":
            self.doc["edges"] += [[first, begin] for begin in begins]
            self.join(ends, last)
            return first, last
        if kind == "choice":
            self.route(first, begins)
        else:
            self.edge(first, begins[0])
            self.doc["errors"].append([first, begins[1], ["ValueError"]])
        self.doc["edges"] += [[end, last] for end in ends]
        return first, last

    def edge(self, source: str, target: str) -> None:
        self.doc["edges"].append([source, target])

    def route(self, source: str, targets: list[str]) -> None:
        self.doc["routes"].append({"from": source, "select": "one", "targets": targets})


def _mutate(draw: Draw, doc: Document, size: int) -> None:
    any_node = st.sampled_from(list(doc["nodes"]))
    target = st.sampled_from([*doc["nodes"], END])
    edges, routes, joins = doc["edges"], doc["routes"], doc["joins"]
    changes = ["add", *(["drop", "turn"] if edges else []), *(["widen", "many"] if routes else [])]
    changes += ["unjoin", "source", "to", "agree", "agree"] if joins else []
    change = draw(st.sampled_from(changes))
    if change == "add":
        edges.append([draw(any_node), draw(target)])
    elif change == "drop":
        edges.pop(draw(st.integers(0, len(edges) - 1)))
    elif change == "turn":
        edges[draw(st.integers(0, len(edges) - 1))][1] = draw(target)
    elif change in ("widen", "many"):
        route = routes[draw(st.integers(0, len(routes) - 1))]
        if route["select"] == "one":
            route["targets"] = list(dict.fromkeys([*route["targets"], draw(target)]))
            route["select"] = "one" if change == "widen" else "many"
    else:
        join = joins[draw(st.integers(0, len(joins) - 1))]
        if change == "unjoin":
            joins.remove(join)
            edges += [[source, join["to"]] for source in join["from"]]
        elif change == "to":
            join["to"] = draw(target)
        elif change == "agree" and len(doc["nodes"]) + 2 * len(join["from"]) <= size:
            _agree(doc, join)
        else:
            join["from"] = list(dict.fromkeys([*join["from"], draw(any_node)]))[-3:]


def _agree(doc: Document, join: dict[str, Any]) -> None:
    """Let every branch of a join choose for itself which of two joins it goes to."""
    ends: list[list[str]] = [[], []]
    for source in join["from"]:
        for side in ends:
            side.append(f"n{len(doc['nodes'])}")
            doc["nodes"][side[-1]] = {"kind": "function"}
        doc["routes"].append({"from": source, "select": "one", "targets": [side[-1] for side in ends]})
    join["from"] = ends[0]
    doc["joins"].append(join | {"id": f"{join['id']}b", "from": ends[1]})
