"""The walk over the named fields of a record, for all kinds of records.

A record is a JSON object by field name, so fields may be reordered. Loading never calls a constructor, a validator or
`__post_init__`: they ran when the value was made, and running them again could change it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import MemberDescriptorType
from typing import Any, NamedTuple

from graphagent.checkpoint.part import Part
from graphagent.checkpoint.refusal import Refused, too_deep
from graphagent.errors import alternatives

PartOf = Callable[[Any], Part]
"""The part of an annotation: how a record asks for the parts of its fields."""

Default = Callable[[dict[str, Any]], Any]
"""The value of a field that isn't stored, from the fields before it."""


class Field(NamedTuple):
    """A declared field. Without `default` it must be in the stored data."""

    name: str
    part: Part
    default: Default | None = None


def encode_fields(owner: Any, fields: Sequence[Field], values: Sequence[Any], room: int) -> dict[str, Any]:
    """Plain data of the values of `fields`. Raises Refused, with `.name` as the step."""
    if room <= 0:
        raise too_deep()
    plain: dict[str, Any] = {}
    name = ""
    try:
        for (name, part, _), value in zip(fields, values, strict=True):
            plain[name] = value if type(value) in part.exact else part.encode(value, room - 1)
    except Refused as refused:
        refused.within(owner, f".{name}")
        raise
    return plain


def decode_fields(fields: Sequence[Field], plain: Mapping[str, Any], label: str) -> dict[str, Any]:
    """The values of `fields` by name, defaults for those that are not stored.

    Raises Refused for a field without default that isn't stored, and for stored data that no field takes.
    """
    values: dict[str, Any] = {}
    missing = 0
    name = ""
    try:
        for name, part, default in fields:
            if name in plain:
                stored = plain[name]
                values[name] = stored if type(stored) in part.exact else part.decode(stored)
            elif default is not None:
                values[name] = default(values)
                missing += 1
            else:
                raise Refused(f"'{label}' declares the field, the stored data has none; give the field a default")
    except Refused as refused:
        refused.within(plain, f".{name}")
        raise
    if len(fields) - missing < len(plain):
        refuse_unknown(plain, [field.name for field in fields], label)
    return values


def decode_field(part: Part, plain: Mapping[str, Any], name: str) -> Any:
    """One value. Raises Refused, with `.name` as the step."""
    stored = plain[name]
    try:
        return stored if type(stored) in part.exact else part.decode(stored)
    except Refused as refused:
        refused.within(plain, f".{name}")
        raise


def refuse_unknown(plain: Mapping[str, Any], names: Collection[str], label: str) -> None:
    """Raises Refused for the first stored name that isn't one of `names`."""
    name = next(name for name in plain if name not in names)
    refused = Refused(
        f"'{label}' declares no field '{name}' ({alternatives(name, names)}); declare it or migrate the data"
    )
    refused.within(plain, f".{name}")
    raise refused


def reader(getter: Callable[..., Callable[[Any], Any]], names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """A function that reads all names at once with `attrgetter` or `itemgetter`, always as a sequence."""
    if len(names) > 1:
        return getter(*names)
    if not names:
        return lambda _: ()
    read = getter(names[0])
    return lambda value: (read(value),)


def hidden_slots(cls: type, names: Collection[str]) -> tuple[str, ...]:
    """Slots of a class that are no fields."""
    slots = [
        name for base in cls.__mro__ for name, item in vars(base).items() if isinstance(item, MemberDescriptorType)
    ]
    return tuple(name for name in slots if name not in names)


def refuse_stray(owner: object, names: Collection[str], hidden: Sequence[str] = ()) -> None:
    """Raises Refused for an attribute of `owner` that is no field; cached properties are worked out anew."""
    cls = type(owner)
    for name in (*getattr(owner, "__dict__", ()), *(slot for slot in hidden if hasattr(owner, slot))):
        if name not in names and not isinstance(inspect.getattr_static(cls, name, None), cached_property):
            refused = Refused(
                f"'{cls.__name__}' declares no field '{name}', so it would be lost; declare it as a field"
            )
            refused.within(owner, f".{name}")
            raise refused
