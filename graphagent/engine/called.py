"""Agents that are tools, in flight in a stored run.

Their graphs are no part of the graph whose node calls them, so neither its fingerprint nor its document knows them.
Each of their frames is judged like a run of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from urllib.parse import unquote

from graphagent.checkpoint.record import Loaded
from graphagent.checkpoint.store import CheckpointStore
from graphagent.engine.due import Place, child_of, node_called, places
from graphagent.engine.frame import Setup
from graphagent.engine.restore import load_row
from graphagent.graph.compiled import CompiledGraph
from graphagent.graph.definition import NodeDef

SetupOf = Callable[[CompiledGraph], Setup]


async def called_frames(
    setup: Setup, setup_of: SetupOf, store: CheckpointStore, loaded: Loaded
) -> AsyncIterator[tuple[Setup, Loaded]]:
    """The frames that tools of a run have in flight, also those of child graphs of its nodes, with the setups in which
    they would go on. Those below such a frame are that frame's. Raises IncompatibleCheckpoint for one whose state can't
    be read."""
    if loaded.row.source == "end" or not _calls_any(setup.graph):
        return
    spaces = await store.namespaces(loaded.lineage)
    async for found in _below(setup, setup_of, store, loaded, spaces):
        yield found


async def _below(
    setup: Setup, setup_of: SetupOf, store: CheckpointStore, loaded: Loaded, spaces: list[str]
) -> AsyncIterator[tuple[Setup, Loaded]]:
    for place in places(loaded):
        child = child_of(setup.graph, place.node)
        if child is not None and place.space in spaces:
            inside = await load_row(store, setup_of(child), loaded.lineage, place.space)
            if inside is not None and inside.row.source != "end":
                async for found in _below(setup_of(child), setup_of, store, inside, spaces):
                    yield found
        tools = dict(_tools_of(node_called(setup.graph, place.node)))
        for space in spaces if tools else ():
            graph = tools.get(_tool_in(space, place))
            inside = None if graph is None else await load_row(store, setup_of(graph), loaded.lineage, space)
            if graph is not None and inside is not None and inside.row.source != "end":
                yield setup_of(graph), inside


def _tool_in(space: str, place: Place) -> str:
    """The tool whose call has a namespace, if that belongs to the activation at a place, else empty. The call's part is
    the quoted branch of its agent, which begins with the tool's name and a key (see `AgentTool`)."""
    head = f"{place.path}/"
    if not (space.startswith(head) and space.endswith(place.origin)):
        return ""
    call = space[len(head) : -len(place.origin)]
    return "" if "@" in call or "/" in call else unquote(call).partition("/")[0].rpartition("-")[0]


def _tools_of(node: NodeDef | None) -> Iterator[tuple[str, CompiledGraph]]:
    """By name the graphs of the tools of a node that are agents."""
    for tool in () if node is None else node.config.get("tools") or ():
        graph = getattr(getattr(tool, "agent", None), "graph", None)
        if isinstance(graph, CompiledGraph):
            yield tool.spec.name, graph


def _calls_any(graph: CompiledGraph) -> bool:
    """Whether a node of it, or of a child graph, has a tool that is an agent."""
    return any(
        next(_tools_of(node), None) is not None or (isinstance(node.child, CompiledGraph) and _calls_any(node.child))
        for node in graph.defs
    )
