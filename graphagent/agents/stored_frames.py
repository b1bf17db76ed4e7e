"""The rows of one stored frame, to be gone through back and forth; and which graph runs in a namespace, agents that are
tools included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from graphagent.checkpoint.record import Header
from graphagent.engine.executor import Executor
from graphagent.engine.frame import Frame, Setup
from graphagent.engine.nested import graphs_by_frame
from graphagent.engine.restore import load_frame, load_row
from graphagent.errors import CheckpointNotFound, UsageError, alternatives
from graphagent.graph.compiled import CompiledGraph

FAR = 64
"""Rows after the one in which an activation is due that are looked at for the one of its end."""


class Space(NamedTuple):
    """A frame of a lineage. `of_a_runner`: the root frame is that of an agent, which has the agent's name."""

    lineage: str
    namespace: str
    of_a_runner: bool


class Frames:
    """The rows of one frame of a lineage, to be gone through. `headers`: by number, newest first; `of_a_runner`: it is
    one of an agent's run, of which not all is in the rows."""

    def __init__(self, executor: Executor, setup: Setup, space: Space, headers: list[Header]) -> None:
        self.setup = setup
        self.headers = {header.seq: header for header in headers}
        self.lineage, self.namespace, self.of_a_runner = space
        self._executor = executor
        self._children: dict[int, list[Header]] = {}
        for header in reversed(headers):
            if header.parent is not None:
                self._children.setdefault(header.parent, []).append(header)

    @property
    def graph(self) -> CompiledGraph:
        """The graph of the frame."""
        return self.setup.graph

    def named(self, node: str) -> str:
        """The id of the node that is meant. Raises UsageError."""
        name = node if node in self.graph.index else node.rpartition("#")[0].rpartition("/")[2]
        if name not in self.graph.index:
            raise UsageError(
                f"'{node}' is not a node of graph '{self.graph.name}': {alternatives(node, self.graph.names)}"
            )
        return name

    async def at(self, checkpoint: str | int | None) -> tuple[Header, Frame]:
        """A row, None: the newest. Raises CheckpointNotFound."""
        seq = self._executor._seq_of(self.lineage, self.namespace, checkpoint)
        frame = await self.load(seq)
        if frame is None or frame.seq not in self.headers:
            known = alternatives(str(checkpoint), [header.id for header in list(self.headers.values())[:5]])
            raise CheckpointNotFound(f"no checkpoint '{checkpoint}' in lineage '{self.lineage}': {known}")
        return self.headers[frame.seq], frame

    async def load(self, seq: int | None) -> Frame | None:
        """The frame as it stood at a row."""
        loaded = await load_row(self._executor.store, self.setup, self.lineage, self.namespace, seq)
        if loaded is None:
            return None
        return await load_frame(self.setup, self._executor._still(self.lineage), self.namespace, loaded)

    def back_from(self, header: Header) -> Iterator[Header]:
        """A row and those before it, along parents."""
        one: Header | None = header
        while one is not None:
            yield one
            one = None if one.parent is None else self.headers.get(one.parent)

    def after(self, header: Header) -> Iterator[Header]:
        """The rows that go on from one, in the order they were written, at most `FAR`; a fork or another turn is none
        of them."""
        todo = list(self._children.get(header.seq, ()))
        for _ in range(FAR):
            if not todo:
                return
            one = todo.pop(0)
            if one.source in ("fork", "edit", "input"):
                continue
            yield one
            todo += self._children.get(one.seq, ())

    def ends_after(self, header: Header, node: str) -> Iterator[Header]:
        """Those of them in which the node ended."""
        return (one for one in self.after(header) if node in one.nodes)


async def frames_of(executor: Executor, lineage: str, namespace: str) -> Frames:
    """The rows of a frame. Raises CheckpointNotFound for one that isn't there, or whose graph isn't known."""
    store = executor.store
    headers, spaces = await store.history(lineage, namespace), await store.namespaces(lineage)
    if not headers:
        known = f"; it has the frames {', '.join(map(repr, spaces[:8]))}" if spaces else ""
        raise CheckpointNotFound(f"lineage '{lineage}' has no rows in namespace '{namespace}'{known}")
    graph = graph_of_space(executor.graph, spaces, namespace)
    if graph is None:
        raise CheckpointNotFound(
            f"no node of graph '{executor.graph.name}' runs a graph at '{namespace}': it was written by another version"
        )
    return Frames(executor, executor._setup_of(graph), Space(lineage, namespace, "" not in spaces), headers)


def graph_of_space(graph: CompiledGraph, spaces: Sequence[str], space: str) -> CompiledGraph | None:
    """The graph that runs in a namespace: the root's, that of a node, or of an agent that a tools node calls."""
    found = graphs_by_frame(graph, spaces).get(space)
    if found is not None:
        return found
    above = [one for one in spaces if one != space and (not one or space.startswith(f"{one}/"))]
    if not above:
        return None
    parent = max(above, key=len)
    inside = graph_of_space(graph, spaces, parent)
    own = space[len(parent) + 1 :] if parent else space
    if inside is None:
        return None
    return graphs_by_frame(inside, ("", own))[own] or _called(inside, own.rpartition("@")[0])


def _called(graph: CompiledGraph, path: str) -> CompiledGraph | None:
    """The graph of the agent that a call runs; the path is that of the tools node, then the call (see `AgentTool`)."""
    node, _, call = path.rpartition("/")
    tool = unquote(call).partition("/")[0].rpartition("-")[0]
    for one in graph.defs:
        if one.kind != "tools" or not (node == one.id or node.endswith(f"/{one.id}")):
            continue
        for candidate in one.config.get("tools") or ():
            inner = getattr(getattr(candidate, "agent", None), "graph", None)
            if isinstance(inner, CompiledGraph) and candidate.spec.name == tool:
                return inner
    return None
