"""Which row each node of a directed graph is drawn in, and in which order the rows stand from left to right.

The first three steps of Sugiyama, Tagawa and Toda (1981): turn the edges that close cycles round, give every node a
layer, split long edges by bends and order each row by the barycentres of its neighbours; at the end neighbours are
exchanged where that helps. Between two layers of nodes there is a row for labels where an edge has one there. Nodes and
bends are slots, counted from 0, the nodes first. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_SWEEPS, _PATIENCE, _EXCHANGES = 12, 4, 4
"""How often the rows are ordered anew, how many times without fewer crossings before that is given up, and how often
neighbours are exchanged at the end."""

Ends = tuple[int, int]


@dataclass(slots=True)
class Ranks:
    """`rows`: the slots of each row from left to right. `for_labels`: which rows are for labels. `row_of`: the row of
    each slot. `chains`: per edge its slots from the upper node to the lower one; a loop has one slot only. `turned`:
    numbers of the edges that lead upwards. `label_slots`: per edge where its label is, None without one or at a loop.
    `above`, `below`: per slot the slots that it is linked with."""

    rows: list[list[int]]
    for_labels: list[bool]
    turned: frozenset[int]
    row_of: list[int] = field(default_factory=list)
    chains: list[list[int]] = field(default_factory=list)
    label_slots: list[int | None] = field(default_factory=list)
    above: list[list[int]] = field(default_factory=list)
    below: list[list[int]] = field(default_factory=list)


def ranked(nodes: int, ends: Sequence[Ends], labelled: Sequence[bool]) -> Ranks:
    """The rows of `nodes` nodes, the first one on top, and of the edges between them, in an order with few crossings.
    `labelled` says which edges have a label."""
    back = turned(nodes, ends)
    down = [(b, a) if i in back else (a, b) for i, (a, b) in enumerate(ends)]
    layer = _layers(nodes, [pair for pair in down if pair[0] != pair[1]])
    ranks = _rows(nodes, down, _label_layers(down, layer, labelled, back), layer, back)
    _link(ranks)
    _sort(ranks)
    return ranks


def turned(nodes: int, ends: Sequence[Ends]) -> frozenset[int]:
    """Numbers of the edges that close a cycle and so lead upwards, found by a walk in depth from the first nodes on."""
    out: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    for number, (source, target) in enumerate(ends):
        out[source].append((number, target))
    found: set[int] = set()
    seen, open_ones = [False] * nodes, [False] * nodes
    for root in range(nodes):
        if seen[root]:
            continue
        seen[root] = open_ones[root] = True
        walk = [(root, iter(out[root]))]
        while walk:
            node, rest = walk[-1]
            for number, target in rest:
                if open_ones[target] and target != node:
                    found.add(number)
                elif not seen[target]:
                    seen[target] = open_ones[target] = True
                    walk.append((target, iter(out[target])))
                    break
            else:
                walk.pop()
                open_ones[node] = False
    return frozenset(found)


def _layers(nodes: int, down: Sequence[Ends]) -> list[int]:
    """The length of the longest way to each node."""
    out: list[list[int]] = [[] for _ in range(nodes)]
    missing, layer = [0] * nodes, [0] * nodes
    for source, target in down:
        out[source].append(target)
        missing[target] += 1
    ready = [node for node in range(nodes) if not missing[node]]
    while ready:
        node = ready.pop()
        for target in out[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return layer


def _label_layers(
    down: Sequence[Ends], layer: Sequence[int], labelled: Sequence[bool], back: frozenset[int]
) -> list[int | None]:
    """Per edge the layer below which its label is: next to its source; None without one, or at a loop."""
    return [
        None if not has or a == b else layer[b] - 1 if number in back else layer[a]
        for number, ((a, b), has) in enumerate(zip(down, labelled, strict=True))
    ]


def _rows(
    nodes: int, down: Sequence[Ends], places: Sequence[int | None], layer: Sequence[int], back: frozenset[int]
) -> Ranks:
    wanted = {place for place in places if place is not None}
    number_of: list[int] = []  # the row of each layer of nodes
    for_labels: list[bool] = []
    for number in range(max(layer, default=0) + 1):
        number_of.append(len(for_labels))
        for_labels += [False, True] if number in wanted else [False]
    ranks = Ranks([[] for _ in for_labels], for_labels, back)
    ranks.row_of = [number_of[layer[node]] for node in range(nodes)]
    for (a, b), place in zip(down, places, strict=True):
        first = len(ranks.row_of)
        ranks.row_of += range(ranks.row_of[a] + 1, ranks.row_of[b])
        ranks.chains.append([a] if a == b else [a, *range(first, len(ranks.row_of)), b])
        ranks.label_slots.append(None if place is None else first + number_of[place] - ranks.row_of[a])
    return ranks


def _link(ranks: Ranks) -> None:
    """Who is next to whom, and the rows in the order in which a walk in depth comes by: trees have no crossings so."""
    ranks.above, ranks.below = [[] for _ in ranks.row_of], [[] for _ in ranks.row_of]
    for chain in ranks.chains:
        for upper, lower in pairwise(chain):
            ranks.below[upper].append(lower)
            ranks.above[lower].append(upper)
    seen = [False] * len(ranks.row_of)
    walk = [slot for slot in reversed(range(len(seen))) if not ranks.above[slot]]
    while walk:
        slot = walk.pop()
        if not seen[slot]:
            seen[slot] = True
            ranks.rows[ranks.row_of[slot]].append(slot)
            walk += reversed(ranks.below[slot])


def _sort(ranks: Ranks) -> None:
    """Order the rows: the best order that the sweeps came by."""
    place = [0] * len(ranks.row_of)
    best, fewest, idle = [list(row) for row in ranks.rows], _crossings(ranks, place), 0
    for sweep in range(_SWEEPS):
        if not fewest or idle == _PATIENCE:
            break
        near, rows = (ranks.above, ranks.rows[1:]) if sweep % 2 == 0 else (ranks.below, ranks.rows[-2::-1])
        for row in rows:
            keys = [_barycentre([place[other] for other in near[slot]], place[slot]) for slot in row]
            row[:] = [slot for _, _, slot in sorted(zip(keys, range(len(row)), row, strict=True))]
            for number, slot in enumerate(row):
                place[slot] = number
        crossings = _crossings(ranks, place)
        idle += 1
        if crossings < fewest:
            best, fewest, idle = [list(row) for row in ranks.rows], crossings, 0
    ranks.rows = best
    if fewest:
        _exchange(ranks, place)


def _exchange(ranks: Ranks, place: list[int]) -> None:
    """Exchange neighbours in a row as long as that takes crossings away."""
    _put(ranks, place)
    for _ in range(_EXCHANGES):
        changed = False
        for row in ranks.rows:
            for number in range(len(row) - 1):
                left, right = row[number], row[number + 1]
                gain = 0
                for near in (ranks.above, ranks.below):
                    for one in near[left]:
                        for other in near[right]:
                            gain += (place[one] > place[other]) - (place[one] < place[other])
                if gain > 0:
                    row[number], row[number + 1] = right, left
                    place[right], place[left] = number, number + 1
                    changed = True
        if not changed:
            return


def _barycentre(places: Sequence[int], own: int) -> float:
    return sum(places) / len(places) if places else own


def _crossings(ranks: Ranks, place: list[int]) -> int:
    """How many pairs of links cross; `place` becomes the place of each slot in its row."""
    _put(ranks, place)
    return sum(_inversions(place[o] for slot in row for o in _by_place(ranks.below[slot], place)) for row in ranks.rows)


def _put(ranks: Ranks, place: list[int]) -> None:
    for row in ranks.rows:
        for number, slot in enumerate(row):
            place[slot] = number


def _by_place(slots: list[int], place: Sequence[int]) -> list[int]:
    return slots if len(slots) < 2 else sorted(slots, key=place.__getitem__)


def _inversions(numbers: Iterable[int]) -> int:
    seen: list[int] = []
    total = 0
    for number in numbers:
        at = bisect_right(seen, number)
        total += len(seen) - at
        seen.insert(at, number)
    return total
