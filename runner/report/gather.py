"""Reads from a store what a report says of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphagent.agents.secrets_in import MASK
from graphagent.checkpoint.finding import RunInfo, RunQuery, SearchableRuns
from graphagent.checkpoint.record import Header
from graphagent.checkpoint.store import CheckpointStore
from graphagent.debug.moment import Moment
from graphagent.debug.states import edges_taken, node_states
from graphagent.debug.writes import NodeWrite, writes_of
from graphagent.engine.executor import Executor
from graphagent.engine.nested import graphs_by_frame
from graphagent.engine.timetravel import Change, changes_between
from graphagent.errors import CheckpointNotFound, GraphAgentError, UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.draw import lines
from graphagent.graph.view import values_of
from runner.picture.marks import Mark
from runner.picture.svg import picture
from runner.report.values import FIRST, LAST, NOTHING, Entry, RunReport, advice_for
from runner.studio.look import moment_at


async def gather(
    store: CheckpointStore,
    lineage: str,
    namespace: str = "",
    *,
    executor: Executor | None = None,
    target: str | None = None,
) -> RunReport:
    """The report on a run. `executor`: of its graph on the store, for the picture, typed values and what each node
    wrote; `target`: how the graph is named on a command line. Raises CheckpointNotFound for an unknown run."""
    return await _Gathering(store, lineage, namespace, executor).report(target)


class _Gathering:
    def __init__(self, store: CheckpointStore, lineage: str, namespace: str, executor: Executor | None) -> None:
        self._store, self._lineage, self._root, self._executor = store, lineage, namespace, executor
        self._graphs: Mapping[str, CompiledGraph | None] = {}
        self._values: dict[str, tuple[int, dict[str, Any]]] = {}  # frame -> the row that was met last, and its state

    async def report(self, target: str | None) -> RunReport:
        info = await _info(self._store, self._lineage, self._root)
        headers = await self._headers()
        if self._executor is not None:
            self._graphs = graphs_by_frame(self._executor.graph, {header.namespace for header in headers})
        over = max(len(headers) - FIRST - LAST, 0)
        shown = [*headers[:FIRST], *headers[FIRST + over :]]
        entries = [await self._entry(header, headers) for header in shown]
        newest = max((h for h in headers if h.namespace == self._root), key=lambda header: header.seq)
        state = await self._state(newest)
        route = tuple(h.nodes for h in headers if h.namespace == self._root and h.source == "step")
        drawn = await self._picture(newest, headers)
        return RunReport(info, advice_for(info, target), tuple(entries), over, route, state, drawn)

    async def _headers(self) -> list[Header]:
        """The rows of the run and of its child graphs, in the order in which they were written."""
        spaces = await self._store.namespaces(self._lineage)
        mine = [space for space in spaces if self._is_mine(space)]
        found = [header for space in mine for header in await self._store.history(self._lineage, space)]
        return sorted(found, key=lambda header: (header.created_at, -len(header.namespace), header.seq))

    def _is_mine(self, space: str) -> bool:
        within = space.startswith(f"{self._root}/") if self._root else "@" in space.partition("/")[0] or "@" in space
        return space == self._root or (within and "@" in space)

    async def _entry(self, header: Header, headers: Sequence[Header]) -> Entry:
        graphs = self._graphs
        moment = await moment_at(self._store, graphs, self._lineage, header.namespace, header.seq)
        before = self._values.get(header.namespace)
        state = await self._state(header)
        self._values[header.namespace] = (header.seq, state)
        changes: Mapping[str, Change] = {}
        if header.source in ("step", "edit", "input", "fork"):
            old = before[1] if before is not None else {}
            changes = changes_between(list({**old, **state}), old, state)
            if header.source == "input" and before is None:  # what isn't set has its default, which tells nothing
                changes = {name: change for name, change in changes.items() if change.after not in NOTHING}
        previous = next((h for h in headers if h.namespace == header.namespace and h.seq == header.parent), None)
        took = None if previous is None else header.created_at - previous.created_at
        return Entry(moment, _depth(header.namespace, self._root), took, changes, await self._writes(moment))

    async def _writes(self, moment: Moment) -> tuple[NodeWrite, ...]:
        if self._executor is None or moment.source != "step" or self._graphs.get(moment.namespace) is None:
            return ()
        try:
            return tuple(await writes_of(self._executor, moment))
        except GraphAgentError:  # the graph has changed since: the rows tell the rest
            return ()

    async def _state(self, header: Header) -> dict[str, Any]:
        """The state at a row: typed for the root of a known graph, else plain data."""
        executor = self._executor
        if executor is not None and header.namespace == self._root:
            try:
                view = await executor.state(self._lineage, header.seq, namespace=header.namespace)
            except GraphAgentError:
                pass
            else:
                secret = executor.graph.schema.secret
                values = values_of(view)
                order = [name for name in executor.graph.schema.names if name in values]
                return {name: MASK if name in secret else values[name] for name in order}
        loaded = await self._store.load(self._lineage, header.namespace, header.seq)
        return {} if loaded is None else dict(loaded.values)

    async def _picture(self, newest: Header, headers: Sequence[Header]) -> str:
        if self._executor is None:
            return ""
        mine = [header for header in headers if header.namespace == newest.namespace]
        graphs = self._graphs
        moment = await moment_at(self._store, graphs, self._lineage, newest.namespace, newest.seq)
        states = await node_states(self._executor, moment, mine)
        marks = {name: Mark(one.state, one.visits) for name, one in states.items()}
        drawn = {(line.source, line.target) for line in lines(self._executor.graph)}
        taken = await edges_taken(self._executor, moment)
        return picture(
            self._executor.graph, marks, edge_marks={pair: count for pair, count in taken.items() if pair in drawn}
        )


async def _info(store: CheckpointStore, lineage: str, namespace: str) -> RunInfo:
    if not isinstance(store, SearchableRuns):
        raise UsageError(f"a store of class '{type(store).__name__}' can't say how a run stands (see SearchableRuns)")
    found = await store.find_runs(RunQuery(prefix=lineage))
    for info in found:
        if (info.lineage, info.namespace) == (lineage, namespace):
            return info
    spaces = [info.namespace for info in found if info.lineage == lineage]
    if spaces:
        raise CheckpointNotFound(f"lineage '{lineage}' has no run '{namespace}': {alternatives(namespace, spaces)}")
    known = await store.lineages()
    raise CheckpointNotFound(f"no lineage '{lineage}' in this store: {alternatives(lineage, known)}")


def _depth(namespace: str, root: str) -> int:
    return namespace.count("@") - root.count("@")
