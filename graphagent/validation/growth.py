"""When a frontier can grow without bound: a state that covers an earlier one on its way (Karp and Miller 1969)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from graphagent.graph.marking import Marking


class Growth:
    """Compares each new state with those on its way. Whatever may follow from the smaller one may follow from the
    larger, and lead to one that is larger still."""

    def __init__(self) -> None:
        self._parents: list[int | None] = []
        self._counts: list[Counter[Any]] = []
        self._sizes: list[int] = []
        self._shapes: list[Any] = []

    def add(self, marking: Marking, kept: Any, parent: int | None) -> int | None:
        """Take the next state; returns the earlier one that it covers, if there is one."""
        counts = _counts(marking)
        size = sum(counts.values())
        shape = (_shape(marking), kept)
        covered = self._covered(counts, size, shape, parent) if size > len(counts) else None
        self._parents.append(parent)
        self._counts.append(counts)
        self._sizes.append(size)
        self._shapes.append(shape)
        return covered

    def _covered(self, counts: Counter[Any], size: int, shape: Any, earlier: int | None) -> int | None:
        while earlier is not None:
            if self._sizes[earlier] < size and self._shapes[earlier] == shape and self._counts[earlier] <= counts:
                return earlier
            earlier = self._parents[earlier]
        return None


def _counts(marking: Marking) -> Counter[Any]:
    """How often each node is due, and how many arrivals wait at each place of a join."""
    counts: Counter[Any] = Counter([a.node for a in marking.frontier if not a.group])
    for j, join in enumerate(marking.joins):
        if join is not None:
            for slot, queue in join.arrived:
                counts[j, slot] = len(queue)
    return counts


def _shape(marking: Marking) -> Any:
    """What growth must leave as it is: groups, laps, and whether END was reached."""
    fired = tuple([join is not None and join.fired for join in marking.joins])
    if not marking.groups:
        return (fired, marking.ended)
    return (fired, marking._replace(frontier=tuple(a for a in marking.frontier if a.group), joins=()).key())
