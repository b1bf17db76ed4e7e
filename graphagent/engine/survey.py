"""What a change of a graph means for the runs that are stored: each is judged as a resume would judge it, and nothing
is run or written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphagent.checkpoint.record import Loaded
from graphagent.checkpoint.store import CheckpointStore
from graphagent.engine.admit import old_graph, stored_standing
from graphagent.engine.called import SetupOf, called_frames
from graphagent.engine.frame import Setup
from graphagent.engine.restore import load_row
from graphagent.errors import IncompatibleCheckpoint

if TYPE_CHECKING:
    from graphagent.validation.in_flight import Judge, Verdict
    from graphagent.validation.mapping import Renames
    from graphagent.validation.version import Version


class Survey:
    """Judges stored runs for one graph.

    `old`: a version that the store may not know by itself. `renames`: beside what the graph declares; with them the
    state is judged by declared types, since only what is in code can read it.
    """

    def __init__(
        self,
        setup: Setup,
        setup_of: SetupOf,
        store: CheckpointStore,
        *,
        old: Version | None = None,
        renames: Renames | None = None,
    ) -> None:
        self.setup = setup
        self.setup_of = setup_of
        self.store = store
        self.old = old
        self.renames = renames
        self._judges: dict[str, Judge] = {}

    async def unfinished(self) -> Mapping[str, Verdict]:
        """The verdict on every unfinished run that another version has stored, by lineage (with its namespace behind a
        colon where a run is not at the root), and on every agent that a tool has in flight in one."""
        found = {}
        for lineage in await self.store.lineages():
            for namespace in await self.store.namespaces(lineage):
                if "@" in namespace:  # of a child graph: judged with the run that it belongs to
                    continue
                verdict = await self._judged(lineage, namespace)
                if verdict is not None:
                    found[f"{lineage}:{namespace}" if namespace else lineage] = verdict
                found |= await self._called(lineage, namespace)
        return found

    async def _called(self, lineage: str, namespace: str) -> dict[str, Verdict]:
        """The verdicts on agents that tools of a run have in flight: each is of a graph of its own."""
        found: dict[str, Verdict] = {}
        with suppress(IncompatibleCheckpoint):  # of the run itself, which has a verdict
            loaded = await load_row(self.store, self.setup, lineage, namespace)
            assert loaded is not None
            async for inner, inside in called_frames(self.setup, self.setup_of, self.store, loaded):
                own = Survey(inner, self.setup_of, self.store)
                verdict = await own._judged(lineage, inside.namespace)
                if verdict is not None:
                    found[f"{lineage}:{inside.namespace}"] = verdict
                found |= await own._called(lineage, inside.namespace)
        return found

    async def _judged(self, lineage: str, namespace: str) -> Verdict | None:
        from graphagent.validation.in_flight import Verdict

        [head] = await self.store.history(lineage, namespace, limit=1)
        if head.source == "end" or head.fingerprint == self.setup.graph.fingerprint:
            return None
        judge = await self._judge(head.fingerprint)
        try:
            loaded, decoded = await self._loaded(lineage, namespace)
            standing = await stored_standing(self.setup, self.setup_of, self.store, loaded)
        except IncompatibleCheckpoint as error:
            return Verdict(tuple(judge.reasons.unreadable(str(change)) for change in error.changes))
        return judge.judge(standing if decoded else replace(standing, decoded=False, fields=loaded.values))

    async def _loaded(self, lineage: str, namespace: str) -> tuple[Loaded, bool]:
        """The newest row, and whether its state has been read in the types of the graph."""
        if self.renames is None:
            loaded = await load_row(self.store, self.setup, lineage, namespace)
        else:
            loaded = await self.store.load(lineage, namespace, None, None)
        assert loaded is not None
        return loaded, self.renames is None

    async def _judge(self, fingerprint: str) -> Judge:
        from graphagent.validation.in_flight import Judge
        from graphagent.validation.mapping import NO_RENAMES
        from graphagent.validation.version import Version

        known = self._judges.get(fingerprint)
        if known is None:
            own = self.old if self.old is not None and self.old.fingerprint == fingerprint else None
            old = own or await old_graph(self.store, fingerprint)
            new: Any = Version.of(self.setup.graph)
            known = self._judges[fingerprint] = Judge(new, old, self.renames or NO_RENAMES)
        return known
