"""The moment of a stored row, for those who only look: with the graph if it is known, else what plain data tells."""

from __future__ import annotations

from collections.abc import Mapping

from graphagent.checkpoint.store import CheckpointStore
from graphagent.debug.moment import Moment, moment_of, moment_told
from graphagent.errors import CheckpointNotFound, IncompatibleCheckpoint
from graphagent.graph.compiled import CompiledGraph


async def moment_at(
    store: CheckpointStore,
    graphs: Mapping[str, CompiledGraph | None],
    lineage: str,
    namespace: str,
    seq: int | None = None,
) -> Moment:
    """The moment of the newest or a given row of a frame; what comes next is empty if the graph isn't known. Raises
    CheckpointNotFound."""
    loaded = await store.load(lineage, namespace, seq)
    if loaded is None:
        raise CheckpointNotFound(f"lineage '{lineage}' has no checkpoint {seq} in frame '{namespace}'")
    graph = graphs.get(namespace)
    if graph is None:
        return moment_told(lineage, namespace, loaded.row)
    held = {
        (loaded.row.base, position) for position in await store.activations(lineage, namespace, loaded.row.base, None)
    }
    try:
        return moment_of(graph, lineage, namespace, loaded.row, held=held)
    except IncompatibleCheckpoint:  # the graph has changed since
        return moment_told(lineage, namespace, loaded.row)
