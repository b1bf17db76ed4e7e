"""Where a run stands, as plain immutable values: the frontier, the progress of joins and of Send groups.

`key()` is what decides the future; branch paths, overlays, arrival order within a source and trigger notes are
payload that it leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Segment = tuple[str, int]
"""A step into a branch: its name, and the index of the node that split (-1: the start)."""
Branch = tuple[Segment, ...]
ALL_EDGES = -2


class Activation(NamedTuple):
    """One node that is about to run, or running.

    `node`: index. `branch`: path of the splits it is under. `overlay`: the fields a Send laid over the state, or
    None. `group`: the Send group it belongs to (0: none). `place`: its place in that group. `trigger`: origins of
    the activations that triggered it; None: whatever ran in the step before. `error`: text of the failure it
    handles.
    """

    node: int
    branch: Branch = ()
    overlay: Mapping[str, Any] | None = None
    group: int = 0
    place: int = 0
    trigger: tuple[str, ...] | None = None
    error: str | None = None


class Arrival(NamedTuple):
    """One trigger on its way to a node, through a join or not; all of it is payload."""

    branch: Branch = ()
    origins: tuple[str, ...] = ()
    error: str | None = None


class JoinState(NamedTuple):
    """Progress of one join: per source slot the queued arrivals. `fired`: this lap of an `any` or `n` join has."""

    arrived: tuple[tuple[int, tuple[Arrival, ...]], ...] = ()
    fired: bool = False

    def key(self) -> tuple[Any, ...]:
        """Counts per source and the fired mark."""
        return (tuple((slot, len(queue)) for slot, queue in self.arrived), self.fired)


class Group(NamedTuple):
    """A Send group: members that have not ended, and what fires when the last one has.

    `exits`: (node, target) pairs that are due then; target ALL_EDGES stands for the plain edges and joins of the node,
    any other for an arrival that a member chose. `branch`: that of the activation that sent.
    """

    id: int
    open: int
    exits: tuple[tuple[int, int], ...] = ()
    branch: Branch = ()
    origins: tuple[str, ...] = ()


class Marking(NamedTuple):
    """Where a run stands. `frontier` is in graph order; `joins` has an entry per join, None where nothing waits.

    `ended`: END was reached.
    """

    frontier: tuple[Activation, ...]
    joins: tuple[JoinState | None, ...] = ()
    groups: tuple[Group, ...] = ()
    ended: bool = False

    def key(self) -> tuple[Any, ...]:
        """What decides the future, equal for markings that differ in payload only."""
        number = {group.id: i + 1 for i, group in enumerate(sorted(self.groups, key=_group_key(self)))}
        return (
            tuple(sorted((a.node, number.get(a.group, 0)) for a in self.frontier)),
            tuple(None if join is None else join.key() for join in self.joins),
            tuple(sorted((number[g.id], g.open, tuple(sorted(g.exits))) for g in self.groups)),
            self.ended,
        )


def _group_key(marking: Marking) -> Any:
    def key(group: Group) -> tuple[Any, ...]:
        members = sorted(a.node for a in marking.frontier if a.group == group.id)
        return (group.open, tuple(sorted(group.exits)), tuple(members))

    return key


class Completion(NamedTuple):
    """Which targets a finished activation chose.

    `position`: its place in the frontier. `chosen`: targets of its routes. `goto`: targets that replace all its
    out-edges (None: none do). `sends`: (node, overlay) pairs that replace all its out-edges. END is -1. `origin`:
    the activation's id, for explanations; `error`: text of the failure when it left by an error edge.
    """

    position: int
    chosen: tuple[int, ...] = ()
    goto: tuple[int, ...] | None = None
    sends: tuple[tuple[int, Mapping[str, Any]], ...] | None = None
    origin: str | None = None
    error: str | None = None


class Starved(NamedTuple):
    """A join that waits when nothing is left to run: its id, target, the sources it has and those it misses."""

    join: str
    target: str
    have: tuple[str, ...]
    missing: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"join '{self.join}' into '{self.target}' waits for {', '.join(map(repr, self.missing)) or 'nothing'}, "
            f"has {', '.join(map(repr, self.have))}"
        )


def text_of(branch: Branch) -> str:
    """A branch path as text, `a/worker[2]`; empty for a lone path."""
    return "/".join(name for name, _ in branch)


def common(branches: list[Branch]) -> Branch:
    """The longest common prefix."""
    first = branches[0]
    if len(branches) == 1:
        return first
    size = min(len(branch) for branch in branches)
    for i in range(size):
        if any(branch[i] != first[i] for branch in branches):
            return first[:i]
    return first[:size]
