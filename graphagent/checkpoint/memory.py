"""Checkpoints in memory: nothing is encoded, nothing outlives the process."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphagent.checkpoint.finding import Extent, RunInfo, RunQuery, is_root_frame, page_of, told, verdict_on
from graphagent.checkpoint.fold import Change, fold_lists, fold_values, merge_lists
from graphagent.checkpoint.lease import check_name, lease_lost, lineage_busy, no_such_row, row_exists
from graphagent.checkpoint.record import (
    ActivationRow,
    EffectRow,
    Header,
    ListDelta,
    Loaded,
    PruneReport,
    Retention,
    Row,
)
from graphagent.checkpoint.retention import Gap, RowFacts, bases_to_keep, gaps, origins_of, rows_to_keep
from graphagent.checkpoint.store import Lease, PartCodec, Signal, matching
from graphagent.ids import fresh_id


@dataclass(slots=True)
class _Frame:
    """Rows in the order of their seq; `seqs` and `listed` (rows with list changes) are sorted."""

    rows: dict[int, Row] = field(default_factory=dict)
    seqs: list[int] = field(default_factory=list)
    listed: list[int] = field(default_factory=list)
    pinned: set[int] = field(default_factory=set)
    activations: dict[int, dict[int, ActivationRow]] = field(default_factory=dict)
    effects: dict[int, dict[tuple[int, str, int], EffectRow]] = field(default_factory=dict)

    def between(self, first: int, last: int) -> Iterator[Row]:
        """The rows from `first` to `last`, both included, that are there."""
        seqs = self.seqs
        for place in range(bisect_left(seqs, first), bisect_right(seqs, last)):
            yield self.rows[seqs[place]]

    def folded(self, row: Row) -> list[Row]:
        """The rows that the values of `row` are folded from; the first is a snapshot."""
        return [row] if row.snap == row.seq else list(self.between(row.snap, row.seq))

    def lists(self, row: Row) -> dict[str, list[Any]]:
        """The append-like fields at `row`: along the pointers to where their history begins."""
        changes: list[list[Mapping[str, ListDelta]]] = []
        end: Row | None = row
        while end is not None:
            listed = self.listed
            places = range(bisect_left(listed, end.root), bisect_right(listed, end.seq))
            changes.append([self.rows[listed[place]].lists for place in places])
            pointer = next(self.between(end.root, end.seq)).pointer
            end = None if pointer is None else self.rows[pointer]
        return fold_lists(change for segment in reversed(changes) for change in segment)

    def remove(self, seqs: Sequence[int]) -> None:
        gone = set(seqs)
        for seq in seqs:
            del self.rows[seq]
        self.seqs = [seq for seq in self.seqs if seq not in gone]
        self.listed = [seq for seq in self.listed if seq not in gone]


@dataclass(slots=True)
class _Holder:
    lease: Lease
    since: float
    frames: dict[str, _Frame] = field(default_factory=dict)  # those it has written to


class MemoryCheckpoints:
    """A checkpoint store for one process: rows keep the delta values themselves, so saving costs microseconds.

    Values are shared with the run, not copied: state is read-only to nodes, and reducers copy on write. Bounds in
    bytes (`Retention.max_bytes`) never apply, since nothing is encoded. `life` is its own: a lineage that another
    process had under the same name is another one, and keys for other systems have to say so.
    """

    persistent = False
    remote = False
    instant = True  # its methods never wait for anything, so there is nothing to shield from a cancellation

    def __init__(self) -> None:
        self.life = fresh_id()
        self._frames: dict[str, dict[str, _Frame]] = {}
        self._holders: dict[str, _Holder] = {}
        self._graphs: dict[str, Mapping[str, Any]] = {}
        self._token = 0

    async def acquire(self, lineage: str, run_id: str, *, on_signal: Callable[[Signal], None] | None = None) -> Lease:
        """Take the lineage for one run. Raises LineageBusy while another run holds it."""
        check_name("lineage", lineage)
        holder = self._holders.get(lineage)
        if holder is not None:
            raise lineage_busy(lineage, holder.lease.run_id, holder.since, "in this process")
        self._token += 1
        lease = Lease(lineage, self._token, run_id, on_signal)
        self._holders[lineage] = _Holder(lease, time.time())
        return lease

    async def release(self, lease: Lease) -> None:
        """Give the lineage back; harmless if it was lost."""
        if self._holds(lease):
            del self._holders[lease.lineage]

    async def request_cancel(self, lineage: str) -> bool:
        """Ask the owner to cancel its run; False if nobody holds the lineage."""
        holder = self._holders.get(lineage)
        if holder is None:
            return False
        if holder.lease.on_signal is not None:
            holder.lease.on_signal("cancel")
        return True

    def _holds(self, lease: Lease) -> bool:
        holder = self._holders.get(lease.lineage)
        return holder is not None and holder.lease.token == lease.token

    def _writable(self, lease: Lease, namespace: str) -> _Frame:
        """The frame to write to, made if need be. Raises LeaseLost."""
        holder = self._holders.get(lease.lineage)
        if holder is None or holder.lease.token != lease.token:
            lease.lost = True
            raise lease_lost(lease.lineage, lease.run_id)
        frame = holder.frames.get(namespace)
        if frame is None:
            check_name("namespace", namespace)
            frames = self._frames.setdefault(lease.lineage, {})
            frame = holder.frames[namespace] = frames.setdefault(namespace, _Frame())
        return frame

    def _readable(self, lineage: str, namespace: str) -> _Frame:
        return self._frames.get(lineage, {}).get(namespace) or _Frame()

    async def append(
        self,
        lease: Lease,
        namespace: str,
        rows: Sequence[Row],
        codec: PartCodec,
        *,
        closes: int | None = None,
        release: bool = False,
    ) -> int:
        """Keep rows of one frame as they are; returns 0, since nothing is encoded."""
        frame = self._writable(lease, namespace)
        seqs = frame.seqs
        newest = seqs[-1] if seqs else -1
        for row in rows:
            if row.seq <= newest:
                raise row_exists(lease.lineage, namespace, row.seq)
            newest = row.seq
        for row in rows:
            frame.rows[row.seq] = row
            seqs.append(row.seq)
            if row.lists:
                frame.listed.append(row.seq)
        if closes is not None and closes in frame.activations:
            after = frame.between(closes, newest)
            if not any(row.source == "interrupt" and row.base == closes for row in after):
                del frame.activations[closes]
        if release:
            await self.release(lease)
        return 0

    async def put_activations(
        self, lease: Lease, namespace: str, base: int, done: Sequence[ActivationRow], codec: PartCodec
    ) -> None:
        """Keep finished activations of the open step that started from row `base`."""
        kept = self._writable(lease, namespace).activations.setdefault(base, {})
        kept.update((row.position, row) for row in done)

    async def activations(
        self, lineage: str, namespace: str, base: int, codec: PartCodec | None
    ) -> dict[int, ActivationRow]:
        """The kept activations of an open step, by position."""
        return dict(sorted(self._readable(lineage, namespace).activations.get(base, {}).items()))

    async def load(
        self, lineage: str, namespace: str = "", seq: int | None = None, codec: PartCodec | None = None
    ) -> Loaded | None:
        """The newest row (or the one with `seq`) with its state; None if there is none."""
        frame = self._readable(lineage, namespace)
        newest = frame.seqs[-1] if frame.seqs else -1
        row = frame.rows.get(newest if seq is None else seq)
        if row is None:
            return None
        folded = frame.folded(row)
        values = fold_values([Change(r.values, r.patches) for r in folded])
        values.update(frame.lists(row))
        bare = replace(row, values={}, patches={}, lists={})
        return Loaded(lineage, namespace, bare, values, newest=row.seq == newest, delta_rows=len(folded) - 1)

    async def history(
        self, lineage: str, namespace: str = "", *, limit: int | None = None, before: int | None = None
    ) -> list[Header]:
        """Headers, newest first; an unknown lineage has none. `before`: only rows with a smaller seq."""
        frame = self._readable(lineage, namespace)
        end = len(frame.seqs) if before is None else bisect_left(frame.seqs, before)
        start = 0 if limit is None else max(0, end - limit)
        return [self._header(lineage, namespace, frame, seq) for seq in reversed(frame.seqs[start:end])]

    async def changes(self, lineage: str, namespace: str, first: int, last: int) -> list[Row]:
        """The rows from `first` to `last` that are there, each with what it changed."""
        return list(self._readable(lineage, namespace).between(first, last))

    @staticmethod
    def _header(lineage: str, namespace: str, frame: _Frame, seq: int) -> Header:
        row = frame.rows[seq]
        return Header(
            lineage=lineage,
            namespace=namespace,
            seq=seq,
            parent=row.parent,
            source=row.source,
            step=row.step,
            nodes=row.nodes,
            created_at=row.created_at,
            run_id=row.run_id,
            fingerprint=row.fingerprint,
            pinned=seq in frame.pinned,
        )

    async def namespaces(self, lineage: str) -> list[str]:
        """The frames of a lineage that have rows, sorted; `""` is the root."""
        return sorted(name for name, frame in self._frames.get(lineage, {}).items() if frame.seqs)

    async def lineages(self, *, prefix: str = "", limit: int | None = None) -> list[str]:
        """Lineages that have rows, sorted."""
        return matching(
            (name for name, frames in self._frames.items() if any(frame.seqs for frame in frames.values())),
            prefix,
            limit,
        )

    async def find_runs(self, query: RunQuery) -> list[RunInfo]:
        """The runs that are wanted, the last written first."""
        found = [
            info
            for lineage, frames in self._frames.items()
            if query.names(lineage)
            and (query.node is None or any(query.node in row.nodes for f in frames.values() for row in f.rows.values()))
            for namespace, frame in frames.items()
            if frame.seqs
            and is_root_frame(namespace)
            and (info := self._run(lineage, namespace, frame, query)) is not None
        ]
        return page_of(found, query)

    def _run(self, lineage: str, namespace: str, frame: _Frame, query: RunQuery) -> RunInfo | None:
        """A run as a list shows it; None if it isn't wanted."""
        row = frame.rows[frame.seqs[-1]]
        if not query.covers(row.created_at):
            return None
        document = self._graphs.get(row.fingerprint)
        held = lineage in self._holders
        verdict = verdict_on(row, held, document)
        if not query.accepts(verdict):
            return None
        nodes = next((frame.rows[seq].nodes for seq in reversed(frame.seqs) if frame.rows[seq].nodes), ())
        extent = Extent(len(frame.seqs), frame.rows[frame.seqs[0]].created_at, nodes)
        return told((lineage, namespace), row, verdict, extent, document, "this process" if held else None)

    async def written_elsewhere(self) -> str | None:
        """None: nobody else can get at these rows."""
        return None

    async def effects(self, lineage: str, namespace: str, base: int) -> list[EffectRow]:
        """The ledger of the activations that started from row `base`, by position, name and ordinal."""
        found = self._readable(lineage, namespace).effects.get(base, {})
        return [found[key] for key in sorted(found)]

    async def claim_effect(self, lease: Lease, namespace: str, effect: EffectRow) -> None:
        """Record that a side effect is about to begin."""
        ledger = self._writable(lease, namespace).effects.setdefault(effect.base, {})
        ledger[(effect.position, effect.name, effect.ordinal)] = effect

    async def commit_effect(self, lease: Lease, namespace: str, effect: EffectRow) -> None:
        """Record the result of a claimed effect."""
        await self.claim_effect(lease, namespace, effect)

    async def save_graph(self, fingerprint: str, document: Mapping[str, Any]) -> None:
        """Keep the canonical document of a graph; harmless if one is there already."""
        check_name("fingerprint", fingerprint)
        self._graphs.setdefault(fingerprint, document)

    async def graph(self, fingerprint: str) -> Mapping[str, Any] | None:
        """The document that was kept of a graph, or None."""
        return self._graphs.get(fingerprint)

    async def pin(self, lineage: str, namespace: str, seq: int, pinned: bool = True) -> None:
        """Protect a row from `prune`, or no longer. Raises CheckpointNotFound."""
        frame = self._readable(lineage, namespace)
        if seq not in frame.rows:
            raise no_such_row(lineage, namespace, seq)
        (frame.pinned.add if pinned else frame.pinned.discard)(seq)

    async def prune(self, policy: Retention, *, lineage: str | None = None, dry_run: bool = False) -> PruneReport:
        """Remove old rows of one or of all lineages; every row that stays loads as before."""
        names = list(self._frames) if lineage is None else [lineage]
        removed = [self._prune_lineage(self._frames.get(name, {}), policy, dry_run) for name in names]
        return PruneReport(rows=sum(removed), bytes=0, lineages=sum(1 for rows in removed if rows))

    def _prune_lineage(self, frames: dict[str, _Frame], policy: Retention, dry_run: bool) -> int:
        facts = {name: _facts(frame) for name, frame in frames.items()}
        keep = rows_to_keep(facts, replace(policy, max_bytes=None), time.time())
        for name, frame in {} if dry_run else frames.items():
            for gap in gaps(facts[name], keep[name]):
                _close_gap(frame, gap)
            bases = bases_to_keep(facts[name], keep[name])
            frame.activations = {base: rows for base, rows in frame.activations.items() if base in bases}
            frame.effects = {base: rows for base, rows in frame.effects.items() if base in bases}
        return sum(len(rows) - len(keep[name]) for name, rows in facts.items())

    async def delete(self, lineage: str) -> int:
        """Remove all of a lineage. Returns the number of rows removed; a run that holds it is told it lost it."""
        frames = self._frames.pop(lineage, {})
        holder = self._holders.pop(lineage, None)
        if holder is not None:
            holder.lease.lost = True
            if holder.lease.on_signal is not None:
                holder.lease.on_signal("lost")
        return sum(len(frame.seqs) for frame in frames.values())

    async def aclose(self) -> None:
        """Nothing to close; the rows stay as long as the store does."""

    async def __aenter__(self) -> MemoryCheckpoints:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def _facts(frame: _Frame) -> list[RowFacts]:
    return (
        [
            RowFacts(
                seq=row.seq,
                parent=row.parent,
                base=row.base,
                snap=row.snap,
                root=row.root,
                pointer=row.pointer,
                created_at=row.created_at,
                size=0,
                changes=bool(row.values or row.patches),
                listed=bool(row.lists),
                pinned=row.seq in frame.pinned,
                asks=tuple(question.frame for question in row.questions if question.frame is not None),
                origins=origins_of(row.marking),
            )
            for row in frame.between(0, frame.seqs[-1])
        ]
        if frame.seqs
        else []
    )


def _close_gap(frame: _Frame, gap: Gap) -> None:
    heir = frame.rows[gap.heir]
    new = replace(heir, root=gap.root, pointer=gap.pointer)
    if gap.snapshot:
        values = fold_values([Change(row.values, row.patches) for row in frame.folded(heir)])
        new = replace(new, snap=heir.seq, values=values, patches={})
    if gap.listed:
        changes = [*(frame.rows[seq].lists for seq in gap.listed), heir.lists]
        merged = merge_lists(changes, None)
        if merged is None:
            merged = merge_lists(changes, {} if gap.before is None else frame.lists(frame.rows[gap.before]))
        new = replace(new, lists=merged or {})
        if not heir.lists:
            insort(frame.listed, heir.seq)
    frame.rows[heir.seq] = new
    frame.remove(gap.seqs)
