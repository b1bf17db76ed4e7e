"""Keeps the documents of the graphs that write rows, so that a later graph can tell what has changed since."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from graphagent.checkpoint.store import CheckpointStore
from graphagent.graph.compiled import CompiledGraph

_KEPT: WeakKeyDictionary[CheckpointStore, set[str]] = WeakKeyDictionary()
"""The fingerprints that each open store has been given: it is asked once for each, not once a run."""


async def keep_graphs(store: CheckpointStore, graph: CompiledGraph) -> None:
    """Have the store keep the documents of a graph and of its child graphs before they write rows. Raises SaveError."""
    kept = _KEPT.get(store)
    if kept is None:
        kept = _KEPT[store] = set()
    if graph.fingerprint in kept:
        return
    for node in graph.defs:
        if isinstance(node.child, CompiledGraph):
            await keep_graphs(store, node.child)
    await store.save_graph(graph.fingerprint, graph.to_json())
    kept.add(graph.fingerprint)
