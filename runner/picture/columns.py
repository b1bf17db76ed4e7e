"""How far to the right each slot of the ranks is drawn: edges straight, nodes above the middle of their neighbours.

After Brandes and Köpf (2001), "Fast and simple horizontal coordinate assignment": slots are put one below the other in
columns, four times: from the top and from the bottom, from the left and from the right; what is drawn lies between. The
columns are pushed together by longest paths between them, which does without the classes of the paper (and their fault,
Brandes, Walter and Zink, 2020). Linear but for sorting. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from runner.picture.ranks import Ranks

COLUMN_GAP, BEND_GAP = 22.0, 12.0
"""Pixels between two neighbours in a row, and where one of them has no width."""

Rows = Sequence[Sequence[int]]
Near = Sequence[Sequence[int]]


def placed(ranks: Ranks, size: Sequence[float], nodes: int) -> tuple[list[float], float]:
    """The x of the middle of every slot, with the widths `size`, and the width of all. The first `nodes` slots are
    nodes, the others bends of edges."""
    crossed = _crossed(ranks, nodes)
    found: list[list[float]] = []
    for sign in (1.0, -1.0):
        rows = ranks.rows if sign > 0 else [row[::-1] for row in ranks.rows]
        place = [0] * len(size)
        for row in rows:
            for number, slot in enumerate(row):
                place[slot] = number
        for near, order in ((ranks.above, rows), (ranks.below, rows[::-1])):
            x = _pushed(order, _aligned(order, near, place, crossed), size)
            found.append([sign * along for along in x])
    return _between(found, size)


def _crossed(ranks: Ranks, nodes: int) -> set[tuple[int, int]]:
    """Links that cross the link of two bends (the "type 1 conflicts"), both ways round: no column goes along them."""
    place = [0] * len(ranks.row_of)
    for row in ranks.rows:
        for number, slot in enumerate(row):
            place[slot] = number
    crossed: set[tuple[int, int]] = set()
    for upper, lower in pairwise(ranks.rows):
        begun, first = 0, 0
        for number, slot in enumerate(lower):
            inner = slot >= nodes and ranks.above[slot][0] >= nodes
            if not inner and number < len(lower) - 1:
                continue
            end = place[ranks.above[slot][0]] if inner else len(upper)
            for other in lower[begun : number + 1]:
                for near in ranks.above[other]:
                    if not first <= place[near] <= end:
                        crossed |= {(near, other), (other, near)}
            begun, first = number + 1, end
    return crossed


def _aligned(rows: Rows, near: Near, place: Sequence[int], crossed: set[tuple[int, int]]) -> list[int]:
    """Per slot the first slot of its column: each follows the middle one of its neighbours in the row before, if no
    column to the left of it has gone further to the right."""
    root = list(range(len(place)))
    free = [True] * len(place)  # nothing follows it yet
    for row in rows:
        last = -1
        for slot in row:
            others = near[slot]
            if len(others) > 1:
                others = sorted(others, key=place.__getitem__)
            for middle in dict.fromkeys(((len(others) - 1) // 2, len(others) // 2)) if others else ():
                other = others[middle]
                if free[other] and last < place[other] and (other, slot) not in crossed:
                    root[slot], free[other], last = root[other], False, place[other]
                    break
    return root


def _pushed(rows: Rows, root: Sequence[int], size: Sequence[float]) -> list[float]:
    """The columns as far to the left as they can be, and then as far to the right as their neighbours let them."""
    after: list[dict[int, float]] = [{} for _ in root]
    missing = [0] * len(root)
    for row in rows:
        for left, right in pairwise(row):
            a, b = root[left], root[right]
            apart = (size[left] + size[right]) / 2 + (COLUMN_GAP if size[left] and size[right] else BEND_GAP)
            missing[b] += b not in after[a]
            after[a][b] = max(after[a].get(b, 0.0), apart)
    x = [0.0] * len(root)
    order = [slot for slot, first in enumerate(root) if slot == first and not missing[slot]]
    for column in order:  # grows
        for other, apart in after[column].items():
            x[other] = max(x[other], x[column] + apart)
            missing[other] -= 1
            if not missing[other]:
                order.append(other)
    for column in reversed(order):
        if after[column]:
            x[column] = min(x[other] - apart for other, apart in after[column].items())
    return [x[column] for column in root]


def _between(found: Sequence[list[float]], size: Sequence[float]) -> tuple[list[float], float]:
    """The mean of the two middle ones of the four, after they were moved to the sides of the narrowest; from 0 on."""
    if not size:
        return [], 0.0
    lefts = [min(place - width / 2 for place, width in zip(x, size, strict=True)) for x in found]
    rights = [max(place + width / 2 for place, width in zip(x, size, strict=True)) for x in found]
    best = min(range(len(found)), key=lambda number: rights[number] - lefts[number])
    sides = [lefts[best] - left for left in lefts[:2]] + [rights[best] - right for right in rights[2:]]
    middle = []
    for places in zip(*found, strict=True):
        moved = sorted(place + side for place, side in zip(places, sides, strict=True))
        middle.append((moved[1] + moved[2]) / 2)
    left = min(place - width / 2 for place, width in zip(middle, size, strict=True))
    right = max(place + width / 2 for place, width in zip(middle, size, strict=True))
    return [place - left for place in middle], right - left
