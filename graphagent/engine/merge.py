"""Merge: the checked updates of a step, in graph order, become the new state and the delta that a checkpoint stores.

Pure: no clock, no I/O, nothing awaited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import is_
from typing import Any, NamedTuple

from pydantic import ValidationError

from graphagent.checkpoint.record import ListDelta
from graphagent.errors import GraphAgentError, ReducerError, WriteConflict
from graphagent.graph.fields import Field
from graphagent.graph.reducers import append
from graphagent.graph.schema import StateSchema
from graphagent.unset import UNSET

Write = tuple[str, Mapping[str, Any]]
"""Who wrote (a node id), and its checked update."""


Entry = tuple[str, Any, int]
"""A write of one field: who wrote, the update, which of the writers that was."""


class Merged(NamedTuple):
    """The state after a step, and what a checkpoint stores of the change (transient fields left out). `entries`: where
    several wrote, the writes by field."""

    state: dict[str, Any]
    values: Mapping[str, Any] = {}
    patches: Mapping[str, Mapping[Any, Any]] = {}
    lists: Mapping[str, ListDelta] = {}
    entries: Mapping[str, list[Entry]] = {}


def merge_writes(schema: StateSchema, state: dict[str, Any], writes: Sequence[Write]) -> Merged:
    """Apply the updates of one step to `state`, which is left as it is.

    Raises WriteConflict when two writers meet on a field with room for one, ReducerError when a reducer raises.
    """
    if len(writes) == 1:
        who, update = writes[0]
        if not update:
            return Merged(state)
        if schema.assign is None:
            return _merge_one(schema, state, who, update)
    gathered: dict[str, list[Entry]] = {}
    for position, (who, update) in enumerate(writes):
        for name, value in update.items():
            gathered.setdefault(name, []).append((who, value, position))
    if not gathered:
        return Merged(state)
    changes: dict[str, Any] = {}
    for name, entries in gathered.items():
        field = schema.fields[name]
        if len(entries) > 1 and field.writers != "many":
            _check_writers(field, entries)
        changes[name] = _reduced(field, state.get(name, UNSET), entries)
    after = _assigned(schema, state, changes, writes) if schema.assign else {**state, **changes}
    merged = delta_between(schema, state, after, gathered)
    return merged._replace(entries=gathered) if len(writes) > 1 else merged


def _merge_one(schema: StateSchema, state: dict[str, Any], who: str, update: Mapping[str, Any]) -> Merged:
    """One writer, no validators of the class: the way that nearly every step takes."""
    after = state.copy()
    values: dict[str, Any] = {}
    patches: dict[str, Mapping[Any, Any]] = {}
    lists: dict[str, ListDelta] = {}
    for name, value in update.items():
        field = schema.fields[name]
        if field.replaced:
            after[name] = value
            if not field.transient:
                values[name] = value
            continue
        old = state.get(name, UNSET)
        new = after[name] = _apply(field, old, value, who)
        if field.transient:
            continue
        if field.form == "value":
            values[name] = new
        elif field.form == "patch":
            patches[name] = value
        elif field.reducer is append and (value or old is UNSET):
            lists[name] = ListDelta(value if type(value) is list else list(value))
        elif field.form == "list" and (change := list_delta(old, new)) is not None:
            lists[name] = change
    return Merged(after, values, patches, lists)


def writers_of(schema: StateSchema, state: Mapping[str, Any], merged: Merged) -> dict[str, Any]:
    """Who wrote which part of what a step of several activations changed, as plain data by field; transient ones left
    out.

    A position where one activation alone wrote the field. Else runs of positions that follow each other: `[first,
    positions, count]` where each of them added as many items, or new entries of a mapping, in this order; `[first,
    positions]` where it can't be told apart. For entries that were there before: `[position, [keys]]`.
    """
    found: dict[str, Any] = {}
    for name, entries in merged.entries.items():
        field = schema.fields[name]
        if field.transient:
            continue
        if len(entries) == 1:
            found[name] = entries[0][2]
            continue
        told: list[Any] | None = None
        if field.form == "list":
            change = merged.lists.get(name)
            told = [] if change is None else _items_by(field, entries, change)
        elif field.form == "patch":
            told = _entries_by(entries, state.get(name, {}), merged.state[name])
        if told is None:
            told = _runs([position for _, _, position in entries], None)
        if told:
            found[name] = told
    return found


def _items_by(field: Field, entries: list[Entry], change: ListDelta) -> list[Any] | None:
    """How many of the added items each activation has brought; None if other items were changed too."""
    if change.put or change.drop:
        return None
    positions = [position for _, _, position in entries]
    if field.reducer is append:
        counts = [len(update) for _, update, _ in entries]
    elif field.container in (set, frozenset):
        first: dict[Any, int] = {}
        for _, update, position in entries:
            for item in update:
                first.setdefault(item, position)
        positions = [first[item] for item in change.items if item in first]
        counts = [1] * len(positions)
    else:  # of equal ones the first was added, and it is that very object
        counts, items, place = [], change.items, 0
        for _, update, _ in entries:
            start = place
            for item in update:
                if place < len(items) and items[place] is item:
                    place += 1
            counts.append(place - start)
    return _runs(positions, counts) if sum(counts) == len(change.items) else None


def _entries_by(entries: list[Entry], old: Any, new: Any) -> list[Any] | None:
    """How many entries of a mapping each activation has added, or which it has set; None if that can't be told."""
    counts = [len(patch) for _, patch, _ in entries]
    if sum(counts) == len(new) - len(old):
        return _runs([position for _, _, position in entries], counts)
    keys: list[tuple[int, list[Any]]] = [(position, list(patch)) for _, patch, position in entries if patch]
    if not all(type(key) in (str, int) for _, listed in keys for key in listed):
        return None
    return [[position, listed] for position, listed in keys]


def _runs(positions: list[int], counts: list[int] | None) -> list[Any]:
    """Positions that follow each other with the same count, as one; those with none are left out."""
    runs: list[list[int]] = []
    end, last = -1, -1
    for position, count in zip(positions, counts or repeat(1), strict=False):
        if not count:
            continue
        if position == end and count == last:
            runs[-1][1] += 1
        elif counts is None:
            runs.append([position, 1])
        else:
            runs.append([position, 1, count])
        end, last = position + 1, count
    return runs


def delta_between(
    schema: StateSchema,
    before: Mapping[str, Any],
    after: dict[str, Any],
    gathered: Mapping[str, list[Entry]] | None = None,
) -> Merged:
    """What a checkpoint stores to get from one state to another; `gathered` has the updates where they are known."""
    values: dict[str, Any] = {}
    patches: dict[str, Mapping[Any, Any]] = {}
    lists: dict[str, ListDelta] = {}
    for name, new in after.items():
        old = before.get(name, UNSET)
        field = schema.fields[name]
        if field.transient or (new is old and not (gathered and name in gathered and field.form == "value")):
            continue
        if field.form == "list":
            change = list_delta(old, new)
            if change is not None:
                lists[name] = change
        elif field.form == "patch" and gathered and name in gathered and old is not UNSET:
            patches[name] = {key: new[key] for _, patch, _ in gathered[name] for key in patch}
        else:
            values[name] = new
    return Merged(after, values, patches, lists)


def list_delta(old: Any, new: Any) -> ListDelta | None:
    """How a list-like value changed; None if it didn't. Items are told apart by identity, then by equality."""
    if old is UNSET:
        return ListDelta(list(new))
    if isinstance(new, set | frozenset):
        if old <= new:
            extra = new - old
            return ListDelta(sorted(extra, key=repr)) if extra else None
        return ListDelta(sorted(new, key=repr), drop=tuple(range(len(old))))
    size = len(old)
    if len(new) >= size and all(map(is_, old, new)):
        return ListDelta(list(new[size:])) if len(new) > size else None
    return _edit(list(old), list(new))


def _edit(old: list[Any], new: list[Any]) -> ListDelta | None:
    """Replaced and dropped items where the order of the kept ones shows them, else the whole list anew."""
    if len(old) <= len(new):
        put = tuple((i, new[i]) for i, item in enumerate(old) if new[i] is not item and new[i] != item)
        if len(put) <= len(old) // 2 + 1:
            change = ListDelta(new[len(old) :], put=put)
            return change if put or change.items else None
    kept = 0
    drop = []
    for i, item in enumerate(old):
        if kept < len(new) and (new[kept] is item or new[kept] == item):
            kept += 1
        else:
            drop.append(i)
    return ListDelta(new[kept:], drop=tuple(drop))


def _check_writers(field: Field, entries: list[Entry]) -> None:
    if field.writers == "agree" and all(value == entries[0][1] for _, value, _ in entries[1:]):
        return
    names = " and ".join(f"'{who}'" for who in dict.fromkeys(who for who, _, _ in entries))
    shown = "" if field.secret else ": " + ", ".join(f"{value!r:.40}" for _, value, _ in entries[:4])
    why = "writers must agree" if field.writers == "agree" else "it has room for one writer a step"
    raise WriteConflict(
        f"{names} write field '{field.name}' in one step, and {why}{shown}; "
        f"give the field a merge rule such as Annotated[..., append], or write it in one node",
        field=field.name,
        node=entries[-1][0],
    )


def _reduced(field: Field, old: Any, entries: list[Entry]) -> Any:
    if field.reducer is append:  # one concatenation, however many writers
        first = entries[0][1]
        items = [item for _, update, _ in entries for item in update]
        joined = items if type(first) is list else type(first)(items)
        return joined if old is UNSET else old + joined
    for who, update, _ in entries:
        old = _apply(field, old, update, who)
    return old


def _apply(field: Field, old: Any, update: Any, who: str) -> Any:
    try:
        return field.apply(old, update)
    except GraphAgentError:
        raise
    except Exception as error:
        raise ReducerError(
            f"the merge rule '{field.reducer.name}' of field '{field.name}' failed on the update of '{who}': "
            f"{type(error).__name__}: {error}",
            field=field.name,
            node=who,
        ) from error


def _assigned(
    schema: StateSchema, state: dict[str, Any], changes: Mapping[str, Any], writes: Sequence[Write]
) -> dict[str, Any]:
    assert schema.assign is not None
    try:
        return schema.assign(state, changes)
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        name = str(place[0]) if place and place[0] in schema.fields else next(iter(changes))
        who = next((who for who, update in reversed(writes) if name in update), writes[-1][0])
        raise schema.invalid(schema.fields[name], error, f"node '{who}'", update=False) from error
