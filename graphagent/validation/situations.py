"""Every place where a run of a graph can be stored, with a shortest way there and what such a run has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from graphagent.graph.marking import Marking
from graphagent.unset import UNSET
from graphagent.validation.explore import Exploration, explore, explore_supersteps
from graphagent.validation.facts import Bounds, EngineName
from graphagent.validation.report import TraceStep
from graphagent.validation.standing import Pending, Standing, standing_of
from graphagent.validation.version import Version

Places = Literal["all", "interrupts"]


@dataclass(frozen=True)
class Situation:
    """One place: as a marking, by name, and how a run gets there."""

    standing: Standing
    marking: Marking
    trace: tuple[TraceStep, ...]


class Situations:
    """The situations of one version. `complete`: no bound was hit while they were looked for."""

    def __init__(self, version: Version, bounds: Bounds, at: Places = "all", engine: EngineName = "both") -> None:
        self.version = version
        self.at = at
        graph, choices = version.graph, version.choices
        self.explored: list[Exploration] = []
        if engine in ("superstep", "both"):
            self.explored.append(explore_supersteps(graph, choices, bounds))
        if engine in ("eager", "both"):
            self.explored.append(explore(graph, choices, bounds))

    @property
    def complete(self) -> bool:
        """False if there may be more."""
        return all(found.complete for found in self.explored)

    def __iter__(self) -> Iterator[Situation]:
        seen: set[Any] = set()
        for found in self.explored:
            written = _written(self.version, found)
            for state, marking in enumerate(found.markings):
                key = (marking.key(), written[state])
                if not marking.frontier or key in seen:
                    continue
                seen.add(key)
                standing = self._standing(marking, written[state])
                if self.at == "all" or self._waits(standing):
                    hops = found.path(state)
                    yield Situation(standing, marking, found.trace(hops, "a run is stored here"))

    def _standing(self, marking: Marking, written: frozenset[str]) -> Standing:
        bare = standing_of(self.version.graph, marking)
        pending = tuple(
            Pending(node, asked.key, asked.schema) for node in bare.nodes for asked in self.version.asks(node) or ()
        )
        frames = tuple((node, frame) for node in bare.nodes for frame in self._inside(node))
        return replace(bare, pending=pending, fields=_held(self.version, written), frames=frames)

    def _inside(self, node: str) -> Iterator[Standing]:
        """Where a run can stand in the child graph of a node."""
        child = self.version.child(node)
        if child is not None:
            yield from (one.standing for one in Situations(child, Bounds(10_000, 2.0), self.at))

    def _waits(self, standing: Standing) -> bool:
        """True if a run can be waiting here for an answer, or at a breakpoint."""
        graph = self.version.graph
        indices = [graph.index[name] for name in standing.nodes]
        if any(index in graph.before for index in indices) or standing.pending:
            return True
        return any(
            self.version.asks(name) is None and self.version.kind(name) == "plain" for name in standing.nodes
        ) or any(True for node, _ in standing.frames)


def _held(version: Version, written: frozenset[str]) -> dict[str, Any]:
    """What is stored: fields that may have been written with an unknown value, the others with their default."""
    held = {}
    for name, field in version.fields.items():
        if not field.persistent or (field.required and name not in written):
            continue
        held[name] = UNSET if name in written else field.default
    return held


def _written(version: Version, found: Exploration) -> list[frozenset[str]]:
    """Per state the fields that may have been written on some way there, by an input or a node."""
    graph = version.graph
    inputs = graph.definition.inputs
    given = frozenset(version.fields if inputs is None else inputs)
    every = frozenset(version.fields)
    writes = [access.writes for access in version.accesses]
    by_node = [every if one.origin == "unknown" else one.fields for one in writes]
    written = [frozenset[str]() for _ in found.markings]
    written[0] = given
    todo = [0]
    while todo:
        state = todo.pop()
        for move in found.moves[state] or ():
            after = written[state].union(*(by_node[pick.node] for pick in move.picks))
            if not after <= written[move.target]:
                written[move.target] |= after
                todo.append(move.target)
    return written
