"""What each activation of a stored step wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphagent.debug.moment import Moment
from graphagent.debug.rows import Rows, Share, Written
from graphagent.engine.executor import Executor
from graphagent.engine.merge import list_delta
from graphagent.errors import LoadError
from graphagent.graph.fields import Field
from graphagent.graph.reducers import any_of, latest, same
from graphagent.unset import UNSET

PartKind = Literal["value", "items", "keys", "unknown"]


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """What an activation made of a field, in terms of the state after the step.

    `value`: the field's new value. `items`: what was added to a list, or to a set. `keys`: a mapping's new entries; the
    value of one that another activation has set after it is UNSET. `unknown`: it wrote the field, or may have, and the
    row doesn't tell its part from that of the others; `value` is None.
    """

    kind: PartKind
    value: Any = None


@dataclass(frozen=True, slots=True)
class NodeWrite:
    """What one activation of a step wrote; `fields` is empty for one that wrote nothing that is stored."""

    activation: str
    node: str
    fields: Mapping[str, WrittenPart]


async def writes_of(executor: Executor, moment: Moment) -> list[NodeWrite]:
    """The writes of the step that led to a moment, by its activations in graph order; empty where no step did.

    Of a row that is a snapshot, what was written anew with the value it had before isn't seen. Where one row stands
    for several steps, or the row before it was pruned, all parts are `unknown`. Raises CheckpointNotFound.
    """
    return await writes_at(await Rows.of(executor, moment), moment.seq)


async def writes_at(rows: Rows, seq: int) -> list[NodeWrite]:
    """The writes of the step that wrote a row (see `writes_of`)."""
    written = await rows.written(seq)
    row = written.row
    if row.source != "step" or not row.nodes:
        return []
    after = (await rows.loaded(row.seq)).values
    before: Mapping[str, Any] = {}
    if written.before is not None:
        before = (await rows.loaded(written.before.seq)).values
    positions: Sequence[int] = range(len(row.nodes))
    note = row.note or {}
    if written.is_one_step and len(row.nodes) == 1:
        positions = [note["done"] if "done" in note else -1 if note.get("landing") else 0]
    fields: dict[int, dict[str, WrittenPart]] = {position: {} for position in positions}
    for name in _changed(rows, written, before, after):
        shares = written.shares(name)
        for position in positions if shares is None else ():
            fields[position][name] = WrittenPart("unknown")
        change = _Change(rows.field(name), before.get(name, UNSET), after.get(name, UNSET))
        for share, part in change.parts(_keys(rows, written, name), shares or ()):
            fields.setdefault(share.position, {})[name] = part
    if not written.is_one_step:
        names = [f"{node}#{row.step}" for node in row.nodes]
    else:
        names = [written.activation(position) for position in positions]
    return [
        NodeWrite(name, row.nodes[place], fields[position])
        for place, (position, name) in enumerate(zip(positions, names, strict=True))
    ]


def _changed(rows: Rows, written: Written, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The fields that a step wrote, in order of declaration."""
    row, schema = written.row, rows.setup.graph.schema
    by: Mapping[str, Any] = (row.note or {}).get("by", {})
    patched = [name for name, patch in row.patches.items() if patch]
    named = {*row.lists, *patched, *by, *(() if written.is_snapshot else row.values)}
    return [
        name
        for name in schema.names
        if name in schema.persistent and (name in named or not same(before.get(name, UNSET), after.get(name, UNSET)))
    ]


def _keys(rows: Rows, written: Written, name: str) -> list[Any] | None:
    """The keys of the entries that a step set, None if the row doesn't list them."""
    patch = written.row.patches.get(name)
    if patch is None:
        return None
    try:
        return list(rows.setup.codec.decode_part(name, patch) if rows.store.persistent else patch)
    except LoadError:
        return None


class _Change:
    """A field before and after a step."""

    def __init__(self, field: Field, old: Any, new: Any) -> None:
        self.field = field
        self.old = old
        self.new = new

    def parts(self, keys: Sequence[Any] | None, shares: Sequence[Share]) -> Iterator[tuple[Share, WrittenPart]]:
        """The part of each share. `keys`: of the entries that were set, where they are known."""
        if self.new is UNSET:
            return
        if len(shares) == 1 and shares[0].added is None and shares[0].keys is None:
            yield shares[0], self._alone(keys)
        elif self.field.form == "list":
            yield from self._items(shares)
        elif self.field.form == "patch":
            yield from self._entries(shares)
        else:
            for share in shares:
                agreed = self.field.reducer is any_of or (self.field.reducer is latest and share is shares[-1])
                yield share, WrittenPart("value", self.new) if agreed else WrittenPart("unknown")

    def _alone(self, keys: Sequence[Any] | None) -> WrittenPart:
        old, new = self.old, self.new
        if self.field.form == "list":
            change = list_delta(UNSET if old is UNSET else list(old), list(new))
            if change is None or not (change.put or change.drop):
                return WrittenPart("items", [] if change is None else change.items)
        elif self.field.form == "patch":
            known = {} if old is UNSET else old
            if keys is None:
                keys = [key for key, value in new.items() if key not in known or not same(known[key], value)]
            return WrittenPart("keys", {key: new[key] for key in keys if key in new})
        return WrittenPart("value", new)

    def _items(self, shares: Sequence[Share]) -> Iterator[tuple[Share, WrittenPart]]:
        start = 0 if self.old is UNSET else len(self.old)
        added = list(self.new)[start:]
        counts = [share.added or 0 for share in shares]
        if sum(counts) != len(added):
            yield from ((share, WrittenPart("unknown")) for share in shares)
            return
        found: dict[int, list[Any]] = {}
        end = 0
        for share, count in zip(shares, counts, strict=True):
            found.setdefault(share.position, []).extend(added[end : end + count])
            end += count
        yield from ((Share(position), WrittenPart("items", items)) for position, items in found.items())

    def _entries(self, shares: Sequence[Share]) -> Iterator[tuple[Share, WrittenPart]]:
        """New entries follow each other in the order of those who wrote them."""
        new = self.new
        added = list(new)[0 if self.old is UNSET else len(self.old) :]
        keys: list[Sequence[Any]] = []
        end = 0
        for share in shares:
            keys.append(share.keys if share.keys is not None else added[end : end + (share.added or 0)])
            end += share.added or 0
        if end not in (0, len(added)) or any(share.added is None and share.keys is None for share in shares):
            yield from ((share, WrittenPart("unknown")) for share in shares)
            return
        last = {key: share.position for share, listed in zip(shares, keys, strict=True) for key in listed}
        for share, listed in zip(shares, keys, strict=True):
            mine = {key: new.get(key, UNSET) if last[key] == share.position else UNSET for key in listed}
            yield share, WrittenPart("keys", mine)
