"""Why did this node run? The chain of triggers, read from stored markings."""

from __future__ import annotations

from dataclasses import dataclass

from graphagent.checkpoint.record import Loaded
from graphagent.checkpoint.store import CheckpointStore
from graphagent.engine.frame import activation_text
from graphagent.engine.marking_codec import decode_marking
from graphagent.errors import CheckpointNotFound, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.ids import checkpoint_id


@dataclass(frozen=True, slots=True)
class Cause:
    """One link: an activation, the checkpoint that put it into the frontier, and what triggered it (ids).

    No triggers: the run's input started it. `join`: it is the target of a join, whose arrivals the triggers are.
    """

    activation: str
    node: str
    step: int
    checkpoint: str
    triggers: tuple[str, ...]
    join: str | None = None


async def causes(
    store: CheckpointStore, graph: CompiledGraph, lineage: str, namespace: str, activation: str
) -> list[Cause]:
    """The link of `activation` (such as `check#4`), then those of its triggers, breadth first, down to the input.

    Raises CheckpointNotFound for an activation that no stored frontier has.
    """
    headers = [h for h in await store.history(lineage, namespace) if h.source in ("input", "step", "edit", "fork")]
    if not headers:
        raise CheckpointNotFound(f"no lineage '{lineage}' in this store")
    by_step: dict[int, list[int]] = {}
    for header in headers:
        by_step.setdefault(header.step, []).append(header.seq)
    found: list[Cause] = []
    queue = [activation]
    seen: set[str] = set()
    while queue:
        wanted = queue.pop(0)
        if wanted in seen:
            continue
        seen.add(wanted)
        cause = await _cause(store, graph, lineage, namespace, wanted, by_step)
        if cause is not None:
            found.append(cause)
            queue += cause.triggers
        elif not found:
            known = [f"{node}#{header.step}" for header in headers for node in header.nodes]
            raise CheckpointNotFound(
                f"no activation '{wanted}' in lineage '{lineage}': {alternatives(wanted, known)}; "
                f"activations are named '<branch>/<node>#<step>'"
            )
    return found


async def _cause(
    store: CheckpointStore,
    graph: CompiledGraph,
    lineage: str,
    namespace: str,
    wanted: str,
    by_step: dict[int, list[int]],
) -> Cause | None:
    number = wanted.rpartition("#")[2].partition("~")[0]
    if not number.isdigit():
        return None
    visit = int(number)
    for seq in by_step.get(visit - 1, ()):
        loaded = await store.load(lineage, namespace, seq)
        if loaded is not None and (cause := _link(graph, loaded, wanted, visit)) is not None:
            return cause
    return None


def _link(graph: CompiledGraph, loaded: Loaded, wanted: str, visit: int) -> Cause | None:
    row = loaded.row
    plain = row.marking["m"] if isinstance(row.marking, dict) and "m" in row.marking else row.marking
    marking = decode_marking(graph, plain, row.overlays)
    for activation in marking.frontier:
        if activation_text(graph, activation, visit) != wanted.partition("~")[0]:
            continue
        trigger = activation.trigger
        if trigger is None:  # the one activation that ran in the step of this row
            trigger = tuple(f"{node}#{row.step}" for node in row.nodes)
        join = next((j.id for j in graph.join_tables if j.target == activation.node and len(trigger) > 1), None)
        place = checkpoint_id(loaded.lineage, loaded.namespace, row.seq)
        return Cause(wanted, graph.names[activation.node], visit, place, trigger if row.source != "input" else (), join)
    return None
