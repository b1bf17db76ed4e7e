"""Looking at stored runs and going back in them: history, state, diff, fork, edit, explain, replay, retention."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphagent.checkpoint.record import Header, Loaded, PruneReport, Retention, Row
from graphagent.checkpoint.store import CheckpointStore
from graphagent.clock import Clock
from graphagent.engine.admit import admit
from graphagent.engine.edit import edited, patched
from graphagent.engine.explain import Cause, causes
from graphagent.engine.fork import branch_off
from graphagent.engine.frame import Setup, Tree
from graphagent.engine.marking_codec import decode_marking
from graphagent.engine.plan import natural_end
from graphagent.engine.replay import ReplayReport, replayed
from graphagent.engine.restore import load_frame, load_row
from graphagent.engine.result import Interrupt, public
from graphagent.engine.run import give_back
from graphagent.engine.survey import Survey
from graphagent.errors import CheckpointNotFound, IncompatibleCheckpoint, UsageError
from graphagent.graph.compiled import CompiledGraph
from graphagent.ids import parse_checkpoint_id
from graphagent.unset import UNSET

if TYPE_CHECKING:
    from graphagent.engine.cover import Recorded
    from graphagent.engine.limits import Budget
    from graphagent.engine.stream import Emitter
    from graphagent.validation.in_flight import Verdict
    from graphagent.validation.mapping import Renames
    from graphagent.validation.version import Version


@dataclass(frozen=True, slots=True)
class Change:
    """How a field differs between two checkpoints; UNSET where it has no value. `added`: new items of a list."""

    before: Any
    after: Any
    added: list[Any] | None = None


def is_settled(graph: CompiledGraph, row: Row) -> bool:
    """True if a row stands at the end of a turn: an end row, or a fork or edit of one."""
    if row.source == "end":
        return True
    if row.source not in ("fork", "edit") or row.questions:
        return False
    plain = row.marking["m"] if isinstance(row.marking, dict) and "m" in row.marking else row.marking
    try:
        marking = decode_marking(graph, plain, row.overlays)
    except IncompatibleCheckpoint:
        return False
    return not marking.frontier and natural_end(graph, marking).kind == "completed"


def changes_between(names: Iterable[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Change]:
    """The fields of `names` whose values differ, in that order."""
    changes = {}
    for name in names:
        old, new = before.get(name, UNSET), after.get(name, UNSET)
        if old is not new and old != new:
            grown = isinstance(old, list) and isinstance(new, list) and new[: len(old)] == old
            changes[name] = Change(old, new, new[len(old) :] if grown else None)
    return changes


async def place_of(store: CheckpointStore, checkpoint: str) -> tuple[str, str, int]:
    """Lineage, namespace and seq of a checkpoint id; the first two may both have colons in them.

    Raises CheckpointNotFound if the store has no such frame.
    """
    rest, _, seq = checkpoint.rpartition(":")
    cuts = [i for i, character in enumerate(rest) if character == ":"]
    for lineage, namespace in [(rest, ""), *((rest[:i], rest[i + 1 :]) for i in reversed(cuts))]:
        if seq.isdigit() and await store.history(lineage, namespace, limit=1):
            return lineage, namespace, int(seq)
    raise CheckpointNotFound(f"no checkpoint '{checkpoint}' in this store; ids look like 'lineage:3'")


class TimeTravel:
    """The part of an executor that works on stored runs. Needs a store (without one it sees parked runs only)."""

    graph: CompiledGraph
    _store: CheckpointStore
    _setup: Setup
    _options: Setup

    @property
    def store(self) -> CheckpointStore:
        """Where rows go."""
        return self._store

    @property
    def clock(self) -> Clock:
        """The executor's clock."""
        return self._options.clock

    # -- looking ---------------------------------------------------------------------------------

    async def history(self, lineage: str, *, namespace: str = "", limit: int | None = None) -> list[Header]:
        """Headers of the checkpoints, newest first; empty for an unknown lineage. `limit` None or 0: all."""
        return await self._store.history(lineage, namespace, limit=limit or None)

    async def state(self, lineage: str, checkpoint: str | int | None = None, *, namespace: str = "") -> Any:
        """The state at the newest or a given checkpoint, as the declared class. Raises CheckpointNotFound."""
        return self.graph.schema.view((await self._values(lineage, checkpoint, namespace))[1])

    async def interrupts(self, lineage: str, *, namespace: str = "") -> list[Interrupt]:
        """What the newest checkpoint of a lineage waits for; also from another process."""
        loaded = await self._store.load(lineage, namespace)
        return [] if loaded is None else [public(q) for q in loaded.row.questions if not q.answered]

    async def diff(self, a: str, b: str) -> dict[str, Change]:
        """The fields that differ between two checkpoints (ids), in order of declaration."""
        before, after = [(await self._values_of_id(text))[1] for text in (a, b)]
        return changes_between(self.graph.schema.names, before, after)

    async def explain(self, lineage: str, activation: str, *, namespace: str = "") -> list[Cause]:
        """Why an activation ran: the chain of what triggered what, from it back to the start."""
        return await causes(self._store, self.graph, lineage, namespace, activation)

    async def replay(self, lineage: str, *, namespace: str = "") -> ReplayReport:
        """Go through a stored run with its recorded results: routers and transitions are run again, nodes are not.

        The report names the first checkpoint at which this graph goes another way than the run did.
        """
        return await replayed(self._setup, self._store, lineage, namespace)

    async def stranded(self, *, old: Version | None = None, renames: Renames | None = None) -> Mapping[str, Verdict]:
        """What would become of every unfinished run in the store that another version of the graph has written, by
        lineage; those whose verdict is `blocked` a resume would refuse. Nothing is run or written.

        `old`: that version, where the store doesn't know it. `renames`: beside those that the graph declares.
        """
        survey = Survey(self._setup, self._setup_of, self._store, old=old, renames=renames)
        return await survey.unfinished()

    async def cover(self, lineages: Iterable[str], recorded: Recorded | None = None) -> Recorded:
        """What stored runs have seen of the graph and its child graphs: nodes, edges, labels of routes, joins.

        Routers are run again, as by `replay`; nodes are not. `recorded`: coverage to add to, also from another store.
        """
        from graphagent.engine.cover import Recorded, cover_lineage
        from graphagent.engine.nested import graphs_within

        recorded = Recorded(self.graph) if recorded is None else recorded
        setups = {id(graph): self._setup_of(graph) for graph in graphs_within(self.graph)}
        for lineage in lineages:
            await cover_lineage(recorded, setups, self._store, lineage)
        return recorded

    # -- going back --------------------------------------------------------------------------------

    async def fork(
        self,
        lineage: str,
        checkpoint: str | int | None = None,
        *,
        new_lineage: str | None = None,
        keep_effects: bool = False,
        namespace: str = "",
    ) -> Header:
        """A new checkpoint that goes on from an old one, in a new lineage or (None) in the same, where it becomes the
        newest. Open questions, finished activations and child frames of the open step come along. With
        `keep_effects` committed effects of the open step are not repeated."""
        loaded = await self._admitted(lineage, checkpoint, namespace)
        async with self._writing(new_lineage or lineage) as target:
            source = self._still(lineage)
            if new_lineage is None:
                source = target
            await branch_off(self._setup, self._setup_of, source, target, namespace, loaded, keep_effects=keep_effects)
        return await self._head(target.lineage, namespace)

    async def edit(
        self,
        lineage: str,
        checkpoint: str | int | None,
        patch: Mapping[str, Any],
        *,
        as_node: str | None = None,
        namespace: str = "",
    ) -> Header:
        """A new checkpoint with changed state, on top of an old one.

        Plain: values are assigned (validated, no merge rules), the frontier stays, activations of an open step that
        had finished run again. With `as_node` the patch is that node's result: merge rules apply, the node leaves
        the frontier if it is in it, and its edges and routers fire on the patched state. Raises StateError,
        UsageError for an unknown node.
        """
        loaded = await self._admitted(lineage, checkpoint, namespace)
        async with self._writing(lineage) as tree:
            if as_node is None:
                values = patched(self.graph, loaded.values, patch)
                await branch_off(
                    self._setup,
                    self._setup_of,
                    tree,
                    tree,
                    namespace,
                    loaded,
                    kind="edit",
                    patch=values,
                    drop_finished=True,
                    note={"edited": sorted(patch)},
                )
            else:
                await edited(self._setup, tree, namespace, loaded, patch, as_node)
        return await self._head(lineage, namespace)

    async def _fork_here(self, tree: Tree, namespace: str, loaded: Loaded) -> Loaded:
        """The fork row that a resume from an older checkpoint begins with, loaded."""
        await branch_off(self._setup, self._setup_of, tree, tree, namespace, loaded)
        again = await load_row(self._store, self._setup, tree.lineage, namespace)
        assert again is not None
        return again

    # -- keeping house -----------------------------------------------------------------------------

    async def prune(self, policy: Retention, *, lineage: str | None = None, dry_run: bool = False) -> PruneReport:
        """Remove old checkpoints by a policy; what stays loads as before."""
        return await self._store.prune(policy, lineage=lineage, dry_run=dry_run)

    async def pin(self, lineage: str, checkpoint: str | int, *, pinned: bool = True, namespace: str = "") -> None:
        """Protect a checkpoint from `prune`, or no longer."""
        seq = self._seq_of(lineage, namespace, checkpoint)
        assert seq is not None
        await self._store.pin(lineage, namespace, seq, pinned)

    async def delete(self, lineage: str) -> int:
        """Remove a lineage with its children, effects and forks' rows in it; returns the rows removed."""
        return await self._store.delete(lineage)

    # -- inside --------------------------------------------------------------------------------------

    def _setup_of(self, graph: CompiledGraph) -> Setup:
        raise NotImplementedError

    def _tree(self, lineage: str, context: Any, budget: Budget | None, emitter: Emitter | None) -> Tree:
        raise NotImplementedError

    def _still(self, lineage: str) -> Tree:
        return self._tree(lineage, None, None, None)

    @asynccontextmanager
    async def _writing(self, lineage: str) -> AsyncIterator[Tree]:
        tree = self._still(lineage)
        tree.durable = True
        tree.lease = await self._store.acquire(lineage, tree.run_id)
        try:
            yield tree
        finally:
            await give_back(tree)

    def _seq_of(self, lineage: str, namespace: str, checkpoint: str | int | None) -> int | None:
        if checkpoint is None or isinstance(checkpoint, int):
            return checkpoint
        parsed = parse_checkpoint_id(checkpoint, lineage)
        if parsed is None or parsed[0] != namespace:
            raise CheckpointNotFound(
                f"'{checkpoint}' is not a checkpoint of lineage '{lineage}'; ids look like '{lineage}:3'"
            )
        return parsed[1]

    async def _loaded(self, lineage: str, checkpoint: str | int | None, namespace: str) -> Loaded:
        seq = self._seq_of(lineage, namespace, checkpoint)
        loaded = await load_row(self._store, self._setup, lineage, namespace, seq)
        if loaded is None:
            raise await self._not_found(lineage, namespace, checkpoint)
        return loaded

    async def _admitted(self, lineage: str, checkpoint: str | int | None, namespace: str) -> Loaded:
        """A row to go on from: the new one is of this graph, so whether that may be is asked here."""
        loaded = await self._loaded(lineage, checkpoint, namespace)
        await admit(self._setup, self._setup_of, self._store, loaded)
        return loaded

    async def _not_found(self, lineage: str, namespace: str, checkpoint: str | int | None) -> CheckpointNotFound:
        raise NotImplementedError

    async def _values(
        self, lineage: str, checkpoint: str | int | None, namespace: str
    ) -> tuple[Loaded, dict[str, Any]]:
        loaded = await self._loaded(lineage, checkpoint, namespace)
        frame = await load_frame(self._setup, self._still(lineage), namespace, loaded)
        return loaded, frame.values

    async def _values_of_id(self, text: str) -> tuple[Loaded, dict[str, Any]]:
        lineage, namespace, seq = await place_of(self._store, text)
        return await self._values(lineage, seq, namespace)

    async def _head(self, lineage: str, namespace: str) -> Header:
        headers = await self._store.history(lineage, namespace, limit=1)
        if not headers:
            raise UsageError(f"lineage '{lineage}' has no checkpoint")
        return headers[0]
