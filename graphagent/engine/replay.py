"""Go through a stored run with its recorded results and see whether this graph takes the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from graphagent.checkpoint.record import Loaded
from graphagent.checkpoint.store import CheckpointStore
from graphagent.engine.frame import Frame, Setup, Tree
from graphagent.engine.limits import Meter
from graphagent.engine.marking_codec import encode_marking
from graphagent.engine.outcome import Outcome
from graphagent.engine.restore import load_frame, load_row
from graphagent.engine.step import completion
from graphagent.errors import CheckpointNotFound, GraphAgentError
from graphagent.graph.marking import Completion, Marking
from graphagent.graph.names import END, END_INDEX
from graphagent.graph.transitions import fire
from graphagent.ids import checkpoint_id


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first checkpoint that this graph would not have reached: what the run did, what the graph does."""

    checkpoint: str
    nodes: tuple[str, ...]
    recorded: Any
    replayed: Any
    message: str


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """Steps that were checked, steps that could not be (`skipped`), and the first divergence, if any."""

    lineage: str
    steps: int
    skipped: int
    divergence: Divergence | None

    @property
    def ok(self) -> bool:
        """True if nothing diverged."""
        return self.divergence is None


async def replayed(setup: Setup, store: CheckpointStore, lineage: str, namespace: str) -> ReplayReport:
    """The report on the newest history of a lineage. Raises CheckpointNotFound."""
    chain = await _chain(store, lineage, namespace)
    tree = Tree(lineage, "replay", Meter(setup.clock), store=store, durable=True)
    steps = skipped = 0
    before: Loaded | None = None
    for seq in chain:
        try:
            loaded = await load_row(store, setup, lineage, namespace, seq)
        except GraphAgentError as error:
            return ReplayReport(lineage, steps, skipped, _broken(lineage, namespace, seq, error))
        assert loaded is not None
        if loaded.row.source == "step" and before is not None:
            if not is_a_step(before, loaded):
                skipped += 1
            else:
                divergence = await _check(setup, tree, namespace, before, loaded)
                if divergence is not None:
                    return ReplayReport(lineage, steps, skipped, divergence)
                steps += 1
        before = loaded
    return ReplayReport(lineage, steps, skipped, None)


async def _chain(store: CheckpointStore, lineage: str, namespace: str) -> list[int]:
    """The rows from the first to the newest, along parents."""
    headers = {header.seq: header for header in await store.history(lineage, namespace)}
    if not headers:
        raise CheckpointNotFound(f"no lineage '{lineage}' in this store")
    chain: list[int] = []
    seq: int | None = max(headers)
    while seq is not None and seq in headers:
        chain.append(seq)
        seq = headers[seq].parent
    return chain[::-1]


class Again(NamedTuple):
    """A step gone through again: the frame before it, where the run then stood, what each activation chose now."""

    frame: Frame
    reached: Frame
    done: tuple[Completion, ...]


async def step_again(setup: Setup, tree: Tree, namespace: str, before: Loaded, after: Loaded) -> Again:
    """What this graph makes of a step with its recorded results: its routers are run, its nodes are not.

    Raises GraphAgentError for rows or a choice that this graph can't have.
    """
    frame = await load_frame(setup, tree, namespace, before)
    reached = await load_frame(setup, tree, namespace, after)
    decisions: Mapping[str, Any] = after.row.note or {}
    positions = [decisions["done"]] if "done" in decisions else range(len(frame.marking.frontier))
    done = [
        await completion(frame, position, _outcome(frame, position, decisions), reached.values)
        for position in positions
    ]
    return Again(frame, reached, tuple(done))


def is_a_step(before: Loaded | None, after: Loaded) -> bool:
    """True if a row is that of one step taken from the row before it, which can be gone through again."""
    if before is None or after.row.source != "step" or after.row.step != before.row.step + 1:
        return False
    return not (after.row.note or {}).get("landing")


async def _check(setup: Setup, tree: Tree, namespace: str, before: Loaded, after: Loaded) -> Divergence | None:
    here = checkpoint_id(tree.lineage, namespace, after.row.seq)
    try:
        frame, reached, done = await step_again(setup, tree, namespace, before, after)
        marking = fire(frame.graph, frame.marking, done)
    except GraphAgentError as error:
        return _broken(tree.lineage, namespace, after.row.seq, error)
    recorded, now = where(frame, reached.marking), where(frame, marking)
    if recorded == now:
        return None
    return Divergence(
        here,
        after.row.nodes,
        recorded,
        now,
        f"after {', '.join(after.row.nodes)} the run stood at {recorded}, this graph goes to {now}",
    )


def _outcome(frame: Frame, position: int, decisions: Mapping[str, Any]) -> Outcome:
    index = {**frame.graph.index, END: END_INDEX}
    for place, targets, error in decisions.get("goto", ()):
        if place == position:
            outcome = Outcome(goto=tuple(index[name] for name in targets))
            outcome.error = error
            return outcome
    for place, targets in decisions.get("sends", ()):
        if place == position:
            return Outcome(sends=tuple((index[name], {}) for name in targets))
    return Outcome()


def where(frame: Frame, marking: Marking) -> Any:
    """A marking as plain data that can be compared."""
    plain = encode_marking(frame.graph, marking)
    return {"f": [[plain]]} if isinstance(plain, str) else plain


def _broken(lineage: str, namespace: str, seq: int, error: GraphAgentError) -> Divergence:
    return Divergence(checkpoint_id(lineage, namespace, seq), (), None, None, str(error))
