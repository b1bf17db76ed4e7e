"""Parts of dataclasses and NamedTuples."""

from __future__ import annotations

import dataclasses
import inspect
from operator import attrgetter
from types import MemberDescriptorType
from typing import Any, get_origin

from graphagent.checkpoint.annotations import Unreadable, field_hints, type_name
from graphagent.checkpoint.codec import ANY
from graphagent.checkpoint.part import Part
from graphagent.checkpoint.part_fields import (
    Default,
    Field,
    PartOf,
    decode_fields,
    encode_fields,
    hidden_slots,
    reader,
    refuse_stray,
)
from graphagent.checkpoint.refusal import Refused, not_declared, not_stored_as


def dataclass_part(hint: Any, part_of: PartOf) -> Part:
    """A dataclass of the standard library or of pydantic, fields outside of `__init__` included.

    Open: pydantic takes an instance as it is, so its fields may hold anything.
    """
    cls = get_origin(hint) or hint
    hints = _resolved(hint)
    fields = tuple(
        Field(field.name, part_of(hints[field.name]), _dataclass_default(field)) for field in dataclasses.fields(cls)
    )
    label, names = type_name(hint), [field.name for field in fields]
    read = reader(attrgetter, names)
    in_dict = sum(not isinstance(inspect.getattr_static(cls, name, None), MemberDescriptorType) for name in names)
    hidden = hidden_slots(cls, names)
    has_dict = cls.__dictoffset__ != 0

    def encode(value: Any, room: int) -> Any:
        if type(value) is not cls:
            raise not_declared(value, label)
        if hidden or (has_dict and len(value.__dict__) != in_dict):
            refuse_stray(value, names, hidden)
        try:
            values = read(value)
        except AttributeError as error:
            raise Refused(f"field '{error.name}' of '{label}' is not set; set it or give it a default") from error
        return encode_fields(value, fields, values, room)

    def decode(plain: Any) -> Any:
        if type(plain) is not dict:
            raise not_stored_as(plain, label)
        values = decode_fields(fields, plain, label)
        made = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(made, name, value)  # also where the class is frozen
        return made

    return Part(label, encode, decode, frozenset({cls}), frozenset({dict}), open=True)


def _resolved(hint: Any) -> dict[str, Any]:
    """The annotations of a dataclass; pydantic keeps those it resolved, also where the module alone doesn't suffice."""
    try:
        return field_hints(hint)
    except Unreadable:
        known = getattr(hint, "__pydantic_fields__", {})
        if not known:
            raise
        return {name: info.annotation for name, info in known.items()}


def _dataclass_default(field: dataclasses.Field[Any]) -> Default | None:
    if field.default is not dataclasses.MISSING:
        return lambda _: field.default
    factory = field.default_factory
    return None if factory is dataclasses.MISSING else lambda _: factory()


def namedtuple_part(hint: Any, part_of: PartOf) -> Part:
    """A NamedTuple, by field name; one of `collections.namedtuple` has fields of type Any."""
    cls = get_origin(hint) or hint
    hints = field_hints(hint)
    fields = tuple(
        Field(name, part_of(hints[name]) if name in hints else ANY, _namedtuple_default(cls, name))
        for name in cls._fields
    )
    label = type_name(hint)

    def encode(value: Any, room: int) -> Any:
        if type(value) is not cls:
            raise not_declared(value, label)
        refuse_stray(value, ())
        return encode_fields(value, fields, value, room)

    def decode(plain: Any) -> Any:
        if type(plain) is not dict:
            raise not_stored_as(plain, label)
        return tuple.__new__(cls, decode_fields(fields, plain, label).values())

    return Part(label, encode, decode, frozenset({cls}), frozenset({dict}), open=any(f.part.open for f in fields))


def _namedtuple_default(cls: Any, name: str) -> Default | None:
    defaults = cls._field_defaults
    return (lambda _: defaults[name]) if name in defaults else None
