"""What the loop writes: rows with what a step changed, finished activations of an open step."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, TypeVar

from graphagent.checkpoint.record import ActivationRow, ListDelta, Question, Row, Source
from graphagent.engine.frame import Frame, Origin
from graphagent.engine.graphs import keep_graphs
from graphagent.engine.marking_codec import encode_marking, overlays_of
from graphagent.engine.merge import Merged, delta_between
from graphagent.engine.outcome import failed, to_row
from graphagent.errors import CheckpointError, EncodeError, SaveError
from graphagent.graph.marking import Marking
from graphagent.patience import at_most

T = TypeVar("T")
SNAPSHOT_AFTER = 128
"""Rows after which a snapshot is written, however small their deltas were."""


async def save_step(
    frame: Frame,
    merged: Merged,
    marking: Marking,
    nodes: tuple[str, ...],
    *,
    note: Any = None,
    end: bool = False,
    closes: int | None = None,
) -> None:
    """The row of a finished step; the last one also writes the `end` row, in the same transaction.

    `closes`: the row that the step started from, if it isn't the frame's base.
    """
    closes = frame.base if closes is None else closes
    frame.seq += 1
    if not frame.setup.save_each_step and not end:
        if frame.tree.durable:
            frame.unsaved_nodes.extend(nodes)
        return
    if frame.store is None or not frame.tree.durable:
        return
    if not frame.setup.save_each_step:
        nodes = (*frame.unsaved_nodes, *nodes)
        merged = _since_saved(frame, merged)
    row = _row(frame, "step", frame.step + 1, marking, merged, nodes, base=frame.seq, note=note)
    rows = [row]
    if end:
        frame.seq += 1
        rows.append(_bare(frame, row, "end"))
    await _append(frame, rows, state=merged.state, closes=closes, release=end and not frame.namespace)


async def save_state(
    frame: Frame,
    source: Source,
    merged: Merged,
    *,
    note: Any = None,
    questions: Sequence[Question] = (),
    pointer: int | None = None,
) -> None:
    """A row that is no step: the input of a turn, an edit, a fork. Activations start from it.

    `pointer`: the row that an edit or fork goes on from, whose lists it takes over.
    """
    frame.seq += 1
    if frame.store is None or (source == "input" and not frame.setup.save_each_step):
        frame.base = frame.seq
        return
    row = _row(frame, source, frame.step, frame.marking, merged, (), base=frame.seq, note=note, questions=questions)
    if pointer is not None:
        row.lists, row.pointer = merged.lists, pointer
    await _append(frame, [row])
    frame.base = frame.seq


async def save_stop(frame: Frame, source: Source, *, note: Any = None, release: bool = False) -> None:
    """An interrupt or error row: the frontier stays, what finished in the open step is kept beside it."""
    if frame.store is None:
        return
    await keep(frame, [position for position in frame.held if position not in frame.kept])
    merged = Merged(frame.values)
    nodes: tuple[str, ...] = ()
    if not frame.setup.save_each_step:
        merged, nodes = _since_saved(frame, merged), tuple(frame.unsaved_nodes)
    frame.seq += 1
    row = _row(
        frame, source, frame.step, frame.marking, merged, nodes, base=frame.base, note=note, questions=frame.questions
    )
    await _append(frame, [row], release=release)


async def save_migrated(frame: Frame, source: Source) -> None:
    """A row that says what was migrated when the frame was loaded: from it on the state is in its new types.

    `source`: that of the row it was loaded from. Frontier, questions and what had finished stay as they were.
    """
    if frame.migrated:
        kind: Source = source if source in ("interrupt", "error") else "edit"
        await save_stop(frame, kind, note=migration_note(frame))


def migration_note(frame: Frame) -> Any:
    """What a row has to say of a migration that no row tells of yet; None if there was none."""
    note = {"migrated": list(frame.migrated)} if frame.migrated else None
    frame.migrated = ()
    return note


async def save_end(frame: Frame) -> None:
    """The end row of a run that had nothing left to run when it began; every other end row goes with its step."""
    if frame.store is None or not frame.tree.durable or frame.ended:
        return
    await save_rest(frame)
    frame.seq += 1
    row = _row(frame, "end", frame.step, frame.marking, Merged(frame.values), (), base=frame.seq)
    await _append(frame, [row], release=not frame.namespace)


async def save_rest(frame: Frame) -> None:
    """With durability `exit`: the steps that no row was written for yet, at whatever end the run came to."""
    if frame.setup.save_each_step or frame.store is None or not frame.tree.durable or frame.head == frame.seq:
        return
    merged, nodes = _since_saved(frame, Merged(frame.values)), tuple(frame.unsaved_nodes)
    row = _row(frame, "step", frame.step, frame.marking, merged, nodes, base=frame.base)
    await _append(frame, [row])


async def keep(frame: Frame, positions: Iterable[int]) -> None:
    """Store finished activations of the open step. One whose result can't be stored becomes a failure."""
    if frame.store is None:
        return
    by_base: dict[int, list[ActivationRow]] = {}
    for position in positions:
        outcome = frame.held[position]
        if outcome.done:
            origin = frame.origin(position)
            row = to_row(frame.graph, origin.position, frame.marking.frontier[position].node, outcome)
            by_base.setdefault(origin.base, []).append(row)
            frame.kept.add(position)
    for base, rows in by_base.items():
        try:
            await _put(frame, base, rows)
        except EncodeError:
            await _keep_singly(frame, base, rows)


async def _put(frame: Frame, base: int, rows: list[ActivationRow]) -> None:
    assert frame.store is not None
    lease = await frame.tree.writer()
    await _bounded(frame, frame.store.put_activations(lease, frame.namespace, base, rows, frame.setup.codec))


async def _keep_singly(frame: Frame, base: int, rows: list[ActivationRow]) -> None:
    place = {(frame.origin(p).base, frame.origin(p).position): p for p in frame.held}
    for row in rows:
        try:
            await _put(frame, base, [row])
        except EncodeError as error:
            frame.held[place[base, row.position]] = failed(named_encode_error(error, row.node))
            frame.kept.discard(place[base, row.position])


def named_encode_error(error: EncodeError, node: str) -> EncodeError:
    """The error with the node that wrote the value."""
    named = EncodeError(
        f"node '{node}' wrote a value that can't be stored: {error}", path=error.path, field=error.field
    )
    named.__cause__ = error
    return named


def _since_saved(frame: Frame, merged: Merged) -> Merged:
    return delta_between(frame.graph.schema, frame.saved or {}, merged.state)


def _row(
    frame: Frame,
    source: Source,
    step: int,
    marking: Marking,
    merged: Merged,
    nodes: tuple[str, ...],
    *,
    base: int,
    note: Any = None,
    questions: Sequence[Question] = (),
) -> Row:
    seq = frame.seq
    values, patches, lists = merged.values, merged.patches, merged.lists
    if frame.fresh:
        values, patches = _full(frame, merged.state), {}
        lists = _full_lists(frame, merged.state)
        frame.snap = frame.root = seq
    elif frame.delta_rows >= SNAPSHOT_AFTER or (frame.delta_size > frame.snap_size and frame.store_persists):
        values, patches = _full(frame, merged.state), {}
        frame.snap = seq
    plain = encode_marking(frame.graph, marking)
    if frame.origins is not None and (source != "step" or frame.setup.engine == "eager"):
        plain = {"m": plain, "o": [_origin(frame, i, origin) for i, origin in enumerate(frame.origins)]}
    return Row(
        seq,
        frame.head,
        source,
        step,
        base,
        frame.snap,
        frame.root,
        plain,
        None,
        nodes,
        values,
        patches,
        lists,
        overlays_of(marking) if type(plain) is not str else {},
        tuple(questions),
        note,
        frame.tree.run_id,
        frame.graph.fingerprint,
        frame.setup.clock.now(),
    )


def _origin(frame: Frame, position: int, origin: Origin) -> list[Any]:
    """Where an activation started from, the newest row then (eager), and the id its node had if that is another now."""
    plain = [origin.base, origin.position, origin.visit, frame.started.get(origin, -1)]
    named = position < len(frame.marking.frontier) and origin.node in frame.graph.index
    return plain if named else [*plain, origin.node]


def _bare(frame: Frame, before: Row, source: Source) -> Row:
    """A row right behind another, with nothing changed."""
    return Row(
        frame.seq,
        before.seq,
        source,
        before.step,
        frame.seq,
        frame.snap,
        frame.root,
        before.marking,
        run_id=before.run_id,
        fingerprint=before.fingerprint,
        created_at=before.created_at,
    )


def _full(frame: Frame, state: dict[str, Any]) -> dict[str, Any]:
    fields = frame.graph.schema.fields
    return {k: v for k, v in state.items() if not fields[k].transient and fields[k].form != "list"}


def _full_lists(frame: Frame, state: dict[str, Any]) -> dict[str, ListDelta]:
    fields = frame.graph.schema.fields
    return {
        k: ListDelta(sorted(v, key=repr) if isinstance(v, set | frozenset) else list(v))
        for k, v in state.items()
        if not fields[k].transient and fields[k].form == "list"
    }


async def _append(
    frame: Frame,
    rows: list[Row],
    *,
    state: dict[str, Any] | None = None,
    closes: int | None = None,
    release: bool = False,
) -> None:
    store, tree, setup = frame.store, frame.tree, frame.setup
    assert store is not None
    if closes is not None and not frame.kept and len(frame.marking.frontier) < 2:
        closes = None  # nothing was kept of this step
    try:
        if setup.debug and tree.durable and not store.persistent:
            for row in rows:  # a test on a store in memory finds what a database would refuse
                setup.codec.check(row)
        lease = tree.lease or await tree.writer()
        if not frame.graph_kept:
            await _bounded(frame, keep_graphs(store, frame.graph))
            frame.graph_kept = True
        write = store.append(lease, frame.namespace, rows, setup.codec, closes=closes, release=release)
        size = await (_bounded(frame, write) if tree.waits else write)
    except CheckpointError:
        frame.seq -= len(rows)
        raise
    except Exception as error:
        frame.seq -= len(rows)
        raise SaveError(
            f"checkpoint {rows[0].seq} of lineage '{frame.lineage}' could not be written: "
            f"{type(error).__name__}: {error}"
        ) from error
    row = rows[0]
    if row.snap == row.seq:
        frame.delta_rows, frame.delta_size, frame.snap_size = 0, 0, size
    else:
        frame.delta_rows += 1
        frame.delta_size += size
    last = rows[-1]
    frame.fresh, frame.ended, frame.head = False, last.source == "end", last.seq
    if release:
        tree.released = True
    if tree.control is not None:
        tree.control.wrote(frame, rows)
    if tree.emitter is not None:
        await tree.emitter.checkpoint(frame, rows)
    if not setup.save_each_step:
        frame.saved = frame.values if state is None else state
        frame.unsaved_nodes.clear()


async def _bounded(frame: Frame, write: Awaitable[T]) -> T:
    """The write, within the time a save may take where the store can be waited for.

    A cancellation of the run takes effect after it: what was done is kept, not half written and done again.
    """
    if not frame.tree.waits:
        return await write
    timeout = frame.setup.limits.save_timeout
    with at_most(timeout, shield=True):
        return await write
    raise SaveError(
        f"a checkpoint of lineage '{frame.lineage}' was not written within {timeout} s (limits.save_timeout)"
    )
