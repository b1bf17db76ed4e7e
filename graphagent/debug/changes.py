"""Rows that a debugger writes: an edit of a stored row, a fork of it, also inside child frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphagent.checkpoint.record import Source
from graphagent.debug.stored import Child, Stored
from graphagent.debug.walk import Place
from graphagent.engine.admit import admit
from graphagent.engine.due import origins, parts
from graphagent.engine.edit import edited, patched
from graphagent.engine.fork import branch_off
from graphagent.engine.frame import Setup, Tree
from graphagent.engine.restore import load_row
from graphagent.errors import CheckpointNotFound


async def changed_row(
    stored: Stored, place: Place, lineage: str, patch: Mapping[str, Any] | None, as_node: str | None
) -> Place:
    """A row that goes on from `place` in `lineage`: an edit with `patch`, without one a fork. Returns its place.

    In a child frame that is still open the row is written there, and the frames around it go on as they stand. Where
    they have gone on, or for another lineage, they are forked from the rows whose activations ran the frames.
    """
    executor = stored.executor
    child = stored.child_of(place.namespace)
    if child is None:
        if patch is None:
            new = None if lineage == stored.lineage else lineage
            head = await executor.fork(stored.lineage, place.seq, new_lineage=new, namespace=place.namespace)
        else:
            head = await executor.edit(stored.lineage, place.seq, patch, as_node=as_node, namespace=place.namespace)
        return Place(place.namespace, head.seq)
    source = executor._still(stored.lineage)
    async with executor._writing(lineage) as target:
        made = _Change(stored, source if lineage != stored.lineage else target, target)
        if lineage == stored.lineage and await _open(stored, place.namespace):
            return await made.at(place, place.namespace, patch, as_node)
        around = await made.around(child)
        return await made.at(place, _moved(place.namespace, child, around), patch, as_node, begin=True)


async def _open(stored: Stored, namespace: str) -> bool:
    """True if the activation that runs a frame is in the frontier of its parent's newest row, and so upward."""
    child = stored.child_of(namespace)
    if child is None:
        return True
    row = (await stored.load(child.parent, None)).row
    due = set(origins(row, parts(row)[1]))
    return (child.base, child.position) in due and await _open(stored, child.parent)


def _moved(namespace: str, child: Child, around: Place) -> str:
    """The name of a child frame whose parent goes on from another row."""
    own = namespace[len(child.parent) + 1 if child.parent else 0 :].rpartition("@")[0]
    below = f"{around.namespace}/" if around.namespace else ""
    return f"{below}{own}@{around.seq}.{child.position}"


class _Change:
    """Writes the rows of one change, from the root frame inward."""

    def __init__(self, stored: Stored, source: Tree, target: Tree) -> None:
        self.stored = stored
        self.source = source
        self.target = target

    async def around(self, child: Child) -> Place:
        """The frame around another, forked from the row that this one's activation started from."""
        outer = self.stored.child_of(child.parent)
        place = Place(child.parent, child.base)
        if outer is None:
            return await self.at(place, child.parent, None, None)
        around = await self.around(outer)
        return await self.at(place, _moved(child.parent, outer, around), None, None, begin=True)

    async def at(
        self, place: Place, to: str, patch: Mapping[str, Any] | None, as_node: str | None, *, begin: bool = False
    ) -> Place:
        """A row in frame `to` that goes on from a stored one. `begin`: the frame is new, and gets the input of the
        stored one first, by which its parent tells what it has changed."""
        stored, setup = self.stored, await self._setup(place.namespace)
        setup_of = stored.executor._setup_of
        first = await load_row(stored.store, setup, stored.lineage, place.namespace, 0)
        if begin and place.seq > 0 and first is not None and first.row.source == "input":
            await branch_off(
                setup,
                setup_of,
                self.source,
                self.target,
                place.namespace,
                first,
                kind="input",
                to=to,
                drop_finished=True,
            )
        loaded = await load_row(stored.store, setup, stored.lineage, place.namespace, place.seq)
        if loaded is None:
            raise await stored.not_found(*place)
        await admit(setup, setup_of, stored.store, loaded)
        elsewhere = None if to == place.namespace else to
        if patch is None or as_node is None:
            kind: Source = "fork" if patch is None else "edit"
            values = None if patch is None else patched(setup.graph, loaded.values, patch)
            frame = await branch_off(
                setup,
                setup_of,
                self.source,
                self.target,
                place.namespace,
                loaded,
                kind=kind,
                to=elsewhere,
                patch=values,
                drop_finished=patch is not None,
                note=None if patch is None else {"edited": sorted(patch)},
            )
            return Place(to, frame.seq)
        if elsewhere is not None:
            await branch_off(setup, setup_of, self.source, self.target, place.namespace, loaded, to=to)
            loaded = await load_row(stored.store, setup, self.target.lineage, to)
            assert loaded is not None
        frame = await edited(setup, self.target, to, loaded, patch, as_node)
        return Place(to, frame.seq)

    async def _setup(self, namespace: str) -> Setup:
        graph = await self.stored.graph(namespace)
        if graph is None:
            raise CheckpointNotFound(
                f"no node of graph '{self.stored.executor.graph.name}' runs a graph at '{namespace}': "
                f"it was written by another version"
            )
        return self.stored.executor._setup_of(graph)
