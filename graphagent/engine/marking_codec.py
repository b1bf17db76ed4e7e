"""A marking as plain data with names instead of indices, so that another version of the graph can read it.

The common case, one lone activation, is just the node's name. Overlays travel apart: their values need the codec of
the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphagent.errors import IncompatibleCheckpoint, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.marking import ALL_EDGES, Activation, Arrival, Branch, Group, JoinState, Marking
from graphagent.graph.names import END, END_INDEX, START

Overlays = dict[int, Mapping[str, Any]]
_EMPTY: list[Any] = [None, [], 0, 0, None, None]  # what an activation without anything special has


def encode_marking(graph: CompiledGraph, marking: Marking) -> Any:
    """Plain data; `overlays_of` has the rest."""
    frontier = marking.frontier
    if len(frontier) == 1 and marking is graph.singles[frontier[0].node]:
        return graph.names[frontier[0].node]
    plain: dict[str, Any] = {"f": [_activation(graph, item) for item in frontier]}
    waiting = {
        table.id: [
            [[graph.names[table.sources[slot]], [_arrival(graph, a) for a in queue]] for slot, queue in state.arrived],
            state.fired,
        ]
        for table, state in zip(graph.join_tables, marking.joins, strict=True)
        if state is not None
    }
    if waiting:
        plain["j"] = waiting
    if marking.groups:
        plain["g"] = [
            [
                g.id,
                g.open,
                [[graph.names[n], _target(graph, t)] for n, t in g.exits],
                _branch(graph, g.branch),
                list(g.origins),
            ]
            for g in marking.groups
        ]
    if marking.ended:
        plain["e"] = 1
    return plain


def overlays_of(marking: Marking) -> Overlays:
    """The overlays of Sends by frontier position."""
    return {i: item.overlay for i, item in enumerate(marking.frontier) if item.overlay is not None}


def decode_marking(graph: CompiledGraph, plain: Any, overlays: Mapping[int, Mapping[str, Any]]) -> Marking:
    """The marking in the indices of `graph`. Raises IncompatibleCheckpoint for nodes, joins or sources it lacks."""
    if isinstance(plain, str):
        return graph.singles[node_named(graph, plain)]
    frontier = tuple(
        Activation(
            node_named(graph, name),
            _read_branch(graph, branch),
            overlays.get(i),
            group,
            index,
            None if trigger is None else tuple(trigger),
            error,
        )
        for i, (name, branch, group, index, trigger, error) in enumerate(map(_padded, plain["f"]))
    )
    joins = list(graph.no_joins)
    for join, (arrived, fired) in plain.get("j", {}).items():
        place = _join_named(graph, join)
        joins[place] = _read_join(graph, place, arrived, fired)
    groups = tuple(
        Group(
            number,
            count,
            tuple((node_named(graph, n), ALL_EDGES if t is None else node_named(graph, t)) for n, t in exits),
            _read_branch(graph, branch),
            tuple(origins),
        )
        for number, count, exits, branch, origins in plain.get("g", ())
    )
    if frontier and len(frontier) == 1 and not groups and not any(joins) and not plain.get("e"):
        single = graph.singles[frontier[0].node]
        if single.frontier == frontier:
            return single
    return Marking(frontier, tuple(joins) if any(joins) else graph.no_joins, groups, bool(plain.get("e")))


def _activation(graph: CompiledGraph, item: Activation) -> list[Any]:
    trigger = None if item.trigger is None else list(item.trigger)
    full = [graph.names[item.node], _branch(graph, item.branch), item.group, item.place, trigger, item.error]
    while len(full) > 1 and full[-1] == _EMPTY[len(full) - 1]:
        full.pop()
    return full


def _padded(item: list[Any]) -> list[Any]:
    return [*item, *_EMPTY[len(item) :]]


def _branch(graph: CompiledGraph, branch: Branch) -> list[list[str]]:
    return [[name, START if splitter < 0 else graph.names[splitter]] for name, splitter in branch]


def _read_branch(graph: CompiledGraph, branch: list[list[str]]) -> Branch:
    # a splitter that is gone can't be come back to: any index that is no node will do
    return tuple((name, -1 if (node := _find(graph, splitter)) is None else node) for name, splitter in branch)


def _arrival(graph: CompiledGraph, arrival: Arrival) -> list[Any]:
    plain: list[Any] = [_branch(graph, arrival.branch), list(arrival.origins)]
    return plain if arrival.error is None else [*plain, arrival.error]


def _target(graph: CompiledGraph, target: int) -> str | None:
    return None if target == ALL_EDGES else graph.name_of(target)


def _read_join(graph: CompiledGraph, place: int, arrived: list[Any], fired: bool) -> JoinState:
    table = graph.join_tables[place]
    slots: dict[int | None, int] = {source: slot for slot, source in enumerate(table.sources)}
    queues = []
    for name, queue in arrived:
        slot = slots.get(_find(graph, name))
        if slot is None:
            raise _gone(f"source of join '{table.id}'", name, [graph.names[source] for source in table.sources])
        arrivals = tuple(
            Arrival(_read_branch(graph, branch), tuple(origins), *error) for branch, origins, *error in queue
        )
        queues.append((slot, arrivals))
    return JoinState(tuple(sorted(queues, key=lambda item: item[0])), fired)


def node_named(graph: CompiledGraph, name: str) -> int:
    """The index of a stored node id, END included; ids that nodes had formerly count. Raises IncompatibleCheckpoint."""
    if name == END:
        return END_INDEX
    found = _find(graph, name)
    if found is None:
        raise _gone("node", name, list(graph.names))
    return found


def _find(graph: CompiledGraph, name: str) -> int | None:
    found = graph.index.get(name)
    if found is None:
        found = next((i for i, node in enumerate(graph.defs) if name in node.formerly), None)
    return found


def _join_named(graph: CompiledGraph, name: str) -> int:
    """The place of a join by its id; one whose id is its target's is found by what the target was called formerly."""
    tables = graph.join_tables
    for place, table in enumerate(tables):
        if table.id == name:
            return place
    target = _find(graph, name)
    for place, table in enumerate(tables):
        if table.target == target and table.id == graph.name_of(table.target):
            return place
    raise _gone("join", name, [table.id for table in tables])


def _gone(what: str, name: str, known: list[str]) -> IncompatibleCheckpoint:
    return IncompatibleCheckpoint(
        f"the stored run stands at {what} '{name}', which this graph doesn't have: {alternatives(name, known)}; "
        f"resume it with the graph that wrote it, or declare formerly=('{name}',) on the node that took its place",
        changes=(f"{what} '{name}' is gone",),
    )
