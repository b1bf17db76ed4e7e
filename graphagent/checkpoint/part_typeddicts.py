"""Parts of TypedDicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NotRequired, Required, get_origin

from graphagent.checkpoint.annotations import field_hints, type_name
from graphagent.checkpoint.codec import ANY
from graphagent.checkpoint.containers import TAG
from graphagent.checkpoint.part import Part
from graphagent.checkpoint.part_fields import PartOf
from graphagent.checkpoint.refusal import Refused, not_declared, not_stored_as, shown, too_deep
from graphagent.errors import alternatives


def typeddict_part(hint: Any, part_of: PartOf, *, partial: bool = False) -> Part:
    """A TypedDict; with `partial`, any of its keys may be missing.

    Keys that it doesn't declare are refused, unless its pydantic config allows extras: those are stored as Any.
    """
    cls = get_origin(hint) or hint
    hints = field_hints(hint)
    keys = _Keys(
        type_name(hint),
        {name: part_of(kind) for name, kind in hints.items()},
        () if partial else tuple(name for name, kind in hints.items() if _is_required(cls, name, kind)),
        getattr(cls, "__pydantic_config__", {}).get("extra") == "allow",
    )

    def encode(value: Any, room: int) -> Any:
        if type(value) is not dict:
            raise not_declared(value, keys.label)
        if room <= 0:
            raise too_deep()
        return keys.walk(value, lambda part, item: part.encode(item, room - 1))

    def decode(plain: Any) -> Any:
        if type(plain) is not dict:
            raise not_stored_as(plain, keys.label)
        return keys.walk(plain, lambda part, item: part.decode(item))

    opened = keys.extras or any(part.open for part in keys.parts.values())
    return Part(keys.label, encode, decode, frozenset({dict}), frozenset({dict}), open=opened)


def _is_required(cls: Any, name: str, kind: Any) -> bool:
    # __required_keys__ misses qualifiers that are written as text (`from __future__ import annotations`)
    return get_origin(kind) is Required or (name in cls.__required_keys__ and get_origin(kind) is not NotRequired)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys of a TypedDict; `extras` tells whether others are allowed."""

    label: str
    parts: dict[str, Part]
    required: tuple[str, ...]
    extras: bool

    def walk(self, found: dict[Any, Any], turn: Callable[[Part, Any], Any]) -> dict[str, Any]:
        """Every item turned by the part of its key. Raises Refused, with `['key']` as the step."""
        made = {}
        name = None
        try:
            for name in self.required:
                if name not in found:
                    raise Refused(f"'{self.label}' requires the key; add it or declare it 'NotRequired'")
            for name, item in found.items():
                part = self._part(name)
                made[name] = item if type(item) in part.exact else turn(part, item)
        except Refused as refused:
            refused.within(found, f"[{shown(name)}]")
            raise
        return made

    def _part(self, name: Any) -> Part:
        part = self.parts.get(name)
        if part is None and (not self.extras or type(name) is not str or name == TAG):
            raise Refused(f"'{self.label}' declares no such key ({alternatives(str(name), self.parts)}); declare it")
        return part or ANY
