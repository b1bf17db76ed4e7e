"""The layout: nothing lies on anything else, edges meet their nodes, and the work grows no faster than the graph."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.validation_graphs import structured
from graphagent.graph.draw import lines
from runner.picture.columns import COLUMN_GAP
from runner.picture.layout import LABEL_HEIGHT, NODE_HEIGHT, Edge, Layout, layout
from runner.picture.ranks import Ranks, ranked

Box = tuple[float, float, float, float]
Make = Callable[[int], tuple[dict[str, float], list[Edge]]]
TOLERANCE = 0.001


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, float], list[Edge]]:
    """Any nodes, with any edges between them: cycles, loops, parallel ones, parts that hang together with nothing."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 14)))]
    widths = {name: draw(st.sampled_from([30.0, 57.0, 200.0])) for name in names}
    any_node = st.sampled_from(names)
    edge = st.builds(Edge, any_node, any_node, st.sampled_from([0.0, 0.0, 24.0, 150.0]))
    return widths, draw(st.lists(edge, max_size=30))


def box(centre: tuple[float, float], width: float, height: float) -> Box:
    """Left, top, right, bottom."""
    x, y = centre
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes have more than a side in common."""
    wide = min(a[2], b[2]) - max(a[0], b[0])
    return wide > TOLERANCE and min(a[3], b[3]) - max(a[1], b[1]) > TOLERANCE


def boxes(made: Layout, widths: dict[str, float], edges: list[Edge]) -> list[tuple[object, Box]]:
    """All nodes, by name, and all labels, by the number of their edge."""
    labels = [(i, box(place, edges[i].label_width, LABEL_HEIGHT - 2)) for i, place in enumerate(made.labels) if place]
    return [*((name, box(at, widths[name], NODE_HEIGHT)) for name, at in made.nodes.items()), *labels]


def room(one: tuple[float, float], other: tuple[float, float]) -> Box:
    """What a piece of a way may touch: a smooth piece goes up or down no further than its ends, and neither aside."""
    return min(one[0], other[0]), min(one[1], other[1]), max(one[0], other[0]) + 0.01, max(one[1], other[1])


@given(graphs())
@settings(max_examples=150, deadline=None)
def test_nothing_lies_on_anything_else(graph: tuple[dict[str, float], list[Edge]]) -> None:
    """No node or label overlaps another, and no way touches one that isn't its own; all are inside the picture."""
    widths, edges = graph
    made = layout(widths, edges)
    found = boxes(made, widths, edges)
    for (_, a), (_, b) in itertools.combinations(found, 2):
        assert not overlap(a, b)
    for i, way in enumerate(made.ways):
        own = {i, edges[i].source, edges[i].target} if edges[i].source == edges[i].target else {i}
        for piece in itertools.pairwise(way):
            assert not [what for what, there in found if what not in own and overlap(room(*piece), there)]
    inside = (-TOLERANCE, -TOLERANCE, made.width + TOLERANCE, made.height + TOLERANCE)
    for left, top, right, bottom in (there for _, there in found):
        assert inside[0] <= left <= right <= inside[2]
        assert inside[1] <= top <= bottom <= inside[3]
    assert made == layout(widths, edges)


@given(graphs())
@settings(max_examples=100, deadline=None)
def test_edges_meet_their_nodes_side_by_side(graph: tuple[dict[str, float], list[Edge]]) -> None:
    """An edge begins and ends at a side of its nodes, upright but for loops, and no two at the same point."""
    widths, edges = graph
    made = layout(widths, edges)
    met: list[tuple[float, float]] = []
    for edge, way in zip(edges, made.ways, strict=True):
        for (x, y), name in ((way[0], edge.source), (way[-1], edge.target)):
            left, top, right, bottom = box(made.nodes[name], widths[name], NODE_HEIGHT)
            if edge.source == edge.target:
                assert (x, top < y < bottom) == (right, True)
            else:
                assert left <= x <= right
                assert min(abs(y - top), abs(y - bottom)) < TOLERANCE
            met.append((round(x, 3), round(y, 3)))
    assert len(set(met)) == len(met)


@pytest.mark.parametrize("label", [0.0, 30.0, 200.0])
def test_loops_stand_side_by_side(label: float) -> None:
    """Eight loops of one node and their labels are beside it, each out of the way of the others, and meet it apart."""
    loops = [Edge("a", "a", label)] * 8
    made = layout({"a": 50.0}, loops)
    reach = [max(x for x, _ in way) for way in made.ways]
    assert reach == sorted(set(reach))
    assert len({way[0] for way in made.ways} | {way[-1] for way in made.ways}) == 16
    if label:
        left = [place[0] - label / 2 for place in made.labels if place]
        assert all(a < b for a, b in zip(reach, left, strict=True))
        assert all(b - label < c for b, c in zip(left[1:], reach[1:], strict=True))


def test_a_long_edge_is_straight() -> None:
    """An edge past 20 nodes has two turns at the most, and a chain stands one below the other."""
    names = [f"n{i}" for i in range(21)]
    edges = [*(Edge(a, b) for a, b in itertools.pairwise(names)), Edge("n0", "n20"), Edge("n19", "n1")]
    made = layout(dict.fromkeys(names, 50.0), edges)
    for way in made.ways[-2:]:
        assert len({round(x, 3) for x, _ in way[1:-1]}) == 1
    assert len({round(made.nodes[name][0], 3) for name in names[2:19]}) == 1


def test_a_tree_has_no_crossings() -> None:
    """The children of a node stand together, whatever the order of the edges."""
    pairs = [(i, 2 * i + 1 + side) for i in range(31) for side in (0, 1)]
    random.Random(7).shuffle(pairs)
    ranks = ranked(63, pairs, [False] * len(pairs))
    place = {slot: i for row in ranks.rows for i, slot in enumerate(row)}
    below = [[place[b] for a in row for b in sorted(ranks.below[a], key=place.__getitem__)] for row in ranks.rows]
    assert below == [sorted(row) for row in below]


def test_no_two_neighbours_would_cross_less_the_other_way_round() -> None:
    """In graphs with crossings that can't be helped, exchanging two neighbours of a row takes none away."""
    for seed in range(12):
        rng = random.Random(seed)
        pairs = [(rng.randrange(20), rng.randrange(20)) for _ in range(32)]
        ranks = ranked(20, pairs, [False] * len(pairs))
        best = crossings(ranks)
        for row in ranks.rows:
            for i in range(len(row) - 1):
                row[i], row[i + 1] = row[i + 1], row[i]
                assert crossings(ranks) >= best
                row[i], row[i + 1] = row[i + 1], row[i]


def crossings(ranks: Ranks) -> int:
    """How many pairs of links between two rows cross, by looking at each pair."""
    place = {slot: i for row in ranks.rows for i, slot in enumerate(row)}
    links = [[(place[a], place[b]) for a in row for b in ranks.below[a]] for row in ranks.rows]
    return sum((a - c) * (b - d) < 0 for row in links for (a, b), (c, d) in itertools.combinations(row, 2))


@pytest.mark.parametrize(
    ("widths", "edges"), [({}, []), ({"a": 30.0}, []), ({"a": 30.0, "b": 30.0}, []), ({"a": 30.0}, [Edge("a", "a")])]
)
def test_the_least_there_can_be(widths: dict[str, float], edges: list[Edge]) -> None:
    """No node, one, two without an edge, one with itself: a picture as wide as what is in it."""
    made = layout(widths, edges)
    assert set(made.nodes) == set(widths)
    assert made.width >= sum(widths.values()) + COLUMN_GAP * max(len(widths) - 1, 0)


def test_turned_edges_have_their_label_at_their_source() -> None:
    """The label of a way back is in the row above the node that it leaves, not at the other end."""
    made = layout(dict.fromkeys("abcde", 40.0), [*map(Edge, "abcd", "bcde"), Edge("e", "a", 40.0)])
    place = made.labels[-1]
    assert place is not None
    assert made.nodes["d"][1] < place[1] < made.nodes["e"][1]


def test_a_long_chain_is_laid_out_without_deep_recursion() -> None:
    """A chain of 3,000 nodes with a way back from every tenth."""
    names = [f"n{i}" for i in range(3000)]
    edges = [Edge(a, b) for a, b in itertools.pairwise(names)]
    edges += [Edge(names[i], names[i - 9]) for i in range(10, 3000, 10)]
    assert len(layout(dict.fromkeys(names, 50.0), edges).ways) == len(edges)


def layered(nodes: int) -> tuple[dict[str, float], list[Edge]]:
    """Rows of ten nodes with some 5 edges for every 3 of them, every fifth with a label; a fixed draw."""
    rng = random.Random(nodes)
    names = [f"n{i}" for i in range(nodes)]
    edges = [Edge(names[i - 10 + rng.randint(-1, 1)], name) for i, name in enumerate(names) if i > 10]
    edges += [Edge(names[i - rng.choice((9, 10, 11, 20))], names[i], 30.0 * (i % 5 == 0)) for i in range(20, nodes, 3)]
    edges += [Edge(names[i], names[i - 20]) for i in range(21, nodes, 3)]
    return dict.fromkeys(names, 57.0), edges


def calls(widths: dict[str, float], edges: list[Edge]) -> int:
    """How many calls, of Python and of C functions, a layout takes."""
    count = 0

    def seen(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        layout(widths, edges)
    finally:
        sys.setprofile(None)
    return count


def blocks(nodes: int) -> tuple[dict[str, float], list[Edge]]:
    """The graph of the validation benchmark: series, choices, forks, loops."""
    graph = structured(nodes).compile()
    drawn = [Edge(line.source, line.target, 30.0 if line.label else 0.0) for line in lines(graph)]
    return dict.fromkeys([*graph.names, "__start__", "__end__"], 57.0), drawn


@pytest.mark.parametrize(("make", "nodes", "most"), [(layered, 300, 400), (blocks, 250, 80)])
def test_the_work_grows_with_the_graph(make: Make, nodes: int, most: int) -> None:
    """Twice the nodes and edges take little more than twice the calls, and few for each of them."""
    widths, edges = make(nodes)
    small, large = calls(widths, edges), calls(*make(2 * nodes))
    assert large < 2.6 * small
    assert small < most * (len(widths) + len(edges))
