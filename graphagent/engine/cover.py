"""What recorded runs have seen of a graph: each step is gone through again, with its recorded results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphagent.checkpoint.record import Loaded, Row
from graphagent.checkpoint.store import CheckpointStore
from graphagent.engine.frame import Setup, Tree
from graphagent.engine.limits import Meter
from graphagent.engine.nested import graphs_by_frame, graphs_within
from graphagent.engine.replay import is_a_step, step_again, where
from graphagent.engine.restore import load_frame, load_row
from graphagent.errors import GraphAgentError
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.names import END
from graphagent.graph.routes import Route
from graphagent.graph.transitions import starving
from graphagent.ids import checkpoint_id
from graphagent.validation.coverage import OTHERWISE, Coverage, Label, label_text
from graphagent.validation.taken import ending, take


@dataclass(slots=True)
class Recorded:
    """The coverage of a graph and of its child graphs by recorded runs.

    `lineages` and `steps` were gone through. `untold`: steps of which only the nodes could be counted, since this graph
    doesn't go through them as the run did, rows were pruned, or several steps share a row; `why`: the first reasons.
    """

    graph: CompiledGraph
    parts: dict[int, Coverage] = field(default_factory=dict)
    lineages: int = 0
    steps: int = 0
    untold: int = 0
    why: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for graph in graphs_within(self.graph):
            self.parts[id(graph)] = Coverage(graph)

    @property
    def coverages(self) -> list[Coverage]:
        """That of the graph, then those of its child graphs."""
        return list(self.parts.values())

    def not_told(self, reason: str) -> None:
        """Note a step that could not be gone through."""
        self.untold += 1
        if len(self.why) < 3:
            self.why.append(reason)


async def cover_lineage(recorded: Recorded, setups: Mapping[int, Setup], store: CheckpointStore, lineage: str) -> None:
    """Count every row of a lineage, abandoned branches too. `setups`: by the id of each graph."""
    recorded.lineages += 1
    for namespace, graph in graphs_by_frame(recorded.graph, await store.namespaces(lineage)).items():
        if graph is None:
            recorded.not_told(f"{lineage}: no node runs a child graph at '{namespace}'")
        else:
            await _Frame(recorded, setups[id(graph)], store, lineage, namespace).count()


class _Frame:
    """Goes through the rows of one frame."""

    def __init__(self, recorded: Recorded, setup: Setup, store: CheckpointStore, lineage: str, namespace: str) -> None:
        self.recorded = recorded
        self.coverage = recorded.parts[id(setup.graph)]
        self.graph = setup.graph
        self.heard: list[Label] = []
        self.setup = replace(setup, graph=_overheard(setup.graph, self.heard))
        self.store = store
        self.tree = Tree(lineage, "cover", Meter(setup.clock), store=store, durable=True)
        self.namespace = namespace

    async def count(self) -> None:
        """Count all rows, oldest first."""
        loaded: dict[int, Loaded] = {}
        last: Loaded | None = None
        for header in reversed(await self.store.history(self.tree.lineage, self.namespace)):
            try:
                row = await load_row(self.store, self.setup, self.tree.lineage, self.namespace, header.seq)
            except GraphAgentError as error:
                self._nodes_only(header.seq, header.nodes, str(error))
                continue
            if row is None:
                continue
            before = None if header.parent is None else loaded.get(header.parent)
            await self._row(before, row)
            loaded[header.seq] = last = row
        if last is not None:
            await self._end(last)

    async def _row(self, before: Loaded | None, row: Loaded) -> None:
        if row.row.source == "input":
            self.coverage.begin(self.graph)
        elif row.row.source == "end":
            self.coverage.ended["completed"] += 1
        elif row.row.source == "step" and before is not None and is_a_step(before, row):
            await self._step(before, row)
        elif row.row.nodes:
            self._nodes_only(row.row.seq, row.row.nodes, "several steps in one row, or the one before it is gone")

    async def _step(self, before: Loaded, row: Loaded) -> None:
        self.heard.clear()
        try:
            frame, reached, done = await step_again(self.setup, self.tree, self.namespace, before, row)
            taken = take(frame.graph, frame.marking, done)
        except GraphAgentError as error:
            self._nodes_only(row.row.seq, row.row.nodes, str(error))
            return
        if where(frame, taken.after) != where(frame, reached.marking):
            self._nodes_only(row.row.seq, row.row.nodes, "this graph goes another way than the run did")
            return
        names = [frame.graph.names[frame.marking.frontier[one.position].node] for one in done]
        self.coverage.count(frame.graph, names, taken, self.heard)
        self.recorded.steps += 1

    def _nodes_only(self, seq: int, nodes: tuple[str, ...], why: str) -> None:
        self.coverage.nodes.update(name for name in nodes if name in self.coverage.nodes)
        self.recorded.not_told(f"{checkpoint_id(self.tree.lineage, self.namespace, seq)}: {why}")

    async def _end(self, last: Loaded) -> None:
        """How the newest row says that the run stopped."""
        row = last.row
        if row.source == "end":
            return
        try:
            marking = (await load_frame(self.setup, self.tree, self.namespace, last)).marking
        except GraphAgentError:
            return
        self.coverage.ended[ending(self.graph, marking) if not marking.frontier else _stopped(row)] += 1
        if not marking.frontier:
            self.coverage.starved.update(one.join for one in starving(self.graph, marking))


def _stopped(row: Row) -> str:
    if row.source == "interrupt":
        return "interrupted"
    if row.source == "error":
        return "limit reached" if "limit" in (row.note or {}) else "failed"
    return "unfinished"


def _overheard(graph: CompiledGraph, heard: list[Label]) -> CompiledGraph:
    """The graph with routers that note the labels they return: a target doesn't tell its label."""
    return replace(
        graph,
        routers=tuple(
            tuple(_noting(route, place, graph, heard) for place, route in enumerate(routes)) for routes in graph.routers
        ),
    )


def _noting(route: Route, place: int, graph: CompiledGraph, heard: list[Label]) -> Route:
    async def awaited(state: Any) -> Any:
        returned = await route.router(state)
        heard.extend(_returned(route, place, graph, returned))
        return returned

    def called(state: Any) -> Any:
        returned = route.router(state)
        heard.extend(_returned(route, place, graph, returned))
        return returned

    return route._replace(router=awaited if route.is_async else called)


def _returned(route: Route, place: int, graph: CompiledGraph, returned: Any) -> Iterator[Label]:
    """The labels in what a router returned, as `graphagent.graph.routes.resolve` takes it."""
    several = route.many and isinstance(returned, list | tuple | set | frozenset)
    labels = [label for label in (returned if several else [returned]) if label is not None and label != ""]
    default = None if route.default is None else Label(route.source, place, OTHERWISE, graph.name_of(route.default))
    if route.many and not labels:
        labels = [None]
    for label in labels:
        try:
            target = route.labels.get(label)
        except TypeError:
            target = None
        if target is not None:
            yield Label(route.source, place, label_text(label), graph.name_of(target))
        elif label != END and default is not None:
            yield default
