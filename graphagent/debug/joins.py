"""How far the joins of a stored marking are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphagent.debug.moment import Moment
from graphagent.debug.rows import Rows
from graphagent.engine.executor import Executor
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.joins import JoinTable
from graphagent.graph.marking import JoinState, Marking
from graphagent.graph.transitions import starving


@dataclass(frozen=True, slots=True)
class JoinProgress:
    """A join that something has arrived at, or is missing at.

    `mode`: `all`, `active`, `any`, or how many sources it takes. `have`: arrivals that wait, per source; `missing`: the
    sources without any. `fired`: an `any` or n-of join has fired in this lap, and takes in the rest. `starved`: nothing
    is left to run, so what it waits for can't come.
    """

    id: str
    target: str
    mode: str
    have: Mapping[str, int]
    missing: tuple[str, ...]
    fired: bool
    starved: bool


async def joins_of(executor: Executor, moment: Moment) -> list[JoinProgress]:
    """Every join of the frame's graph as it is at a moment, in order of declaration. Raises CheckpointNotFound."""
    rows = await Rows.of(executor, moment)
    frame = await rows.frame(moment.seq)
    return join_progress(frame.graph, frame.marking)


def join_progress(graph: CompiledGraph, marking: Marking) -> list[JoinProgress]:
    """Every join of a graph in a marking."""
    waiting = set() if marking.frontier else {one.join for one in starving(graph, marking)}
    states = marking.joins or graph.no_joins
    return [
        _progress(graph, table, state, table.id in waiting)
        for table, state in zip(graph.join_tables, states, strict=True)
    ]


def _progress(graph: CompiledGraph, table: JoinTable, state: JoinState | None, starved: bool) -> JoinProgress:
    arrived = {} if state is None else {slot: len(queue) for slot, queue in state.arrived}
    names = [graph.names[source] for source in table.sources]
    return JoinProgress(
        table.id,
        graph.name_of(table.target),
        str(table.need) if table.mode == "n" else table.mode,
        {name: arrived[slot] for slot, name in enumerate(names) if slot in arrived},
        tuple(name for slot, name in enumerate(names) if slot not in arrived),
        state is not None and state.fired,
        starved,
    )
