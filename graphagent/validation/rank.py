"""Whether a free-choice net is sound, decided in polynomial time by the rank theorem, in whole numbers.

A net with one token at its first place is sound if, once its last place leads back to the first, it is live and
bounded. By the rank theorem (Desel and Esparza, Free Choice Petri Nets, 1995, theorem 6.17) a strongly connected
free-choice net has a live and bounded marking exactly if it has a positive P-invariant, a positive T-invariant, and an
incidence matrix whose rank is one less than the number of its clusters; the given marking is one if every siphon holds
a token (Commoner; theorem 5.8). In such a net every minimal siphon is the place set of an S-component, and dually
(proposition 5.4, theorem 5.6, section 6.4). So no linear program is needed for the invariants: a siphon that is minimal
around each place is found by breadth-first search, and either they are S-components, whose sum is the P-invariant, or
the net is not sound.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import NamedTuple

from graphagent.validation.net import Net

Sets = Sequence[frozenset[int]]


class _Closed(NamedTuple):
    """The net with its last place leading back to the first. `makers`, `takers`: per place its transitions."""

    before: Sets
    after: Sets
    makers: Sets
    takers: Sets


def sound(net: Net) -> bool:
    """True if every run of the net empties it but for one token at the last place, and every transition can fire.

    Exact for free-choice nets; False for others. Takes some seconds for 5,000 places and transitions, and grows with
    the square.
    """
    closed = _close(net)
    if any(not made for made in closed.after) or not _strongly_connected(closed, net.first):
        return False
    clusters = set(closed.before)
    if sum(map(len, clusters)) != len(net.places):
        return False
    return (
        _siphons_marked(closed, net.first)
        and _covered(closed)
        and _covered(_Closed(closed.takers, closed.makers, closed.after, closed.before))
        and _rank_is(closed, len(clusters) - 1)
    )


def _close(net: Net) -> _Closed:
    before, after = (*net.before, frozenset({net.last})), (*net.after, frozenset({net.first}))
    return _Closed(before, after, _turned(after, len(net.places)), _turned(before, len(net.places)))


def _turned(sets: Sets, size: int) -> Sets:
    found: list[set[int]] = [set() for _ in range(size)]
    for number, members in enumerate(sets):
        for member in members:
            found[member].add(number)
    return [frozenset(members) for members in found]


def _strongly_connected(net: _Closed, first: int) -> bool:
    """Everything can be reached from the first place, and can reach it."""
    places = len(net.makers)
    return all(
        len(_reached(first, onward, filled)) == places
        for onward, filled in ((net.takers, net.after), (net.makers, net.before))
    )


def _reached(first: int, onward: Sets, filled: Sets) -> set[int]:
    found = {first}
    queue = [first]
    while queue:
        fresh = {place for t in onward[queue.pop()] for place in filled[t]} - found
        found |= fresh
        queue += fresh
    return found


def _siphons_marked(net: _Closed, first: int) -> bool:
    """The largest siphon without the first place is empty: any place without a token can be filled."""
    missing = [len(places - {first}) for places in net.before]
    filled = {first}
    queue = deque(t for t, count in enumerate(missing) if not count)
    while queue:
        for place in net.after[queue.popleft()] - filled:
            filled.add(place)
            for t in net.takers[place]:
                missing[t] -= 1
                if not missing[t]:
                    queue.append(t)
    return len(filled) == len(net.makers)


def _covered(net: _Closed) -> bool:
    """Every place lies in an S-component: a set of places between which transitions move one token."""
    covered: set[int] = set()
    for place in range(len(net.makers)):
        if place not in covered:
            siphon = _minimal_siphon(net, place)
            takes = Counter(t for member in siphon for t in net.takers[member])
            makes = Counter(t for member in siphon for t in net.makers[member])
            if takes != makes or max(takes.values()) > 1:
                return False
            covered |= siphon
    return True


def _minimal_siphon(net: _Closed, place: int) -> set[int]:
    """What fills `place`, what fills that, and so on; of the places that a transition empties the one nearest behind
    `place` is taken. So each place that is found can be traced back to `place` again, and no smaller siphon is left."""
    nearest: dict[int, int] = {}
    seen = {place}
    queue = deque(seen)
    while queue:
        member = queue.popleft()
        for t in net.takers[member]:
            if t not in nearest:
                nearest[t] = member
                queue += net.after[t] - seen
                seen |= net.after[t]
    siphon = {place}
    todo = [place]
    while todo:
        fresh = {nearest[t] for t in net.makers[todo.pop()]} - siphon
        siphon |= fresh
        todo += fresh
    return siphon


def _rank_is(net: _Closed, expected: int) -> bool:
    """Whether the incidence matrix has this rank: elimination in whole numbers, so that nothing is rounded."""
    pivots: dict[int, Mapping[int, int]] = {}
    for emptied, filled in zip(net.before, net.after, strict=True):
        row = dict.fromkeys(emptied - filled, -1) | dict.fromkeys(filled - emptied, 1)
        while row and (known := pivots.get(max(row))) is not None:
            row = _eliminated(row, known, max(row))
        if row:
            pivots[max(row)] = row
            if len(pivots) > expected:
                return False
    return len(pivots) == expected


def _eliminated(row: Mapping[int, int], pivot: Mapping[int, int], column: int) -> dict[int, int]:
    """The combination of two rows that has nothing in a column, divided by what all its numbers share."""
    ours, theirs = pivot[column], row[column]
    places: Iterable[int] = row.keys() | pivot.keys()
    made = {place: row.get(place, 0) * ours - pivot.get(place, 0) * theirs for place in places}
    kept = {place: value for place, value in made.items() if value}
    divisor = gcd(*kept.values())
    return {place: value // divisor for place, value in kept.items()} if divisor > 1 else kept
