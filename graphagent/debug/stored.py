"""What a store has of one lineage, for a debugger: headers are read once, rows when somebody stands on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from graphagent.agents.stored_frames import graph_of_space
from graphagent.checkpoint.changes import rows_between
from graphagent.checkpoint.record import Header, Loaded, Row
from graphagent.debug.moment import Coming, Moment, coming_of, moment_of, moment_told
from graphagent.engine.due import parts
from graphagent.engine.executor import Executor
from graphagent.engine.frame import Frame, is_root
from graphagent.engine.merge import Merged
from graphagent.engine.restore import load_row
from graphagent.engine.state_codec import contained
from graphagent.errors import CheckpointNotFound, IncompatibleCheckpoint, alternatives
from graphagent.graph.compiled import CompiledGraph
from graphagent.ids import checkpoint_id
from graphagent.unset import UNSET

_PLACE = re.compile(r"@(\d+)\.(\d+)(?=/|$)")  # the row that an activation started from, and its place there
PAGE = 256
"""Headers that a look for new ones reads at a time."""


def is_within(namespace: str, frame: str) -> bool:
    """True for the namespace of a frame and those of the child frames below it."""
    return not frame or namespace == frame or namespace.startswith(f"{frame}/")


class Child(NamedTuple):
    """Whose child a frame is: the frame and the row that its activation started from, and its place there."""

    parent: str
    base: int
    position: int


class Rows:
    """The headers of one frame, by number."""

    def __init__(self) -> None:
        self.by_seq: dict[int, Header] = {}
        self.newest = -1
        self._children: dict[int, int] = {}  # by row the newest one that goes on from it

    def add(self, headers: Sequence[Header]) -> None:
        """Headers that are newer than all that are known, oldest first."""
        for header in headers:
            self.by_seq[header.seq] = header
            self.newest = header.seq
            if header.parent is not None:
                self._children[header.parent] = header.seq

    def chain(self, tip: int) -> list[Header]:
        """The rows that lead to one, oldest first, as far as they are stored."""
        found = []
        header = self.by_seq.get(tip)
        while header is not None:
            found.append(header)
            header = None if header.parent is None else self.by_seq.get(header.parent)
        return found[::-1]

    def tip_from(self, seq: int) -> int:
        """The end of what went on from a row: of several ways the one that was taken last."""
        while seq in self._children:
            seq = self._children[seq]
        return seq


class Stored:
    """Rows, moments and states of one lineage. `root`: namespace of its root frame."""

    def __init__(self, executor: Executor, lineage: str, root: str = "") -> None:
        self.executor = executor
        self.store = executor.store
        self.lineage = lineage
        self.root = root
        self.spaces: list[str] = []
        self._roots = [root]  # frames that are no children
        self.version = 0  # grows when new rows have been found
        self.stale = True  # there may be rows that have not been read
        self._rows: dict[str, Rows] = {}
        self._graphs: dict[str, CompiledGraph | None] = {root: executor.graph}

    # -- headers ---------------------------------------------------------------------------------

    async def refresh(self) -> bool:
        """Read what has been written since; True if there is anything."""
        news, self.stale = False, False
        for namespace in list(self._rows):
            news = await self._read(namespace) or news
        spaces = await self.store.namespaces(self.lineage)
        if news or spaces != self.spaces or not self.version:
            self.spaces = spaces
            self._roots = [space for space in spaces if is_root(space)]
            self.version += 1
            return True
        return False

    def know(self, frames: Mapping[str, Sequence[Header]]) -> None:
        """Take headers over that somebody else has read, per frame and oldest first; only newer ones are read then."""
        for namespace, headers in frames.items():
            if namespace not in self._rows:
                rows = self._rows[namespace] = Rows()
                rows.add(headers)

    async def rows(self, namespace: str) -> Rows:
        """The headers of a frame; those that were there when they were read first, or at the last refresh."""
        if namespace not in self._rows:
            await self._read(namespace)
        return self._rows[namespace]

    async def _read(self, namespace: str) -> bool:
        rows = self._rows.setdefault(namespace, Rows())
        if rows.newest < 0:
            new = await self.store.history(self.lineage, namespace)
        else:
            new, before = [], None
            while True:
                page = await self.store.history(self.lineage, namespace, limit=PAGE, before=before)
                new += [header for header in page if header.seq > rows.newest]
                if len(page) < PAGE or page[-1].seq <= rows.newest:
                    break
                before = page[-1].seq
        rows.add(new[::-1])
        return bool(new)

    def child_of(self, namespace: str) -> Child | None:
        """Whose child a frame is; None for a root frame."""
        places = list(_PLACE.finditer(namespace))
        if not places or places[-1].end() != len(namespace):
            return None
        if len(places) > 1:
            parent = namespace[: places[-2].end()]
        else:
            parent = max((root for root in self._roots if is_within(namespace, root)), key=len, default=self.root)
        return Child(parent, int(places[-1][1]), int(places[-1][2]))

    def around(self, namespace: str) -> list[str]:
        """The frames around one, innermost first."""
        child = self.child_of(namespace)
        return [] if child is None else [child.parent, *self.around(child.parent)]

    async def ran(self, namespace: str, seq: int) -> tuple[str, ...]:
        """The nodes of the step that a row came with."""
        rows = (await self.rows(namespace)).by_seq
        header = rows[seq]
        before = None if header.parent is None else rows.get(header.parent)
        return before.nodes if before is not None and with_end(before, header) else header.nodes

    async def visits(self) -> Counter[str]:
        """How often each node has run in the whole lineage."""
        found: Counter[str] = Counter()
        for namespace in self.spaces:
            for header in (await self.rows(namespace)).by_seq.values():
                found.update(header.nodes)
        return found

    # -- rows ------------------------------------------------------------------------------------

    async def graph(self, namespace: str) -> CompiledGraph | None:
        """The graph of a frame; None if no node of this version runs it."""
        if namespace not in self._graphs:
            if namespace not in self.spaces:
                self.spaces = await self.store.namespaces(self.lineage)
            self._graphs[namespace] = graph_of_space(self.executor.graph, self.spaces, namespace)
        return self._graphs[namespace]

    async def load(self, namespace: str, seq: int | None) -> Loaded:
        """A row, None: the newest, with its state as plain data. Raises CheckpointNotFound."""
        loaded = await self.store.load(self.lineage, namespace, seq, None)
        if loaded is None:
            raise await self.not_found(namespace, seq)
        return loaded

    async def not_found(self, namespace: str, seq: int | None) -> CheckpointNotFound:
        """The error for a row that isn't there."""
        rows = await self.rows(namespace)
        if not rows.by_seq:
            spaces = await self.store.namespaces(self.lineage)
            if not spaces:
                return CheckpointNotFound(f"no lineage '{self.lineage}' in this store")
            return CheckpointNotFound(
                f"lineage '{self.lineage}' has no frame '{namespace}': {alternatives(namespace, spaces)}"
            )
        text = checkpoint_id(self.lineage, namespace, seq if seq is not None else 0)
        known = [rows.by_seq[seq].id for seq in sorted(rows.by_seq, reverse=True)[:5]]
        return CheckpointNotFound(f"no checkpoint '{text}' in lineage '{self.lineage}': {alternatives(text, known)}")

    async def moment(self, namespace: str, seq: int | None, graph: CompiledGraph | None = None) -> Moment:
        """Where the run stood at a row. `graph`: that of the frame, if it is known. Raises CheckpointNotFound."""
        return await self._moment(await self.load(namespace, seq), graph or await self.graph(namespace))

    async def seen(self, namespace: str, seq: int, *, changes: bool) -> tuple[Moment, dict[str, Any]] | None:
        """A moment with its state, read at once; None if no graph is known that they fit. `changes`: the moment has to
        say what its step changed."""
        graph = await self.graph(namespace)
        if graph is None:
            return None
        try:
            loaded = await load_row(self.store, self.executor._setup_of(graph), self.lineage, namespace, seq)
        except IncompatibleCheckpoint:
            return None
        if loaded is None:
            raise await self.not_found(namespace, seq)
        moment = await self._moment(loaded, graph, changes=changes)
        return moment, {**graph.schema.start_values(), **contained(graph.schema, loaded.values)}

    async def _moment(self, loaded: Loaded, graph: CompiledGraph | None, *, changes: bool = True) -> Moment:
        row, step = loaded.row, loaded
        if row.source == "end" and row.parent is not None:
            step = await self._step_of_end(loaded)
        changed = await self._changed(graph, step) if changes else ()
        held = await self._held(loaded)
        try:
            if graph is None:
                raise IncompatibleCheckpoint("the graph of the frame is not known")
            moment = moment_of(graph, self.lineage, loaded.namespace, row, changed=changed, held=held)
        except IncompatibleCheckpoint:
            moment = _unknown(self.lineage, loaded.namespace, row, changed)
        return moment if step is loaded else replace(moment, ran=step.row.nodes)

    async def values(self, namespace: str, seq: int) -> dict[str, Any]:
        """The state at a row, in the types of this graph. Raises IncompatibleCheckpoint, CheckpointNotFound."""
        graph = await self.graph(namespace)
        if graph is None:
            return (await self.load(namespace, seq)).values
        loaded = await load_row(self.store, self.executor._setup_of(graph), self.lineage, namespace, seq)
        if loaded is None:
            raise await self.not_found(namespace, seq)
        return {**graph.schema.start_values(), **contained(graph.schema, loaded.values)}

    async def _step_of_end(self, end: Loaded) -> Loaded:
        """The row of the step that an end row was written with, else the end row."""
        assert end.row.parent is not None
        loaded = await self.store.load(self.lineage, end.namespace, end.row.parent, None)
        return loaded if loaded is not None and with_end(loaded.row, end.row) else end

    async def _changed(self, graph: CompiledGraph | None, loaded: Loaded) -> tuple[str, ...]:
        """The fields that a row's step, edit or input changed. A row that has them all is compared with the one before
        it."""
        place = self.lineage, loaded.namespace
        if loaded.row.source in ("interrupt", "error", "end"):
            return ()
        names: set[str] = set()
        async for row in rows_between(self.store, *place, loaded.row.seq, loaded.row.seq):
            names = {*row.values, *row.patches, *row.lists}
            if row.snap == row.seq and row.parent is not None:
                before = await self.store.load(*place, row.parent, None)
                deltas = row.lists if row.root != row.seq or row.pointer is not None else {}
                after = await self.store.load(*place, row.seq, None)
                old, new = ({} if one is None else one.values for one in (before, after))
                names = {name for name in names if name in deltas or old.get(name, UNSET) != new.get(name, UNSET)}
        return in_order(graph, names)

    async def _held(self, loaded: Loaded) -> set[tuple[int, int]]:
        """Base and position of what had finished in the open step of a row. The records of a step that has ended are
        gone, or those of its last moment."""
        row = loaded.row
        asking = {question.position for question in row.questions if not question.answered and question.kind == "ask"}
        if row.source not in ("interrupt", "error") and not loaded.newest:
            return set()
        if isinstance(row.marking, str) and row.source not in ("interrupt", "error"):
            return set()
        places = [(row.base, position) for position in range(len(parts(row)[1]))]
        if isinstance(row.marking, dict) and "o" in row.marking:
            places = [(place[0], place[1]) for place in row.marking["o"]]
        kept = {
            (base, position)
            for base in {base for base, _ in places}
            for position in await self.store.activations(self.lineage, loaded.namespace, base, None)
        }
        return {place for i, place in enumerate(places) if place in kept and i not in asking}


def with_end(step: Header | Row, end: Header | Row) -> bool:
    """True if an end row was written with a step, in one go: it has nothing to say of its own."""
    same = step.run_id == end.run_id and step.created_at == end.created_at
    return step.source == "step" and end.source == "end" and end.parent == step.seq and same


def in_order(graph: CompiledGraph | None, names: set[str]) -> tuple[str, ...]:
    """Names of fields, as they are declared."""
    if graph is None:
        return tuple(sorted(names))
    return tuple(name for name in graph.schema.names if name in names)


def changed_by(graph: CompiledGraph, row: Row | None, merged: Merged, before: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that a step changed; of a row that has all fields those whose values differ, as that row will tell."""
    names = {*merged.values, *merged.patches, *merged.lists}
    if row is not None and row.snap == (row.seq if row.source == "step" else row.parent):
        names = {n for n in names if n in merged.lists or before.get(n, UNSET) != merged.state.get(n, UNSET)}
    return in_order(graph, names)


def moment_of_row(frame: Frame, row: Row, ran: tuple[str, ...], changed: tuple[str, ...]) -> Moment:
    """The moment of a frame that stands at its newest row. `ran`, `changed`: the step that the row came with."""
    if row.source == "input":
        changed = in_order(frame.graph, {*row.values, *row.patches, *row.lists})
    frontier = frame.marking.frontier
    origins = [frame.origin(position) for position in range(len(frontier))]
    held = [position for position, outcome in frame.held.items() if outcome.done] if frame.held else ()
    coming = coming_of(frame.graph, frontier, origins, held, row.questions)
    return moment_told(frame.lineage, frame.namespace, row, coming, ran=ran, changed=changed)


def _unknown(lineage: str, namespace: str, row: Row, changed: tuple[str, ...]) -> Moment:
    """The moment of a row that this version of the graph can't have written: names as they are stored."""
    coming = []
    for position, due in enumerate(parts(row)[1]):
        branch = "/".join(name for name, _ in due.branch)
        text = f"{branch}/{due.node}#{row.step + 1}" if branch else f"{due.node}#{row.step + 1}"
        coming.append(Coming(text, due.node, branch, position))
    return moment_told(lineage, namespace, row, tuple(coming), changed=changed)
