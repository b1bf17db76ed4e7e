"""How joins count: pure rules over one join's state. `transitions.fire` applies them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from graphagent.graph.marking import Arrival, JoinState, Starved


class JoinTable(NamedTuple):
    """A compiled join. `need`: distinct sources that make it fire (0: an active join, judged by reachability).

    `bringers` has per source slot the nodes that can still make that source run without passing the target;
    empty for mode `all`, which never asks.
    """

    id: str
    target: int
    sources: tuple[int, ...]
    need: int
    total: int
    mode: str
    bringers: tuple[frozenset[int], ...] = ()


Queues = dict[int, list[Arrival]]
Firing = list[Arrival]


def arrive(
    table: JoinTable, state: JoinState | None, arrivals: Iterable[tuple[int, Arrival]]
) -> tuple[JoinState | None, list[Firing]]:
    """The new state after arrivals (slot, payload) in order, and the firings they cause (each the arrivals used)."""
    queues: Queues = {} if state is None else {slot: list(queue) for slot, queue in state.arrived}
    fired = state is not None and state.fired
    if table.mode == "all":
        for slot, arrival in arrivals:
            queues.setdefault(slot, []).append(arrival)
        firings = _fire_all(table, queues)
        return _state(queues, False), firings
    firings = []
    for slot, arrival in arrivals:
        queues.setdefault(slot, []).append(arrival)
        if table.need:
            fired = _settle(table, queues, fired, firings)
    return _state(queues, fired), firings


def _fire_all(table: JoinTable, queues: Queues) -> list[Firing]:
    firings = []
    while len(queues) == table.total:
        firings.append([queues[slot][0] for slot in range(table.total)])
        _drop_first(queues)
    return firings


def _settle(table: JoinTable, queues: Queues, fired: bool, firings: list[Firing]) -> bool:
    """Fire and end laps of an `any` or `n` join until nothing changes; returns the fired mark."""
    while True:
        if not fired and len(queues) >= table.need:
            firings.append([queue[0] for queue in list(queues.values())[: table.need]])
            fired = True
        over = len(queues) == table.total or any(len(queue) > 1 for queue in queues.values())
        if not (fired and over):
            return fired
        _drop_first(queues)
        fired = False


def _drop_first(queues: Queues) -> None:
    for slot in list(queues):
        del queues[slot][0]
        if not queues[slot]:
            del queues[slot]


def _state(queues: Queues, fired: bool) -> JoinState | None:
    if not queues:
        return None
    return JoinState(tuple((slot, tuple(queues[slot])) for slot in sorted(queues)), fired)


def can_still_come(table: JoinTable, state: JoinState, live: Set[int]) -> bool:
    """True if a live node can still make a missing source run."""
    have = {slot for slot, _ in state.arrived}
    return any(slot not in have and not live.isdisjoint(nodes) for slot, nodes in enumerate(table.bringers))


def close_lap(table: JoinTable, state: JoinState) -> tuple[JoinState | None, list[Firing]]:
    """End a lap because no missing source can come: an active join fires with what it has; a fired `any` or `n` lap is
    forgotten, and leftovers begin the next one."""
    queues: Queues = {slot: list(queue) for slot, queue in state.arrived}
    firings: list[Firing] = []
    if table.mode == "active":
        firings.append([queue[0] for queue in queues.values()])
        _drop_first(queues)
        return _state(queues, False), firings
    _drop_first(queues)
    fired = _settle(table, queues, False, firings)
    return _state(queues, fired), firings


def starved(table: JoinTable, state: JoinState, names: tuple[str, ...], target: str) -> Starved:
    """What a waiting join has and misses, by name."""
    have = {slot for slot, _ in state.arrived}
    return Starved(
        table.id,
        target,
        tuple(names[source] for slot, source in enumerate(table.sources) if slot in have),
        tuple(names[source] for slot, source in enumerate(table.sources) if slot not in have),
    )
