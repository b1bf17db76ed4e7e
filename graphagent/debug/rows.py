"""The rows that lead to a point of a run, each with what it changed, and who says so: what inspections are made of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from graphagent.agents.stored_frames import graph_of_space
from graphagent.checkpoint.changes import rows_between
from graphagent.checkpoint.record import Header, Loaded, Row
from graphagent.checkpoint.store import CheckpointStore
from graphagent.debug.moment import Moment
from graphagent.debug.stored import with_end
from graphagent.engine.executor import Executor
from graphagent.engine.frame import Frame, Setup, is_root
from graphagent.engine.restore import load_frame, load_row
from graphagent.engine.timetravel import place_of
from graphagent.errors import CheckpointNotFound, UsageError, alternatives
from graphagent.graph.fields import Field
from graphagent.ids import checkpoint_id

UNKNOWN = "unknown"
"""Stands for an activation that no row names: steps that were saved as one, rows that were pruned or are of a release
that didn't note it."""


class Share(NamedTuple):
    """What one activation has to do with the change of a field: how many items or new entries it added, or which
    entries it set; neither where it is all of the change, or where that can't be told apart."""

    position: int
    added: int | None = None
    keys: tuple[str | int, ...] | None = None


@dataclass(frozen=True)
class Written:
    """A row, and the one it goes on from: None where that is gone, or there is none. `begins`: its lists don't build on
    those of another row."""

    lineage: str
    namespace: str
    row: Row
    before: Row | None
    begins: bool

    @property
    def checkpoint(self) -> str:
        """The row's id."""
        return checkpoint_id(self.lineage, self.namespace, self.row.seq)

    @property
    def is_snapshot(self) -> bool:
        """True if `row.values` are the whole state, whatever of it has changed."""
        return self.row.snap == self.row.seq

    @property
    def is_one_step(self) -> bool:
        """True for the row of one step, taken from the row before it."""
        return self.row.source == "step" and self.before is not None and self.row.step == self.before.step + 1

    @property
    def by(self) -> Mapping[str, Any]:
        """What the row's note says of who wrote what."""
        return (self.row.note or {}).get("by", {}) if self.is_one_step else {}

    def shares(self, field: str) -> list[Share] | None:
        """Who of the step wrote a field that has changed; None if the row doesn't say."""
        if not self.is_one_step:
            return None
        note = self.row.note or {}
        if note.get("landing"):
            return [Share(-1)]
        if "done" in note:
            return [Share(note["done"])]
        if len(self.row.nodes) == 1:
            return [Share(0)]
        if "by" not in note:
            return None
        return list(_shares(note["by"].get(field, ())))

    def activation(self, position: int) -> str:
        """The id of the activation at a place of the frontier before the step."""
        if 0 <= position < len(self._frontier):
            return self._frontier[position]
        name = self.row.nodes[max(position, 0)]
        return f"{name}#{self.row.step}"

    @cached_property
    def _frontier(self) -> list[str]:
        return [] if self.before is None else activations_of(self.before)


def _shares(by: Any) -> Iterator[Share]:
    """The shares in a row's note (see `graphagent.engine.merge.writers_of`)."""
    if isinstance(by, int):
        yield Share(by)
        return
    for first, positions, *count in by:
        if isinstance(positions, int):
            for position in range(first, first + positions):
                yield Share(position, *count)
        else:
            yield Share(first, None, tuple(positions))


def activations_of(row: Row) -> list[str]:
    """Ids of the activations in the frontier of a row, from its plain data: whatever graph has written it."""
    plain, places = row.marking, None
    if isinstance(plain, dict) and "m" in plain:
        plain, places = plain["m"], plain["o"]
    frontier = [[plain]] if isinstance(plain, str) else plain["f"]
    seen: dict[str, int] = {}
    found = []
    for position, (name, *more) in enumerate(frontier):
        visit = row.step + 1 if places is None else places[position][2]
        path = "/".join(segment for segment, _ in more[0]) if more and more[0] else ""
        text = f"{path}/{name}#{visit}" if path else f"{name}#{visit}"
        again = seen[text] = seen.get(text, -1) + 1
        found.append(f"{text}~{again}" if again else text)
    return found


class Rows:
    """The rows of the frame in which a moment stands."""

    def __init__(self, executor: Executor, setup: Setup, lineage: str, namespace: str) -> None:
        self.executor = executor
        self.setup = setup
        self.lineage = lineage
        self.namespace = namespace

    @classmethod
    async def of(cls, executor: Executor, moment: Moment) -> Rows:
        """The rows of the frame of a moment. Raises CheckpointNotFound (see `within`)."""
        return await cls.within(executor, moment.lineage, moment.namespace)

    @classmethod
    async def within(cls, executor: Executor, lineage: str, namespace: str) -> Rows:
        """The rows of a frame. Raises CheckpointNotFound if the graph has no node that runs a graph there."""
        graph = executor.graph
        if not is_root(namespace):
            spaces = {*await executor.store.namespaces(lineage), namespace}
            inside = graph_of_space(graph, sorted(spaces), namespace)
            if inside is None:
                raise CheckpointNotFound(
                    f"no node of graph '{graph.name}' runs a graph at '{namespace}': it was written by another version"
                )
            graph = inside
        return cls(executor, executor._setup_of(graph), lineage, namespace)

    @property
    def store(self) -> CheckpointStore:
        """Where the rows are."""
        return self.executor.store

    def field(self, name: str) -> Field:
        """A field of the state that is stored. Raises UsageError."""
        fields = self.setup.graph.schema.fields
        if name not in fields:
            raise UsageError(f"the state has no field '{name}': {alternatives(name, fields)}")
        if fields[name].transient:
            raise UsageError(f"field '{name}' is transient: no row tells of it")
        return fields[name]

    async def written(self, seq: int) -> Written:
        """A row with the one before it; of an end row that was written with its step it is the step's. Raises
        CheckpointNotFound."""
        row = await _row(self.store, self.lineage, self.namespace, seq)
        if row is None:
            raise CheckpointNotFound(
                f"checkpoint '{checkpoint_id(self.lineage, self.namespace, seq)}' isn't stored: it was pruned, or the "
                f"run doesn't save each step"
            )
        before = None if row.parent is None else await _row(self.store, self.lineage, self.namespace, row.parent)
        if before is not None and with_end(before, row):
            return await self.written(before.seq)
        return Written(self.lineage, self.namespace, row, before, row.root == row.seq and row.pointer is None)

    async def loaded(self, seq: int) -> Loaded:
        """A row with its state, lists in the order they are stored in. Raises CheckpointNotFound."""
        found = await load_row(self.store, self.setup, self.lineage, self.namespace, seq)
        if found is None:
            raise CheckpointNotFound(f"no checkpoint '{checkpoint_id(self.lineage, self.namespace, seq)}'")
        return found

    async def frame(self, seq: int) -> Frame:
        """The frame as it stood at a row. Raises CheckpointNotFound."""
        return await load_frame(self.setup, self.executor._still(self.lineage), self.namespace, await self.loaded(seq))

    def history(self, seq: int) -> AsyncIterator[Written]:
        """The rows that lead to one, oldest first, those that it was forked from included."""
        return history_of(self.store, self.lineage, self.namespace, seq)


class _Segment(NamedTuple):
    """Rows of a frame that follow each other. `begins`: their lists build on no other row's."""

    lineage: str
    namespace: str
    first: int
    last: int
    begins: bool


async def history_of(store: CheckpointStore, lineage: str, namespace: str, seq: int) -> AsyncIterator[Written]:
    """The rows that lead to a row, oldest first: before a fork those of the lineage it was made from, as long as they
    are there. Raises CheckpointNotFound."""
    before: Row | None = None
    for segment in reversed(await _segments(store, lineage, namespace, seq)):
        frame = segment.lineage, segment.namespace
        start = True
        async for row in rows_between(store, *frame, segment.first, segment.last):
            follows = start or (before is not None and row.parent == before.seq)
            yield Written(*frame, row, before if follows else None, segment.begins and start)
            before, start = row, False


async def _segments(store: CheckpointStore, lineage: str, namespace: str, seq: int) -> list[_Segment]:
    """The segments that lead to a row, newest first."""
    segments: list[_Segment] = []
    known: dict[tuple[str, str], dict[int, Header]] = {}
    place: tuple[str, str, int] | None = (lineage, namespace, seq)
    while place is not None:
        frame, last = place[:2], place[2]
        if frame not in known:
            known[frame] = {header.seq: header for header in await store.history(*frame)}
        headers = known[frame]
        row = await _row(store, *frame, last)
        if row is None:
            if segments:
                break
            raise CheckpointNotFound(f"no checkpoint '{checkpoint_id(lineage, namespace, seq)}'")
        first = await _row(store, *frame, min(other for other in headers if row.root <= other <= last))
        assert first is not None
        segments.append(_Segment(*frame, first.seq, last, first.pointer is None))
        place = await _before(store, *frame, first, headers)
    return segments


async def _before(
    store: CheckpointStore, lineage: str, namespace: str, row: Row, headers: Mapping[int, Header]
) -> tuple[str, str, int] | None:
    """Where the row comes from that begins a segment."""
    if row.pointer is not None:
        return lineage, namespace, row.pointer
    if row.parent is not None:
        return (lineage, namespace, row.parent) if row.parent in headers else None
    origin = row.note.get("from") if isinstance(row.note, dict) else None
    if origin is None:
        return None
    try:
        return await place_of(store, origin)
    except CheckpointNotFound:
        return None


async def _row(store: CheckpointStore, lineage: str, namespace: str, seq: int) -> Row | None:
    async for row in rows_between(store, lineage, namespace, seq, seq):
        return row
    return None
