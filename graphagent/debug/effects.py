"""What the ledger says of the activations that are about to run, or run, at a stored moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphagent.checkpoint.record import EffectRow, Unencoded
from graphagent.debug.moment import Moment
from graphagent.debug.rows import Rows
from graphagent.engine.executor import Executor
from graphagent.engine.frame import Frame, Origin


@dataclass(frozen=True, slots=True)
class EffectSeen:
    """A side effect. `ordinal`: which of the activation's under that name. `committed` False: it was begun, and its
    outcome is unknown. `result`: what it came back with, as it is stored; `lost`: why that was not kept. `ended`: the
    activation ended with the moment; else it is about to run, or to run again."""

    activation: str
    name: str
    ordinal: int
    committed: bool
    result: Any = None
    lost: str | None = None
    ended: bool = False


async def effects_of(executor: Executor, moment: Moment) -> list[EffectSeen]:
    """The effects of the activations of the step that led to a moment, then those of its frontier: in graph order, by
    name and ordinal. Raises CheckpointNotFound."""
    rows = await Rows.of(executor, moment)
    written = await rows.written(moment.seq)
    found: list[EffectSeen] = []
    if written.is_one_step and written.before is not None:
        frame = await rows.frame(written.before.seq)
        note = written.row.note or {}
        positions = [note["done"]] if "done" in note else [*range(len(frame.marking.frontier))]
        if note.get("landing"):  # it started from the same row as the frontier, at no place of it
            frame.origins, positions = [Origin(frame.base, -1, written.row.step, written.row.nodes[0])], [0]
        names = [written.activation(position) for position in positions]
        found += await _of(rows, frame, dict(zip(positions, names, strict=True)), ended=True)
    frame = await rows.frame(moment.seq)
    due = {position: frame.activation_id(position) for position in range(len(frame.marking.frontier))}
    return [*found, *await _of(rows, frame, due, ended=False)]


async def _of(rows: Rows, frame: Frame, activations: Mapping[int, str], *, ended: bool) -> list[EffectSeen]:
    """The effects of activations by their places in the frontier of a frame."""
    origins = {position: frame.origin(position) for position in activations}
    ledger: dict[tuple[int, int], list[EffectRow]] = {}
    for base in dict.fromkeys(origin.base for origin in origins.values()):
        for row in await rows.store.effects(rows.lineage, rows.namespace, base):
            ledger.setdefault((base, row.position), []).append(row)
    return [
        seen(activations[position], row, ended=ended)
        for position, origin in origins.items()
        for row in ledger.get((origin.base, origin.position), ())
    ]


def seen(activation: str, row: EffectRow, *, ended: bool = False) -> EffectSeen:
    """An entry of the ledger."""
    kept = row.result
    result: Any = kept.get("value") if isinstance(kept, dict) else kept
    if isinstance(kept, Unencoded):
        result = kept.value
    lost = kept.get("lost") if isinstance(kept, dict) else None
    return EffectSeen(activation, row.name, row.ordinal, row.committed, result, lost, ended)
