"""A state as a tree with what changed marked, and a value with a part of it replaced. Plain values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from graphagent.unset import UNSET

Mark = Literal["same", "added", "removed", "changed"]
Path = tuple[str | int, ...]
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a value. `path`: where it is, or was if it is gone; `before`, `after`: UNSET where there is none."""

    path: Path
    before: Any
    after: Any

    @property
    def mark(self) -> Mark:
        """What became of it."""
        if self.before is UNSET:
            return "added"
        if self.after is UNSET:
            return "removed"
        return "same" if self.before is self.after or alike(self.before, self.after) else "changed"

    @property
    def value(self) -> Any:
        """What it is, or was."""
        return self.before if self.after is UNSET else self.after

    @property
    def has_parts(self) -> bool:
        """Whether there is something inside."""
        return isinstance(self.value, dict | list) and bool(self.value)


def plain(value: Any) -> Any:
    """A value as plain data; secrets are hidden, as their class shows them."""
    if value is UNSET:
        return UNSET
    return to_jsonable_python(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings")


def alike(one: Any, other: Any) -> bool:
    """Whether two plain values are the same in JSON: True is not 1."""
    if one != other:
        return False
    if isinstance(one, list):
        return all(map(alike, one, other))
    if isinstance(one, dict):
        return all(alike(value, other[name]) for name, value in one.items())
    return type(one) is type(other)


def parts(item: Item) -> list[Item]:
    """What is inside a part, each with what became of it."""
    value = item.value
    before = item.before if type(item.before) is type(value) else type(value)()
    now = type(value)() if item.after is UNSET else value
    if isinstance(value, dict):
        names = [*now, *(name for name in before if name not in now)]
        return [Item((*item.path, str(name)), before.get(name, UNSET), now.get(name, UNSET)) for name in names]
    return list(_items(item.path, before, now)) if isinstance(value, list) else []


def _items(path: Path, before: Sequence[Any], after: Sequence[Any]) -> Iterator[Item]:
    """The items of two lists: what both begin and end with is the same, and what is between is matched by its order."""
    shortest = min(len(before), len(after))
    head = next((i for i in range(shortest) if not alike(before[i], after[i])), shortest)
    tail = next((i for i in range(shortest - head) if not alike(before[-1 - i], after[-1 - i])), shortest - head)
    old, new = len(before) - tail, len(after) - tail
    for i in range(head):
        yield Item((*path, i), before[i], after[i])
    for i in range(head, max(old, new)):
        yield Item((*path, i), before[i] if i < old else UNSET, after[i] if i < new else UNSET)
    for i in range(tail):
        yield Item((*path, new + i), before[old + i], after[new + i])


def preview(value: Any, longest: int = _LONGEST) -> str:
    """A value in a line."""
    if value is UNSET:
        return "unset"
    if isinstance(value, list | dict) and value:
        text = json.dumps(value, ensure_ascii=False) if _is_small(value) else ""
        if text and len(text) <= longest:
            return text
        what = ("item", "items") if isinstance(value, list) else ("entry", "entries")
        return f"{len(value):,} {what[len(value) != 1]}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"


def _is_small(value: Any, room: int = 40) -> bool:
    """Whether a value has few parts, so that it is worth writing out to see whether it fits a line."""
    left, stack = room, [value]
    while stack and left:
        one = stack.pop()
        left -= 1
        if isinstance(one, list | dict):
            stack += one if isinstance(one, list) else one.values()
        elif isinstance(one, str) and len(one) > _LONGEST:
            return False
    return not stack


def replaced(value: Any, path: Path, new: Any) -> Any:
    """A copy of a plain value with another one at a path; only what is on the way is copied. Raises LookupError."""
    if not path:
        return new
    name, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {**value, str(name): replaced(value[str(name)] if rest else None, rest, new)}
    if isinstance(value, list):
        place = int(name)
        return [*value[:place], replaced(value[place], rest, new), *value[place + 1 :]]
    raise LookupError(f"there is nothing at {path!r}")
