"""Walks over containers: items to a JSON array, mappings to a JSON object, each element by its part.

Most containers hold only values that are stored as themselves; one test in C over the classes of all elements
then replaces the walk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from graphagent.checkpoint.part import Part
from graphagent.checkpoint.plain_json import plain_text
from graphagent.checkpoint.refusal import Refused, not_stored_as, shown, too_deep

TAG = "$"
"""The key that sets a tagged value apart from a plain object: `{"$": [tag, payload]}`."""

_TEXT = frozenset({str})


def encode_items(items: Collection[Any], part: Part, room: int) -> list[Any]:
    """Plain data of each item, in order. Raises Refused, with `[i]` as the step."""
    exact = part.exact
    if exact.issuperset(map(type, items)):
        return items if type(items) is list else list(items)
    if room <= 0:
        raise too_deep()
    plain: list[Any] = []
    try:
        for item in items:
            plain.append(item if type(item) in exact else part.encode(item, room - 1))
    except Refused as refused:
        refused.within(items, f"[{len(plain)}]")
        raise
    return plain


def encode_unordered(items: Collection[Any], part: Part, room: int) -> list[Any]:
    """Plain data of each element of a set, sorted by JSON text: the order of a set differs from process to process."""
    if room <= 0:
        raise too_deep()
    plain = []
    for item in items:
        try:
            plain.append(item if type(item) in part.exact else part.encode(item, room - 1))
        except Refused as refused:
            refused.within(items, f"{{{shown(item)}}}")
            raise
    return sorted(plain, key=plain_text)


def decode_items(plain: Any, part: Part, label: str) -> list[Any]:
    """The items of a JSON array. Raises Refused."""
    if type(plain) is not list:
        raise not_stored_as(plain, label)
    exact = part.exact
    if exact.issuperset(map(type, plain)):
        return plain
    items: list[Any] = []
    try:
        for item in plain:
            items.append(item if type(item) in exact else part.decode(item))
    except Refused as refused:
        refused.within(plain, f"[{len(items)}]")
        raise
    return items


def encode_mapping(mapping: Mapping[Any, Any], keys: Part, values: Part, room: int) -> dict[str, Any]:
    """A JSON object if every key is stored as text other than `"$"`, else `{"$": ["dict", [[key, value], ...]]}`.

    Raises Refused, with `[key]` as the step.
    """
    if (
        values.exact.issuperset(map(type, mapping.values()))
        and _TEXT.issuperset(map(type, mapping))
        and str in keys.exact
        and TAG not in mapping
    ):
        return mapping if type(mapping) is dict else dict(mapping)
    if room <= 0:
        raise too_deep()
    exact, encode = values.exact, values.encode
    plain: dict[str, Any] = {}
    pairs: list[Any] | None = None
    key = None
    try:
        for key, item in mapping.items():
            name = key if type(key) in keys.exact else keys.encode(key, room - 1)
            stored = item if type(item) in exact else encode(item, room - 1)
            if pairs is None and (type(name) is not str or name == TAG):
                pairs = [[text, before] for text, before in plain.items()]
            if pairs is None:
                plain[name] = stored
            else:
                pairs.append([name, stored])
    except Refused as refused:
        refused.within(mapping, f"[{shown(key)}]")
        raise
    return plain if pairs is None else {TAG: ["dict", pairs]}


def decode_mapping(plain: Any, keys: Part, values: Part, label: str) -> dict[Any, Any]:
    """The mapping of what `encode_mapping` made. Raises Refused."""
    if type(plain) is not dict:
        raise not_stored_as(plain, label)
    if TAG in plain:
        return decode_pairs(tagged(plain, "dict", label), keys, values, label)
    if str in keys.exact and values.exact.issuperset(map(type, plain.values())):
        return plain
    return decode_pairs(plain.items(), keys, values, label)


def encode_pairs(mapping: Mapping[Any, Any], keys: Part, values: Part, room: int) -> list[Any]:
    """Every entry as `[key, value]`. Raises Refused."""
    plain = encode_mapping(mapping, keys, values, room)
    return plain[TAG][1] if TAG in plain else [[key, item] for key, item in plain.items()]


def decode_pairs(pairs: Iterable[Any], keys: Part, values: Part, label: str) -> dict[Any, Any]:
    """The mapping with these entries, in order. Raises Refused."""
    exact, decode = values.exact, values.decode
    mapping: dict[Any, Any] = {}
    name = None
    try:
        for name, stored in pairs:
            key = name if type(name) in keys.exact else keys.decode(name)
            mapping[key] = stored if type(stored) in exact else decode(stored)
    except Refused as refused:
        refused.within(pairs, f"[{shown(name)}]")
        raise
    except (TypeError, ValueError) as error:  # no pairs, or a key without a hash
        raise not_stored_as(pairs, label) from error
    return mapping


def tagged(plain: dict[str, Any], tag: str, label: str) -> Any:
    """The payload of `{"$": [tag, payload]}`. Raises Refused for any other shape or tag."""
    match plain:
        case {"$": [str(found), payload]} if found == tag and len(plain) == 1:
            return payload
    raise not_stored_as(plain, label)
