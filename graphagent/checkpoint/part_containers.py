"""Parts of containers with declared elements."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, get_origin

from graphagent.checkpoint.containers import (
    decode_items,
    decode_mapping,
    encode_items,
    encode_mapping,
    encode_unordered,
)
from graphagent.checkpoint.part import Part
from graphagent.checkpoint.refusal import Refused, not_declared, not_stored_as, too_deep

_ARRAY = frozenset({list})
_OBJECT = frozenset({dict})

_FACTORIES = (list, dict, set, frozenset, tuple, deque, str, int, float, bool)
"""What a `defaultdict` may make: the class of its declared values, so that no factory has to be stored."""


def items_part(cls: Any, item: Part) -> Part:
    """`list[T]`, `tuple[T, ...]`, `set[T]` and `frozenset[T]` as a JSON array; sets in a fixed order."""
    walk = encode_unordered if cls in (set, frozenset) else encode_items
    label = f"{cls.__name__}[{item.label}{', ...' if cls is tuple else ''}]"

    def encode(value: Any, room: int) -> Any:
        if type(value) is not cls:
            raise not_declared(value, label)
        return walk(value, item, room)

    def decode(plain: Any) -> Any:
        items = decode_items(plain, item, label)
        try:
            return items if cls is list else cls(items)
        except TypeError as error:  # an element of a set without a hash
            raise not_stored_as(plain, label) from error

    return Part(label, encode, decode, classes=frozenset({cls}), forms=_ARRAY, open=item.open)


def deque_part(item: Part) -> Part:
    """`deque[T]` as `[maxlen, items]`."""
    label = f"deque[{item.label}]"

    def encode(value: Any, room: int) -> Any:
        if type(value) is not deque:
            raise not_declared(value, label)
        return [value.maxlen, encode_items(value, item, room)]

    def decode(plain: Any) -> Any:
        match plain:
            case [int() | None as maxlen, list(items)]:
                return deque(decode_items(items, item, label), maxlen)
        raise not_stored_as(plain, label)

    return Part(label, encode, decode, classes=frozenset({deque}), forms=_ARRAY, open=item.open)


def tuple_part(items: tuple[Part, ...]) -> Part:
    """`tuple[A, B]`: a part for each place."""
    label = f"tuple[{', '.join(item.label for item in items) or '()'}]"

    def encode(value: Any, room: int) -> Any:
        if type(value) is not tuple:
            raise not_declared(value, label)
        if len(value) != len(items):
            raise Refused(f"it has {len(value)} items, the declared '{label}' has {len(items)}")
        if room <= 0:
            raise too_deep()
        return _by_place(value, items, lambda item, part: part.encode(item, room - 1))

    def decode(plain: Any) -> Any:
        if type(plain) is not list or len(plain) != len(items):
            raise not_stored_as(plain, label)
        return tuple(_by_place(plain, items, lambda item, part: part.decode(item)))

    return Part(label, encode, decode, frozenset({tuple}), _ARRAY, open=any(item.open for item in items))


def _by_place(values: Any, parts: tuple[Part, ...], turn: Callable[[Any, Part], Any]) -> list[Any]:
    made: list[Any] = []
    try:
        for value, part in zip(values, parts, strict=True):
            made.append(turn(value, part))
    except Refused as refused:
        refused.within(values, f"[{len(made)}]")
        raise
    return made


def mapping_part(cls: Any, keys: Part, values: Part) -> Part:
    """`dict[K, V]`, `OrderedDict[K, V]` and `Counter[K]` as a JSON object, in their order."""
    label = f"{cls.__name__}[{keys.label}, {values.label}]"

    def encode(value: Any, room: int) -> Any:
        if type(value) is not cls:
            raise not_declared(value, label)
        return encode_mapping(value, keys, values, room)

    def decode(plain: Any) -> Any:
        entries = decode_mapping(plain, keys, values, label)
        return entries if cls is dict else cls(entries)

    return Part(label, encode, decode, frozenset({cls}), _OBJECT, open=keys.open or values.open)


def defaultdict_part(keys: Part, values: Part, declared: Any) -> Part:
    """`defaultdict[K, V]` whose factory is V's own class, such as `list` for `defaultdict[str, list[int]]`."""
    label = f"defaultdict[{keys.label}, {values.label}]"
    factory = get_origin(declared) or declared
    factory = factory if factory in _FACTORIES else None

    def encode(value: Any, room: int) -> Any:
        if type(value) is not defaultdict:
            raise not_declared(value, label)
        if factory is None or value.default_factory is not factory:
            wanted = f"'{factory.__name__}'" if factory else "a builtin class, declared as the type of the values"
            raise Refused(f"the default factory of a '{label}' isn't stored, so it must be {wanted}; or use a 'dict'")
        return encode_mapping(value, keys, values, room)

    def decode(plain: Any) -> Any:
        return defaultdict(factory, decode_mapping(plain, keys, values, label))

    return Part(label, encode, decode, frozenset({defaultdict}), _OBJECT, open=True)
