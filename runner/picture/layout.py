"""Places for the nodes and ways for the edges of a directed graph, drawn in rows from top to bottom.

`ranks` says which row each node is in and in which order; this says where. In a row every edge that passes goes
straight down at a place of its own, so that none lies on a node or on the label of another. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from runner.picture.columns import placed
from runner.picture.ranks import Ranks, ranked

NODE_HEIGHT, LABEL_HEIGHT = 34.0, 16.0
"""Lengths in pixels."""
_PORT_GAP = 14.0
_LABEL_GAP, _NODE_GAP, _HIGHEST_GAP, _SLANT = 16.0, 30.0, 72.0, 0.09
"""How far apart rows are: the least with a label in one, without, the most; how much more for each pixel aside."""
_LOOP_REACH, _LOOP_SPREAD, _LOOP_RISE = 20.0, 8.0, 4.0

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge to be drawn; `label_width` in pixels, 0 without a label."""

    source: str
    target: str
    label_width: float = 0.0


@dataclass(frozen=True, slots=True)
class Layout:
    """`nodes`: centre of each node. `ways`: for each edge the points from source to target; between two of one x the
    way is straight. `labels`: the middle of the label of each edge, None without one. `width`, `height`: of all."""

    nodes: Mapping[str, Point]
    ways: Sequence[Sequence[Point]]
    labels: Sequence[Point | None]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class _Loop:
    """An edge from a node to itself, drawn at its right side, out of the way of those before it."""

    reach: float
    spread: float
    label_width: float

    @property
    def room(self) -> float:
        """What it takes beside the node, in pixels."""
        return self.reach + self.label_width + 8

    def way(self, centre: Point, width: float) -> list[Point]:
        """Out of the upper part of the side and back into the lower one."""
        side, y = centre[0] + width / 2, centre[1] - _LOOP_RISE
        far, up, down = side + self.reach, y - self.spread, y + self.spread
        return [(side, up), (far, up), (far, down), (side, down)]

    def label(self, centre: Point, width: float) -> Point:
        """The middle of its label."""
        return centre[0] + width / 2 + self.reach + 4 + self.label_width / 2, centre[1] - _LOOP_RISE


def layout(widths: Mapping[str, float], edges: Sequence[Edge], flats: Mapping[str, float] | None = None) -> Layout:
    """The layout of nodes (name -> width, the first one on top) and edges; the same for the same input. `flats`: how
    wide the part of a node's upper and lower side is that edges may meet, where that isn't its width."""
    number = {name: i for i, name in enumerate(widths)}
    ranks = ranked(
        len(number), [(number[e.source], number[e.target]) for e in edges], [e.label_width > 0 for e in edges]
    )
    loops = _loops(edges)
    size = _sizes(ranks, widths, edges, loops)
    x, width = placed(ranks, size, len(number))
    tops, height = _tops(ranks, x)
    tall = [LABEL_HEIGHT if label else NODE_HEIGHT for label in ranks.for_labels]
    at = [(place, tops[row] + tall[row] / 2) for place, row in zip(x, ranks.row_of, strict=True)]
    ports = _ports(ranks, x, [*(flats or widths).values()])
    ways: list[list[Point]] = []
    labels: list[Point | None] = []
    for i, edge in enumerate(edges):
        if loop := loops[i]:
            centre, own = at[number[edge.source]], widths[edge.source]
            ways.append(loop.way(centre, own))
            labels.append(loop.label(centre, own) if edge.label_width else None)
            continue
        corners = [(at[slot], tall[ranks.row_of[slot]] / 2) for slot in ranks.chains[i]]
        points = [*chain.from_iterable(((cx, cy - half), (cx, cy + half)) for (cx, cy), half in corners)][1:-1]
        points[0], points[-1] = (ports[i, True], points[0][1]), (ports[i, False], points[-1][1])
        ways.append(points[::-1] if i in ranks.turned else points)
        slot_of = ranks.label_slots[i]
        labels.append(None if slot_of is None else at[slot_of])
    return Layout({name: at[i] for name, i in number.items()}, ways, labels, width, height)


def _loops(edges: Sequence[Edge]) -> list[_Loop | None]:
    """Per edge how it is drawn if it is a loop; several at one node stand side by side, the later ones higher."""
    taken: dict[str, list[_Loop]] = {}
    found: list[_Loop | None] = []
    for edge in edges:
        if edge.source != edge.target:
            found.append(None)
            continue
        others = taken.setdefault(edge.source, [])
        reach = _LOOP_REACH + (others[-1].room if others else 0.0)
        others.append(_Loop(reach, _LOOP_SPREAD + 4 * len(others) / (len(others) + 1), edge.label_width))
        found.append(others[-1])
    return found


def _sizes(
    ranks: Ranks, widths: Mapping[str, float], edges: Sequence[Edge], loops: Sequence[_Loop | None]
) -> list[float]:
    """The width of each slot; a loop takes room at the right of its node, and as much at the left."""
    size = [*widths.values(), *([0.0] * (len(ranks.row_of) - len(widths)))]
    for i, edge in enumerate(edges):
        slot, loop = ranks.label_slots[i], loops[i]
        if slot is not None:
            size[slot] = edge.label_width
        if loop:
            own = ranks.chains[i][0]
            size[own] = max(size[own], widths[edge.source] + 2 * loop.room)
    return size


def _tops(ranks: Ranks, x: Sequence[float]) -> tuple[list[float], float]:
    """The upper side of each row, and the height of all: the further aside an edge goes, the more room it has."""
    aside = [0.0] * len(ranks.rows)
    for slot, others in enumerate(ranks.below):
        row = ranks.row_of[slot]
        for other in others:
            aside[row] = max(aside[row], abs(x[other] - x[slot]))
    tops: list[float] = []
    end = top = 0.0
    for number, label in enumerate(ranks.for_labels):
        tops.append(top)
        end = top + (LABEL_HEIGHT if label else NODE_HEIGHT)
        beside = label or (number + 1 < len(aside) and ranks.for_labels[number + 1])
        top = end + min((_LABEL_GAP if beside else _NODE_GAP) + _SLANT * aside[number], _HIGHEST_GAP)
    return tops, end


def _ports(ranks: Ranks, x: Sequence[float], flats: Sequence[float]) -> dict[tuple[int, bool], float]:
    """The x at which each edge meets its upper node (True) and its lower one (False): side by side, uncrossed."""
    ends: dict[tuple[int, bool], list[tuple[float, int]]] = {}
    for number, slots in enumerate(ranks.chains):
        if len(slots) > 1:
            ends.setdefault((slots[0], True), []).append((x[slots[1]], number))
            ends.setdefault((slots[-1], False), []).append((x[slots[-2]], number))
    ports: dict[tuple[int, bool], float] = {}
    for (node, upper), found in ends.items():
        gap = min(_PORT_GAP, flats[node] / len(found))
        for place, (_, number) in enumerate(sorted(found)):
            ports[number, upper] = x[node] + (place - (len(found) - 1) / 2) * gap
    return ports
