"""How the state of a row comes from the rows it builds on.

Folding works alike on values (memory store) and on their plain data (SQL stores): nothing here looks into a value,
except that a patch is merged into a mapping, and how is the caller's to say.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from graphagent.checkpoint.record import ListDelta


class Change(NamedTuple):
    """What one row changed, apart from lists: fields with a new value, and patches of mappings."""

    values: Mapping[str, Any]
    patches: Mapping[str, Mapping[Any, Any]]


def merge_mapping(old: Any, patch: Any) -> Any:
    """`old` with the entries of `patch` set; both are left as they are. The class of `old` is kept."""
    if type(old) is dict:
        return {**old, **patch}
    new = copy.copy(old)
    for key, value in patch.items():
        new[key] = value
    return new


def fold_values(changes: Iterable[Change], merge: Callable[[Any, Any], Any] = merge_mapping) -> dict[str, Any]:
    """The fields after all changes, the first of which must be complete (a snapshot)."""
    state: dict[str, Any] = {}
    for values, patches in changes:
        state.update(values)
        for name, patch in patches.items():
            state[name] = merge(state[name], patch) if name in state else patch
    return state


def fold_lists(changes: Iterable[Mapping[str, ListDelta]]) -> dict[str, list[Any]]:
    """The append-like fields after all changes, in the order of the rows; the lists are new ones."""
    state: dict[str, list[Any]] = {}
    for change in changes:
        for name, delta in change.items():
            old = state.get(name)
            if old is None:
                state[name] = list(delta.items)
            elif delta.put or delta.drop:
                state[name] = delta.apply(old)
            else:
                old.extend(delta.items)
    return state


def merge_lists(
    changes: Sequence[Mapping[str, ListDelta]], before: Mapping[str, list[Any]] | None
) -> dict[str, ListDelta] | None:
    """One change that does what `changes` do one after the other.

    Changes that only append are joined. For others the lists that they start from are needed: None is returned if
    `before` is None, and the caller comes again with it.
    """
    if not any(delta.put or delta.drop for change in changes for delta in change.values()):
        return {name: ListDelta(items) for name, items in fold_lists(changes).items()}
    if before is None:
        return None
    after = fold_lists([{name: ListDelta(items) for name, items in before.items()}, *changes])
    changed = {name for change in changes for name in change}
    return {name: _difference(before.get(name, []), items) for name, items in after.items() if name in changed}


def _difference(old: list[Any], new: list[Any]) -> ListDelta:
    """A delta from one list to another: what both begin with stays, the rest is dropped and written anew.

    Items count as equal only if they are one object: equality of values (`1 == True`) would mix up types.
    """
    shared = 0
    while shared < min(len(old), len(new)) and old[shared] is new[shared]:
        shared += 1
    return ListDelta(new[shared:], drop=tuple(range(shared, len(old))))
