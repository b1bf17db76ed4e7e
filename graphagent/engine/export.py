"""A recorded run as a file: written from a store, gone through again offline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphagent.checkpoint.portable import SCHEMA, read_frame, write_lineage
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.checkpoint.store import CheckpointStore, PartCodec
from graphagent.engine.executor import Executor
from graphagent.engine.nested import graphs_by_frame
from graphagent.engine.replay import Divergence, ReplayReport
from graphagent.engine.state_codec import StateCodec
from graphagent.errors import CheckpointNotFound, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.ids import checkpoint_id


async def export_lineage(
    store: CheckpointStore, graph: CompiledGraph, lineage: str, *, target: str = ""
) -> dict[str, Any]:
    """Everything that is stored of a lineage, as a JSON document: `portable.to_text` writes it down.

    `graph` is the one that wrote it; `target`: how a command line names that graph, so that the file can be replayed
    by itself. Values that are stored encrypted stay so. Raises CheckpointNotFound.
    """
    namespaces = await store.namespaces(lineage)
    if not namespaces:
        known = await store.lineages()
        raise CheckpointNotFound(f"no lineage '{lineage}' in this store: {alternatives(lineage, known)}")
    frames = {}
    for namespace, inside in graphs_by_frame(graph, namespaces).items():
        schema = (inside or graph).schema
        lists = {name for name, field in schema.fields.items() if field.form == "list"}
        codec: PartCodec = StateCodec(schema, getattr(store, "cipher", None))
        frames[namespace] = await read_frame(store, lineage, namespace, codec, lists)
    prints = dict.fromkeys(row["fingerprint"] for frame in frames.values() for row in frame["rows"])
    known_graphs = {fingerprint: await store.graph(fingerprint) for fingerprint in prints}
    return {
        "schema": SCHEMA,
        "lineage": lineage,
        "target": target,
        "graph": graph.name,
        "fingerprint": graph.fingerprint,
        "graphs": {fingerprint: document for fingerprint, document in known_graphs.items() if document is not None},
        "frames": frames,
    }


async def replay_exported(graph: CompiledGraph, document: Mapping[str, Any]) -> ReplayReport:
    """Go through an exported run with its recorded results, the frames of child graphs too; needs no store.

    The report counts the steps of all frames and has the first divergence. Raises UsageError for a malformed document.
    """
    steps = skipped = 0
    async with SqlCheckpoints("sqlite://") as store:
        lineage = await write_lineage(store, document)
        for namespace, inside in graphs_by_frame(graph, document["frames"]).items():
            if inside is None:
                return ReplayReport(lineage, steps, skipped, _homeless(graph, lineage, namespace))
            report = await Executor(inside, store).replay(lineage, namespace=namespace)
            steps, skipped = steps + report.steps, skipped + report.skipped
            if report.divergence is not None:
                return ReplayReport(lineage, steps, skipped, report.divergence)
    return ReplayReport(lineage, steps, skipped, None)


def _homeless(graph: CompiledGraph, lineage: str, namespace: str) -> Divergence:
    text = f"the run had a child graph at '{namespace}', and no node of graph '{graph.name}' runs one there"
    return Divergence(checkpoint_id(lineage, namespace, 0), (), None, None, text)
