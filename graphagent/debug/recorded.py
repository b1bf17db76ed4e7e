"""What a run has recorded of one activation, and how another result compares with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from graphagent.debug.rows import Rows
from graphagent.debug.writes import WrittenPart, writes_at
from graphagent.engine.merge import list_delta
from graphagent.graph.fields import Field
from graphagent.graph.reducers import any_of, same
from graphagent.graph.schema import StateSchema
from graphagent.ids import checkpoint_id
from graphagent.unset import UNSET

Verdict = Literal["same", "differs", "unknown"]
"""`unknown`: the row doesn't tell what the activation's part was."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """`checkpoint`: the row that the activation ended with, or the one in which it was due if its step is still open.
    `fields`: what it wrote."""

    checkpoint: str
    fields: Mapping[str, WrittenPart]


async def recorded_end(rows: Rows, seq: int, activation: str) -> Recorded | None:
    """What is recorded of an activation that was due at a row; None if it has not ended, as far as rows tell."""
    headers = await rows.store.history(rows.lineage, rows.namespace)
    here = {seq}
    for header in reversed(headers):
        if header.parent not in here or header.source in ("fork", "edit", "input"):
            continue
        here.add(header.seq)
        if header.source != "step":
            continue
        for write in await writes_at(rows, header.seq):
            if write.activation == activation:
                return Recorded(header.id, write.fields)
        if rows.executor.engine != "eager":
            return None
    return await _held(rows, seq, activation)


async def _held(rows: Rows, seq: int, activation: str) -> Recorded | None:
    """What is kept of an activation that has ended while others of its step have not."""
    frame = await rows.frame(seq)
    for position, outcome in frame.held.items():
        if frame.activation_id(position) == activation:
            fields = frame.graph.schema.fields
            parts = {name: _part(fields[name], frame.values, update) for name, update in outcome.update.items()}
            return Recorded(checkpoint_id(rows.lineage, rows.namespace, seq), parts)
    return None


def compared(
    schema: StateSchema, before: Mapping[str, Any], update: Mapping[str, Any], recorded: Recorded
) -> dict[str, Verdict]:
    """How each field that an update or the record writes compares. `before`: the state that both started from."""
    found: dict[str, Verdict] = {}
    for name in schema.names:
        field = schema.fields[name]
        if field.transient or (name not in update and name not in recorded.fields):
            continue
        mine = _part(field, before, update[name]) if name in update else WrittenPart("unknown")
        found[name] = _verdict(field, before.get(name, UNSET), mine, recorded.fields.get(name), name in update)
    return found


def _verdict(field: Field, old: Any, mine: WrittenPart, theirs: WrittenPart | None, written: bool) -> Verdict:
    if theirs is None:  # a write that changed nothing leaves no trace in a row that is a snapshot
        nothing = mine.value in ([], {}) if mine.kind != "value" else same(mine.value, old)
        return "same" if nothing else "differs"
    if theirs.kind == "unknown":
        return "unknown"
    if not written:
        return "same" if theirs.kind != "value" and not theirs.value else "differs"
    if theirs.kind == "keys" and mine.kind == "keys":
        if mine.value.keys() != theirs.value.keys():
            return "differs"
        known = [key for key, value in theirs.value.items() if value is not UNSET]
        if all(same(mine.value[key], theirs.value[key]) for key in known):
            return "same" if len(known) == len(theirs.value) else "unknown"
        return "differs"
    return "same" if mine.kind == theirs.kind and same(mine.value, theirs.value) else "differs"


def _part(field: Field, before: Mapping[str, Any], update: Any) -> WrittenPart:
    """What an update alone would make of a field."""
    old = before.get(field.name, UNSET)
    if field.form == "patch":
        return WrittenPart("keys", dict(update))
    if field.reducer is any_of:
        return WrittenPart("value", update)
    new = field.apply(old, update)
    if field.form == "list":
        change = list_delta(old, new)
        if change is None or not (change.put or change.drop):
            return WrittenPart("items", [] if change is None else change.items)
        return WrittenPart("value", list(new))
    return WrittenPart("value", new)
