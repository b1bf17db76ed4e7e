"""Values of undeclared type (Any, object, a bare `list`) as plain data and back, without loss of class or value.

Plain data is None, bool, int, float, str, list, dict with str keys. What JSON has no form for is a dict with the
single key "$": `{"$": [tag, payload]}`; a dict that has a key "$" itself is written under the tag "dict". Classes are
taken exactly: a subclass of a builtin is refused, since it would come back as its base. Tags are a closed table; no
stored text ever names a class to load. That two places share one object is not kept.

`graphagent.checkpoint.plans` makes codecs for declared types.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

from graphagent.checkpoint.containers import (
    TAG,
    decode_items,
    decode_mapping,
    decode_pairs,
    encode_items,
    encode_mapping,
    encode_pairs,
    encode_unordered,
)
from graphagent.checkpoint.part import ATOMS, FORMS, Part
from graphagent.checkpoint.plain_json import dumps, loads
from graphagent.checkpoint.refusal import MAX_DEPTH, Refused, not_plain, not_stored_as
from graphagent.checkpoint.scalars import SCALARS, Scalar
from graphagent.errors import alternatives

__all__ = ["ANY", "decode_any", "dumps", "encode_any", "loads"]


def encode_any(value: Any, path: str) -> Any:
    """Plain data of `value`, which stands at `path` of the state (such as `state.items`).

    The plain data may share objects with the value: write it before the value can change. Raises EncodeError, with the
    path of the culprit inside the value, for a class that isn't in the table, a value that contains itself and one
    nested deeper than `refusal.MAX_DEPTH`.
    """
    try:
        return _encode(value, MAX_DEPTH)
    except Refused as refused:
        raise refused.encode_error(path) from refused.__cause__


def decode_any(plain: Any, path: str = "") -> Any:
    """The value that `encode_any` was given: equal, of the same classes, sets and mappings in stored order.

    The value may share objects with `plain`. Raises DecodeError if `plain` is none of its making.
    """
    try:
        return _decode(plain)
    except Refused as refused:
        raise refused.decode_error(path) from refused.__cause__


def _encode(value: Any, room: int) -> Any:
    kind = type(value)
    if kind in ATOMS:
        return value
    encode = _ENCODERS.get(kind)
    if encode is None:
        raise not_plain(value)
    return encode(value, room)


def _decode(plain: Any) -> Any:
    kind = type(plain)
    if kind is dict:
        return _decode_tagged(plain) if TAG in plain else decode_mapping(plain, ANY, ANY, "Any")
    if kind is list:
        return decode_items(plain, ANY, "Any")
    if kind in ATOMS:
        return plain
    raise not_stored_as(plain, "Any")


def _decode_tagged(plain: dict[str, Any]) -> Any:
    match plain:
        case {"$": [str(tag), payload]} if len(plain) == 1:
            decode = _DECODERS.get(tag)
            if decode is None:
                raise Refused(
                    f"stored tag '{tag}' is unknown ({alternatives(tag, _DECODERS)}); "
                    "the row was written by a newer graphagent or is damaged"
                )
            try:
                return decode(payload)
            except (TypeError, ValueError) as error:  # no `[maxlen, items]`, or an element without a hash
                raise not_stored_as(plain, tag) from error
    raise not_stored_as(plain, "Any")


ANY = Part("Any", _encode, _decode, classes=None, forms=FORMS, exact=ATOMS, open=True)
"""The part of values of undeclared type."""


def _tag(tag: str, encode: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    return lambda value, room: {TAG: [tag, encode(value, room)]}


def _scalar(scalar: Scalar) -> Callable[[Any, int], Any]:
    return _tag(scalar.tag, lambda value, _room: scalar.encode(value))


def _list(value: list[Any], room: int) -> Any:
    return encode_items(value, ANY, room)


def _dict(value: dict[Any, Any], room: int) -> Any:
    return encode_mapping(value, ANY, ANY, room)


def _set(value: Any, room: int) -> Any:
    return encode_unordered(value, ANY, room)


def _deque(value: deque[Any], room: int) -> Any:
    return [value.maxlen, encode_items(value, ANY, room)]


def _pairs(value: Any, room: int) -> Any:
    return encode_pairs(value, ANY, ANY, room)


def _items(payload: Any) -> list[Any]:
    return decode_items(payload, ANY, "Any")


def _entries(payload: Any) -> dict[Any, Any]:
    return decode_pairs(payload, ANY, ANY, "Any")


def _build_deque(payload: Any) -> deque[Any]:
    maxlen, items = payload
    return deque(_items(items), maxlen)


_ENCODERS: dict[type, Callable[[Any, int], Any]] = {
    list: _list,
    dict: _dict,
    tuple: _tag("tuple", _list),
    set: _tag("set", _set),
    frozenset: _tag("frozenset", _set),
    deque: _tag("deque", _deque),
    OrderedDict: _tag("ordereddict", _pairs),
    Counter: _tag("counter", _pairs),
}
_ENCODERS.update({scalar.cls: _scalar(scalar) for scalar in SCALARS.values()})

_DECODERS: dict[str, Callable[[Any], Any]] = {
    "dict": _entries,
    "tuple": lambda payload: tuple(_items(payload)),
    "set": lambda payload: set(_items(payload)),
    "frozenset": lambda payload: frozenset(_items(payload)),
    "deque": _build_deque,
    "ordereddict": lambda payload: OrderedDict(_entries(payload)),
    "counter": lambda payload: Counter(_entries(payload)),
}
_DECODERS.update({scalar.tag: scalar.decode for scalar in SCALARS.values()})
