"""What can become of a run from where it stands: the ways in which it would never end well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import Marking
from graphagent.graph.transitions import start, starving
from graphagent.validation.explore import Exploration, explore
from graphagent.validation.facts import Bounds
from graphagent.validation.version import Version


class Fault(NamedTuple):
    """A bad end: `GA301` a join that waits for ever (its id, and the sources it misses, in order of name), `GA303` a
    loop that nothing leaves, `GA308` an end without END."""

    code: str
    join: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prospects:
    """All that can happen from one marking. `faults`: by fault, the first state that shows it; `good`: some way ends
    well; `complete`: no bound was hit."""

    found: Exploration
    faults: Mapping[Fault, int]
    good: bool
    complete: bool

    def unset_readers(self, readers: Iterable[int], writers: Iterable[int]) -> set[int]:
        """Those of `readers` (node indices) that may run before any of `writers` has."""
        reading, writing = frozenset(readers), frozenset(writers)
        seen, todo = {0}, [0]
        hit: set[int] = set()
        while todo:
            state = todo.pop()
            hit |= reading & {activation.node for activation in self.found.markings[state].frontier}
            for move in self.found.moves[state] or ():
                if move.target not in seen and not any(pick.node in writing for pick in move.picks):
                    seen.add(move.target)
                    todo.append(move.target)
        return hit


class Outlook:
    """The prospects of markings of one version, each worked out once."""

    def __init__(self, version: Version, bounds: Bounds) -> None:
        self.version = version
        self.bounds = bounds
        self._known: dict[Any, Prospects] = {}

    def of(self, marking: Marking) -> Prospects:
        """What can become of a run that stands there."""
        key = marking.key()
        if key not in self._known:
            found = explore(self.version.graph, self.version.choices, self.bounds, begin=marking)
            faults = dict(_faults(self.version.graph, found))
            ends = [state for state in found.terminals if not any(_bad_end(self.version.graph, found.markings[state]))]
            open_end = not found.complete or bool(found.growing)
            self._known[key] = Prospects(found, faults, bool(ends) or open_end, found.complete)
        return self._known[key]

    def from_start(self) -> Prospects:
        """What can become of a new run."""
        return self.of(start(self.version.graph))


def _faults(graph: CompiledGraph, found: Exploration) -> Iterator[tuple[Fault, int]]:
    seen: set[Fault] = set()
    for state in found.terminals:
        for fault in _bad_end(graph, found.markings[state]):
            if fault not in seen:
                seen.add(fault)
                yield fault, state
    lost = _endless(found)
    if lost is not None:
        yield Fault("GA303"), lost


def _bad_end(graph: CompiledGraph, marking: Marking) -> Iterator[Fault]:
    waiting = starving(graph, marking)
    for one in waiting:
        yield Fault("GA301", one.join, tuple(sorted(one.missing)))
    if not waiting and graph.names_end and not marking.ended:
        yield Fault("GA308")


def _endless(found: Exploration) -> int | None:
    """The first state from which no end can be reached; one that was not followed may have any."""
    before: dict[int, list[int]] = {}
    ending: list[int] = []
    for state, moves in enumerate(found.moves):
        if moves is None or not moves:
            ending.append(state)
        for move in moves or ():
            before.setdefault(move.target, []).append(state)
    reached = set(ending)
    while ending:
        for state in before.get(ending.pop(), ()):
            if state not in reached:
                reached.add(state)
                ending.append(state)
    return next((state for state in range(len(found.markings)) if state not in reached), None)
