"""Where the value of a field came from: which activation wrote which part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from graphagent.debug.moment import Moment
from graphagent.debug.rows import UNKNOWN, Rows, Written
from graphagent.engine.executor import Executor
from graphagent.errors import LoadError
from graphagent.graph.fields import Field
from graphagent.graph.reducers import same
from graphagent.unset import UNSET


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a field's value, and who wrote it as it is now.

    `what`: `value`, `items[a:b]` or `key K`; `key` is that key, `span` these bounds. `checkpoint`: the row in which it
    came, also of another lineage that this one was forked from. `activation`: the id of the activation, several with
    commas between them where the merge rule made one value of what they wrote; or `input` (or the default that the run
    began with), `edit`, `fork` (a copy of a row that is gone), `unknown` (see `graphagent.debug.rows.UNKNOWN`).
    """

    what: str
    checkpoint: str
    activation: str
    value: Any
    key: Any = UNSET
    span: tuple[int, int] | None = None


async def provenance(executor: Executor, moment: Moment, field: str) -> list[Part]:
    """The parts of a field's value at a moment, in its order; put together they are the value. Empty if it is unset.

    Items of append-like fields and entries of mappings have a writer each. Of any other field the last one that wrote
    it stands: what a merge rule such as `add` took over from the value before isn't looked into. No state but that of
    the moment is loaded. Raises UsageError for a field that isn't there or isn't stored, CheckpointNotFound.
    """
    rows = await Rows.of(executor, moment)
    declared = rows.field(field)
    value = (await rows.loaded(moment.seq)).values.get(field, UNSET)
    if value is UNSET:
        return []
    trail = {"list": _Items, "patch": _Entries}.get(declared.form, _Value)(rows, declared)
    async for written in rows.history(moment.seq):
        trail.take(written)
    return trail.parts(value)


class _Owner(NamedTuple):
    """Who wrote something, and in which row."""

    checkpoint: str
    activation: str


class _Trail:
    """Goes through the rows with one field in view."""

    def __init__(self, rows: Rows, field: Field) -> None:
        self.rows = rows
        self.field = field
        former = {old for migration in rows.setup.graph.definition.migrations for old, new in migration.fields.items()
                  if new == field.name}  # fmt: skip
        self.names = (field.name, *sorted(former))

    def found_in(self, changes: Mapping[str, Any]) -> Any:
        """What a row has of the field, under whatever name it had then; UNSET if nothing."""
        return next((changes[name] for name in self.names if name in changes), UNSET)

    def owner(self, written: Written, positions: list[int] | None) -> _Owner:
        """The owner of what a row changed. `positions`: of the activations; None: the row doesn't tell."""
        source = written.row.source
        if source in ("input", "edit", "fork"):
            return _Owner(written.checkpoint, source)
        if not positions:
            return _Owner(written.checkpoint, UNKNOWN)
        return _Owner(written.checkpoint, ", ".join(written.activation(position) for position in positions))

    def owner_of_all(self, written: Written) -> _Owner:
        """The owner of a change as a whole."""
        shares = next((found for name in self.names if (found := written.shares(name))), None)
        return self.owner(written, None if shares is None else [share.position for share in shares])

    def is_migrated(self, written: Written) -> bool:
        """True for a row in which the state is only written anew, in other types."""
        return isinstance(written.row.note, dict) and "migrated" in written.row.note and written.row.source != "input"

    def take(self, written: Written) -> None:
        """Take account of a row."""
        raise NotImplementedError

    def parts(self, value: Any) -> list[Part]:
        """The parts of the value that the last row leads to."""
        raise NotImplementedError


class _Value(_Trail):
    """A field that is replaced as a whole."""

    value: Any = UNSET
    wrote: _Owner = _Owner("", UNKNOWN)

    def take(self, written: Written) -> None:
        new = self.found_in(written.row.values)
        if new is UNSET:
            return
        anew = not written.is_snapshot or self.field.name in written.by
        kept = self.is_migrated(written) and self.value is not UNSET
        if not kept and (anew or not same(self.value, new)):
            self.wrote = self.owner_of_all(written)
        self.value = new

    def parts(self, value: Any) -> list[Part]:
        return [Part("value", *self.wrote, value)]


class _Entries(_Trail):
    """A mapping, entry by entry."""

    def __init__(self, rows: Rows, field: Field) -> None:
        super().__init__(rows, field)
        self.entries: dict[Any, tuple[Any, _Owner]] = {}

    def take(self, written: Written) -> None:
        whole, patch = self.found_in(written.row.values), self.found_in(written.row.patches)
        if whole is UNSET and patch is UNSET:
            return
        found = self._decoded(patch if whole is UNSET else whole)
        if found is None:
            self.entries = {}
            return
        changed = found if whole is UNSET else self._differing(found)
        if self.is_migrated(written) and self.entries.keys() == found.keys():
            changed = {}
        owners = self._owners(written, list(changed))
        if whole is not UNSET:
            self.entries = {key: self.entries[key] for key in found if key in self.entries}
        for key, value in changed.items():
            self.entries[key] = (value, owners[key])

    def _decoded(self, plain: Any) -> Mapping[Any, Any] | None:
        if not self.rows.store.persistent:
            entries: Mapping[Any, Any] = plain
            return entries
        try:
            decoded: Mapping[Any, Any] = self.rows.setup.codec.decode_part(self.field.name, plain)
        except LoadError:
            return None
        return decoded

    def _differing(self, found: Mapping[Any, Any]) -> dict[Any, Any]:
        """The entries that are new, or other than before."""
        known = self.entries
        return {key: value for key, value in found.items() if key not in known or not same(known[key][0], value)}

    def _owners(self, written: Written, keys: list[Any]) -> dict[Any, _Owner]:
        shares = written.shares(self.field.name)
        if not shares or len(shares) == 1:
            return dict.fromkeys(keys, self.owner_of_all(written))
        wrote: dict[Any, list[int]] = {}
        if all(share.added is not None for share in shares):
            fresh = [key for key in keys if key not in self.entries]
            if sum(share.added or 0 for share in shares) == len(fresh):
                each = iter(fresh)
                wrote = {next(each): [share.position] for share in shares for _ in range(share.added or 0)}
        elif all(share.keys is not None for share in shares):
            wrote = {key: [share.position] for share in shares for key in share.keys or ()}
        return {key: self.owner(written, wrote.get(key)) for key in keys}

    def parts(self, value: Any) -> list[Part]:
        nobody = _Owner("", UNKNOWN)
        return [
            Part(f"key {key!r}", *self.entries.get(key, (None, nobody))[1], part, key=key)
            for key, part in value.items()
        ]


class _Items(_Trail):
    """A list-like field, item by item."""

    def __init__(self, rows: Rows, field: Field) -> None:
        super().__init__(rows, field)
        self.items: list[Any] = []
        self.owners: list[_Owner] = []

    def take(self, written: Written) -> None:
        whole, change = self.found_in(written.row.values), self.found_in(written.row.lists)
        if whole is not UNSET or written.begins:
            items = list(whole) if whole is not UNSET else [] if change is UNSET else list(change.items)
            self._replace(written, items)
        elif change is not UNSET:
            put, drop = dict(change.put), set(change.drop)
            if put or drop:
                owner = self.owner_of_all(written)
                self.owners = [owner if i in put else one for i, one in enumerate(self.owners) if i not in drop]
            self.items = change.apply(self.items) if put or drop else self.items
            if not (put or drop):
                self.items += change.items
            self.owners += self._added(written, len(change.items))

    def _replace(self, written: Written, items: list[Any]) -> None:
        """The whole list anew: what it begins with as before was there."""
        if self.is_migrated(written) and len(items) == len(self.items):
            self.items = items
            return
        kept = 0
        for old, new in zip(self.items, items, strict=False):
            if not same(old, new):
                break
            kept += 1
        added = self._added(written, len(items) - kept) if kept == len(self.items) else None
        owner = self.owner_of_all(written)
        self.owners = [*self.owners[:kept], *(added or [owner] * (len(items) - kept))]
        self.items = items

    def _added(self, written: Written, count: int) -> list[_Owner]:
        """Who has added so many items."""
        shares = written.shares(self.field.name)
        if shares and all(share.added is not None for share in shares):
            if sum(share.added or 0 for share in shares) == count:
                return [self.owner(written, [s.position]) for s in shares for _ in range(s.added or 0)]
            return [_Owner(written.checkpoint, UNKNOWN)] * count
        return [self.owner_of_all(written)] * count

    def parts(self, value: Any) -> list[Part]:
        items = list(value)
        if len(self.owners) != len(items):
            return [Part(f"items[0:{len(items)}]", "", UNKNOWN, value, span=(0, len(items)))] if items else []
        found = []
        start = 0
        for end in range(1, len(items) + 1):
            if end == len(items) or self.owners[end] != self.owners[start]:
                found.append(Part(f"items[{start}:{end}]", *self.owners[start], items[start:end], span=(start, end)))
                start = end
        return found
