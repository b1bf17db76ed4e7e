"""Blocks of a net, each made one place, until nothing is left to reduce: a single place is a proof.

The rules are those of Murata (Petri nets: properties, analysis and applications, 1989) and Berthelot (1987); each keeps
a net live and bounded, and one that is not so, not so. In the words of the graph: R1 a series becomes its first or
last node; R2 alternatives that lead to the same places become one; R3 branches of a fork that end in the same join
become one; R4 an alternative that leads back to where it was chosen goes, if there are others. (R5, a route with one
target or a join with one source, is an edge in the net already.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from graphagent.validation.net import Net


def reduce(net: Net) -> tuple[Net, tuple[str, ...]]:
    """What can't be reduced any further, and the reductions that led there, one text each.

    Sound exactly if the given net is; one place without transitions is sound. Near linear in the size of the net.
    """
    work = _Reduction(net)
    work.run()
    return work.result(), tuple(work.log)


class _Queue:
    """Places to look at, each in line once at a time."""

    def __init__(self) -> None:
        self.line: deque[int] = deque()
        self.waiting: set[int] = set()

    def add(self, places: Iterable[int]) -> None:
        for place in places:
            if place not in self.waiting:
                self.waiting.add(place)
                self.line.append(place)

    def take(self) -> int:
        place = self.line.popleft()
        self.waiting.discard(place)
        return place


class _Reduction:
    """The net while it shrinks. `makers` and `takers`: per place the transitions that fill and empty it."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.before = {t: set(places) for t, places in enumerate(net.before)}
        self.after = {t: set(places) for t, places in enumerate(net.after)}
        self.makers: dict[int, set[int]] = {place: set() for place in range(len(net.places))}
        self.takers: dict[int, set[int]] = {place: set() for place in range(len(net.places))}
        for t in self.before:
            self._link(t)
        self.first, self.last = net.first, net.last
        self.log: list[str] = []
        self.todo = _Queue()
        self.parallel = _Queue()  # places of joins whose branches may have become alike
        self.todo.add(self.takers)

    def run(self) -> None:
        """Apply the rules until none applies."""
        while True:
            if self.todo.line:
                place = self.todo.take()
                if place in self.takers:
                    self._look(place)
            elif self.parallel.line:
                place = self.parallel.take()
                if self.takers.get(place):
                    self._branches(place)
            else:
                return

    def result(self) -> Net:
        """The net that is left, numbered anew."""
        number = {place: i for i, place in enumerate(self.takers)}
        return Net(
            tuple(self.net.places[place] for place in self.takers),
            tuple(frozenset(number[place] for place in places) for places in self.before.values()),
            tuple(frozenset(number[place] for place in places) for places in self.after.values()),
            number[self.first],
            number[self.last],
        )

    def _look(self, place: int) -> None:
        if len(self.takers[place]) > 1:
            self._alternatives(place)
        if self._forward(place) or self._backward(place):
            return
        if any(len(self.before[t]) > 1 for t in self.takers[place]):
            self.parallel.add((place,))

    def _alternatives(self, place: int) -> None:
        """R2 and R4. Transitions that empty one place empty the same places, since the net is free-choice."""
        known: set[frozenset[int]] = set()
        for t in sorted(self.takers[place]):
            after = frozenset(self.after[t])
            if after == self.before[t] and len(self.takers[place]) > 1:
                self._note("R4", place)
                self._drop(t)
            elif after in known:
                self._note("R2", place, *after)
                self._drop(t)
            known.add(after)

    def _forward(self, place: int) -> bool:
        """R1: all that a place is good for is to fill another, so they are one."""
        if len(self.takers[place]) != 1:
            return False
        (t,) = self.takers[place]
        if len(self.before[t]) > 1 or len(self.after[t]) != 1:
            return False
        (target,) = self.after[t]
        if target == place or not self.makers[place].isdisjoint(self.makers[target]):
            return False
        self._note("R1", place, target)
        self._drop(t)
        if len(self.makers[place]) <= len(self.makers[target]) + len(self.takers[target]):
            self._become(place, target)
        else:
            self._become(target, place)
        return True

    def _backward(self, place: int) -> bool:
        """R1: the one transition that fills a place goes on at once, if it or the place has a single way on."""
        if place in (self.first, self.last) or len(self.makers[place]) != 1 or not self.takers[place]:
            return False
        (maker,) = self.makers[place]
        ways = self.takers[place]
        if place in self.before[maker]:
            return False
        if any(len(self.before[t]) > 1 or place in self.after[t] or not self.after[t] for t in ways):
            return False
        if len(self.after[maker]) == 1:
            self._take_over(place, maker)
        elif len(ways) == 1 and self.after[maker].isdisjoint(self.after[next(iter(ways))]):
            self._extend(place, maker)
        else:
            return False
        return True

    def _take_over(self, place: int, maker: int) -> None:
        """The ways on from a place become alternatives where it was filled from."""
        self._note("R1", *self.before[maker], place)
        needs = set(self.before[maker])
        self._drop(maker)
        for t in self.takers[place]:
            self.before[t] = set(needs)
        for need in needs:
            self.takers[need] |= self.takers[place]
        self._remove(place)
        self.todo.add(needs)

    def _extend(self, place: int, maker: int) -> None:
        """A branch of a fork that goes one way at once: the fork goes there itself."""
        self._note("R1", *self.before[maker], place)
        (t,) = self.takers[place]
        fresh = self.after[t]
        self._drop(t)
        self.after[maker].discard(place)
        self.after[maker] |= fresh
        for made in fresh:
            self.makers[made].add(maker)
        self._remove(place)
        self.todo.add((*self.before[maker], *fresh))

    def _branches(self, place: int) -> None:
        """R3: arrivals at a join that always come together are one."""
        known: dict[frozenset[int], int] = {}
        for other in sorted(self.before[next(iter(self.takers[place]))]):
            twin = known.setdefault(frozenset(self.makers[other]), other)
            if twin != other and self.first not in (other, twin):
                self._note("R3", twin, other)
                self._leave_out(other)
                self.todo.add((twin,))

    def _leave_out(self, place: int) -> None:
        for t in self.takers[place]:
            self.before[t].discard(place)
        for t in self.makers[place]:
            self.after[t].discard(place)
            self.todo.add(self.before[t])
            if len(self.after[t]) == 1:
                self.todo.add(self.after[t])
        self._remove(place)

    def _become(self, place: int, other: int) -> None:
        """Let `other` stand for both."""
        for t in self.makers[place]:
            self.after[t].discard(place)
            self.after[t].add(other)
            self.todo.add(self.before[t])
        for t in self.takers[place]:
            self.before[t].discard(place)
            self.before[t].add(other)
        self.makers[other] |= self.makers[place]
        self.takers[other] |= self.takers[place]
        self.first = other if self.first == place else self.first
        self.last = other if self.last == place else self.last
        self._remove(place)
        self.todo.add((other,))

    def _remove(self, place: int) -> None:
        del self.makers[place], self.takers[place]

    def _link(self, t: int) -> None:
        for place in self.before[t]:
            self.takers[place].add(t)
        for place in self.after[t]:
            self.makers[place].add(t)

    def _drop(self, t: int) -> None:
        for place in self.before[t]:
            self.takers[place].discard(t)
        for place in self.after[t]:
            self.makers[place].discard(t)
        self.todo.add((*self.before.pop(t), *self.after.pop(t)))

    def _note(self, rule: str, *places: int) -> None:
        self.log.append(f"{rule} {', '.join(self.net.places[place] for place in places)}")
