"""Places for the nodes and ways for the edges of a directed graph, drawn in layers from top to bottom.

The steps are those of Sugiyama, Tagawa and Toda (1981): turn the edges of cycles round, give every node a layer, split
long edges by bends, order each layer by the barycentres of its neighbours, then place. Every second layer is for the
labels of edges, so that none lies on another. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

NODE_HEIGHT, LABEL_HEIGHT, ROW_GAP, COLUMN_GAP = 34.0, 16.0, 14.0, 22.0
"""Lengths in pixels."""
_SWEEPS, _PASSES, _PORT_GAP = 12, 10, 14.0

Point = tuple[float, float]
Slot = Hashable
"""What has a place in a layer: the name of a node, or (number of an edge, layer) for a bend."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge to be drawn; `label_width` in pixels, 0 without a label."""

    source: str
    target: str
    label_width: float = 0.0


@dataclass(frozen=True, slots=True)
class Layout:
    """`nodes`: centre of each node. `ways`: for each edge the points from source to target. `labels`: where the label
    of each edge is. `width`, `height`: of all."""

    nodes: Mapping[str, Point]
    ways: Sequence[Sequence[Point]]
    labels: Sequence[Point]
    width: float
    height: float


def layout(widths: Mapping[str, float], edges: Sequence[Edge]) -> Layout:
    """The layout of nodes (name -> width, the first one on top) and edges; the same for the same input."""
    turned = _turned(list(widths), edges)
    down = [(e.target, e.source) if i in turned else (e.source, e.target) for i, e in enumerate(edges)]
    layer = _layers(list(widths), [(a, b) for a, b in down if a != b])
    chains = [_chain(i, a, b, layer) for i, (a, b) in enumerate(down)]
    size: dict[Slot, float] = {name: width for name, width in widths.items()}  # noqa: C416 -- a wider type of key
    for edge, chain in zip(edges, chains, strict=True):
        size.update({slot: (edge.label_width if place == 1 else 0.0) for place, slot in enumerate(chain[1:-1], 1)})
        if edge.source == edge.target:  # a loop takes room at the right of its node
            size[edge.source] = max(size[edge.source], widths[edge.source] + 2 * (36 + edge.label_width))
    rows = _ordered(_rows(widths, layer, chains), chains)
    x = _placed(rows, chains, size)
    left = min((x[slot] - size[slot] / 2 for row in rows for slot in row), default=0.0)
    right = max((x[slot] + size[slot] / 2 for row in rows for slot in row), default=0.0)
    y, height = _heights(len(rows))
    at = {slot: (x[slot] - left, y[number]) for number, row in enumerate(rows) for slot in row}
    labelled = {at[chain[1]][1] for edge, chain in zip(edges, chains, strict=True) if edge.label_width}
    kept = [_bends(chain, at, labelled) for chain in chains]
    ways = [way if i not in turned else way[::-1] for i, way in enumerate(_ways(chains, kept, at, widths))]
    labels = [
        at[chain[1]] if len(chain) > 2 else (at[chain[0]][0] + widths[edge.source] / 2 + 30, at[chain[0]][1])
        for edge, chain in zip(edges, chains, strict=True)
    ]
    return Layout({name: at[name] for name in widths}, ways, labels, right - left, height)


def _turned(names: list[str], edges: Sequence[Edge]) -> set[int]:
    """Numbers of the edges that close a cycle, found by a walk in depth from the first nodes on."""
    out: dict[str, list[tuple[int, str]]] = {name: [] for name in names}
    for number, edge in enumerate(edges):
        out[edge.source].append((number, edge.target))
    found: set[int] = set()
    seen: set[str] = set()
    for root in names:
        if root in seen:
            continue
        open_ones, walk = {root: None}, [(root, iter(out[root]))]
        seen.add(root)
        while walk:
            name, rest = walk[-1]
            for number, target in rest:
                if target in open_ones and target != name:
                    found.add(number)
                elif target not in seen:
                    seen.add(target)
                    open_ones[target] = None
                    walk.append((target, iter(out[target])))
                    break
            else:
                walk.pop()
                del open_ones[name]
    return found


def _layers(names: list[str], down: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The length of the longest way to each node, times two: between two nodes there is a layer for labels."""
    out: dict[str, list[str]] = {name: [] for name in names}
    missing = dict.fromkeys(names, 0)
    for source, target in down:
        out[source].append(target)
        missing[target] += 1
    layer = dict.fromkeys(names, 0)
    ready = [name for name in names if not missing[name]]
    while ready:
        name = ready.pop()
        for target in out[name]:
            layer[target] = max(layer[target], layer[name] + 2)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return layer


def _chain(number: int, source: str, target: str, layer: Mapping[str, int]) -> list[Slot]:
    return [source, *((number, between) for between in range(layer[source] + 1, layer[target])), target]


def _rows(names: Mapping[str, float], layer: Mapping[str, int], chains: Sequence[Sequence[Slot]]) -> list[list[Slot]]:
    rows: list[list[Slot]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for name in names:
        rows[layer[name]].append(name)
    for chain in chains:
        for place, slot in enumerate(chain[1:-1], 1):
            rows[layer[str(chain[0])] + place].append(slot)
    return rows


def _neighbours(chains: Sequence[Sequence[Slot]]) -> tuple[dict[Slot, list[Slot]], dict[Slot, list[Slot]]]:
    above: dict[Slot, list[Slot]] = {}
    below: dict[Slot, list[Slot]] = {}
    for chain in chains:
        for upper, lower in pairwise(chain):
            if upper != lower:
                below.setdefault(upper, []).append(lower)
                above.setdefault(lower, []).append(upper)
    return above, below


def _ordered(rows: list[list[Slot]], chains: Sequence[Sequence[Slot]]) -> list[list[Slot]]:
    """The rows with few crossings: the best order that the sweeps came by."""
    above, below = _neighbours(chains)
    best, fewest = rows, _crossings(rows, below)
    for sweep in range(_SWEEPS):
        rows = [list(row) for row in rows]
        numbers = range(1, len(rows)) if sweep % 2 == 0 else range(len(rows) - 2, -1, -1)
        near = above if sweep % 2 == 0 else below
        for number in numbers:
            other = rows[number - 1 if sweep % 2 == 0 else number + 1]
            place = {slot: i for i, slot in enumerate(other)}
            here = {slot: i for i, slot in enumerate(rows[number])}
            rows[number].sort(key=_barycentre(near, place, here, len(other) / max(len(here), 1)))
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _barycentre(
    near: Mapping[Slot, list[Slot]], place: Mapping[Slot, int], here: Mapping[Slot, int], scale: float
) -> Callable[[Slot], float]:
    def key(slot: Slot) -> float:
        places = [place[other] for other in near.get(slot, ())]
        return sum(places) / len(places) if places else here[slot] * scale

    return key


def _crossings(rows: Sequence[Sequence[Slot]], below: Mapping[Slot, list[Slot]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        place = {slot: i for i, slot in enumerate(lower)}
        ends = [end for slot in upper for end in sorted(place[other] for other in below.get(slot, ()))]
        total += sum(1 for i, end in enumerate(ends) for later in ends[i + 1 :] if later < end)
    return total


def _placed(
    rows: Sequence[Sequence[Slot]], chains: Sequence[Sequence[Slot]], size: Mapping[Slot, float]
) -> dict[Slot, float]:
    """The x of every slot: as near to its neighbours as its row lets it be."""
    above, below = _neighbours(chains)
    x: dict[Slot, float] = {}
    for row in rows:
        x.update(zip(row, _apart([0.0] * len(row), [size[slot] for slot in row]), strict=True))
    for number in range(2 * _PASSES):
        for row in rows if number % 2 == 0 else rows[::-1]:
            near = [[*above.get(slot, ()), *below.get(slot, ())] for slot in row]
            wanted = [sum(x[o] for o in others) / len(others) if others else x[slot]
                      for slot, others in zip(row, near, strict=True)]  # fmt: skip
            x.update(zip(row, _apart(wanted, [size[slot] for slot in row]), strict=True))
    return x


def _apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The places nearest to the wanted ones (least squares) at which nothing overlaps and the order stays.

    Pool adjacent violators on the places less the room that what is left of them takes.
    """
    room = [0.0]
    for left, right in pairwise(widths):
        room.append(room[-1] + (left + right) / 2 + COLUMN_GAP)
    pools: list[tuple[float, int]] = []  # sum of places, number of them
    for place, taken in zip(wanted, room, strict=False):
        total, count = place - taken, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, number = pools.pop()
            total, count = total + before, count + number
        pools.append((total, count))
    spread = [total / count for total, count in pools for _ in range(count)]
    return [place + taken for place, taken in zip(spread, room, strict=False)]


def _heights(rows: int) -> tuple[list[float], float]:
    """The y of the middle of every row, and the height of all: nodes and labels take turns."""
    y: list[float] = []
    top = 0.0
    for number in range(rows):
        height = NODE_HEIGHT if number % 2 == 0 else LABEL_HEIGHT
        y.append(top + height / 2)
        top += height + ROW_GAP
    return y, max(top - ROW_GAP, 0.0)


def _bends(chain: Sequence[Slot], at: Mapping[Slot, Point], labelled: Set[float]) -> list[Point]:
    """Where an edge must pass: rows with nodes or labels in them; elsewhere it may take its own way."""
    return [at[slot] for i, slot in enumerate(chain[1:-1], 1) if i % 2 == 0 or at[slot][1] in labelled]


def _ways(
    chains: Sequence[Sequence[Slot]],
    kept: Sequence[Sequence[Point]],
    at: Mapping[Slot, Point],
    widths: Mapping[str, float],
) -> list[list[Point]]:
    """The points of every edge from top to bottom; edges at one side of a node leave it side by side."""
    leaving: dict[Slot, list[tuple[float, int]]] = {}
    coming: dict[Slot, list[tuple[float, int]]] = {}
    for number, chain in enumerate(chains):
        if chain[0] != chain[-1]:
            leaving.setdefault(chain[0], []).append((at[chain[1]][0], number))
            coming.setdefault(chain[-1], []).append((at[chain[-2]][0], number))
    ports: dict[tuple[int, bool], float] = {}
    for ends, top in ((leaving, True), (coming, False)):
        for name, found in ends.items():
            gap = min(_PORT_GAP, widths[str(name)] / (len(found) + 1))
            for place, (_, number) in enumerate(sorted(found)):
                ports[number, top] = at[name][0] + (place - (len(found) - 1) / 2) * gap
    ways = []
    for number, chain in enumerate(chains):
        if chain[0] == chain[-1]:
            x, y = at[chain[0]]
            side = x + widths[str(chain[0])] / 2
            ways.append([(side, y - 8), (side + 26, y - 8), (side + 26, y + 8), (side, y + 8)])
            continue
        start = (ports[number, True], at[chain[0]][1] + NODE_HEIGHT / 2)
        end = (ports[number, False], at[chain[-1]][1] - NODE_HEIGHT / 2)
        ways.append([start, *kept[number], end])
    return ways
