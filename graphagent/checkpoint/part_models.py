"""Parts of pydantic models: fields, which of them were set, extras and private attributes.

A model is a JSON object of the fields that were set. All else stands under its key `"$"`: `unset` has the values of the
other fields, `extra` the extra fields, `private` the private attributes, and `set` the names in `model_fields_set`
where they aren't those of the fields and extras that stand outside of `unset`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from graphagent.checkpoint.annotations import Unreadable, field_hints
from graphagent.checkpoint.codec import ANY
from graphagent.checkpoint.containers import TAG
from graphagent.checkpoint.part import Part
from graphagent.checkpoint.part_fields import (
    Default,
    Field,
    PartOf,
    decode_field,
    decode_fields,
    encode_fields,
    hidden_slots,
    reader,
    refuse_stray,
    refuse_unknown,
)
from graphagent.checkpoint.part_scalars import refusing_part
from graphagent.checkpoint.refusal import Refused, not_declared, not_stored_as

_ASIDE: Mapping[str, type] = {"unset": dict, "extra": dict, "private": dict, "set": list}
_NONE: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a model declares; `extra` is None unless it allows extra fields."""

    cls: type[BaseModel]
    fields: tuple[Field, ...]
    names: frozenset[str]
    private: Mapping[str, Part]
    extra: Part | None

    @property
    def label(self) -> str:
        return self.cls.__name__


def model_part(cls: type[BaseModel], part_of: PartOf) -> Part:
    """A pydantic model, restored as it was, without validators.

    Open: pydantic takes an instance as it is, one of a subclass too.
    """
    if not cls.__pydantic_complete__:
        cls.model_rebuild(raise_errors=False)
    if TAG in cls.model_fields:
        return refusing_part(cls.__name__, f"'{cls.__name__}' has a field '{TAG}', a name the codec needs", cls)
    shape = _shape(cls, part_of)
    hidden = hidden_slots(cls, shape.names | {"__dict__", *BaseModel.__slots__})
    fields, names, label = shape.fields, shape.names, shape.label
    read = reader(itemgetter, [field.name for field in fields])

    def encode(value: Any, room: int) -> Any:
        if type(value) is not cls:
            raise not_declared(value, label)
        attributes = value.__dict__
        try:
            values = read(attributes)
        except KeyError as error:
            raise Refused(f"field {error} of '{label}' is not set; set it or give it a default") from error
        if hidden or len(attributes) != len(names):
            refuse_stray(value, names, hidden)
        plain = encode_fields(value, fields, values, room)
        if value.__pydantic_fields_set__ == names and not value.__pydantic_extra__ and not value.__pydantic_private__:
            return plain
        return _with_aside(value, plain, shape, room)

    def decode(plain: Any) -> Any:
        if type(plain) is not dict:
            raise not_stored_as(plain, label)
        return _restore(plain, shape)

    return Part(label, encode, decode, frozenset({cls}), frozenset({dict}), open=True)


def _shape(cls: type[BaseModel], part_of: PartOf) -> _Shape:
    fields = tuple(Field(name, part_of(info.annotation), _default(info)) for name, info in cls.model_fields.items())
    try:
        hints = field_hints(cls)
    except Unreadable:  # pydantic resolves the annotations of fields by itself; private attributes it leaves alone
        hints = {}
    private = {name: part_of(hints.get(name, Any)) for name in cls.__private_attributes__}
    declared = get_args(hints.get("__pydantic_extra__"))
    extra = part_of(declared[1] if len(declared) == 2 else Any) if cls.model_config.get("extra") == "allow" else None
    return _Shape(cls, fields, frozenset(field.name for field in fields), private, extra)


def _default(info: Any) -> Default | None:
    if info.is_required():
        return None
    return lambda values: info.get_default(call_default_factory=True, validated_data=values)


def _with_aside(value: Any, plain: dict[str, Any], shape: _Shape, room: int) -> dict[str, Any]:
    """The fields that were set, and all else under `"$"`."""
    given: set[str] = value.__pydantic_fields_set__
    aside: dict[str, Any] = {}
    if unset := {name: plain.pop(name) for name, _, _ in shape.fields if name not in given}:
        aside["unset"] = unset
    extra = value.__pydantic_extra__ or {}
    if len(given) != len(plain) + len(extra) or not given.issuperset(extra):
        aside["set"] = sorted(given)
    if extra:
        fields = [Field(name, shape.extra or ANY) for name in extra]
        aside["extra"] = encode_fields(value, fields, list(extra.values()), room)
    if private := value.__pydantic_private__:
        fields = [Field(name, shape.private.get(name, ANY)) for name in private]
        aside["private"] = encode_fields(value, fields, list(private.values()), room)
    if aside:
        plain[TAG] = aside
    return plain


def _restore(plain: dict[str, Any], shape: _Shape) -> Any:
    cls, label = shape.cls, shape.label
    aside = _aside(plain, label) if TAG in plain else _NONE
    stored = {name: item for name, item in plain.items() if name != TAG} if aside else plain
    extra = _extra(stored, aside.get("extra", _NONE), shape)
    given = set(aside.get("set", [*stored, *aside.get("extra", _NONE)]))
    if extra:
        stored = {name: item for name, item in stored.items() if name not in extra}
    values = decode_fields(shape.fields, {**stored, **aside["unset"]} if "unset" in aside else stored, label)
    made = object.__new__(cls)
    object.__setattr__(made, "__dict__", values)
    object.__setattr__(made, "__pydantic_fields_set__", given)
    if not cls.__pydantic_root_model__:  # a root model has neither, and no place for them
        object.__setattr__(made, "__pydantic_extra__", None if shape.extra is None else extra)
        object.__setattr__(made, "__pydantic_private__", _private(aside.get("private", _NONE), shape))
    return made


def _aside(plain: dict[str, Any], label: str) -> dict[str, Any]:
    aside: Any = plain[TAG]
    if type(aside) is not dict or not aside:
        raise not_stored_as(plain, label)
    if not aside.keys() <= _ASIDE.keys():
        refuse_unknown(aside, list(_ASIDE), label)
    if any(type(item) is not _ASIDE[name] for name, item in aside.items()):
        raise not_stored_as(plain, label)
    if not all(type(name) is str for name in aside.get("set", ())):
        raise not_stored_as(plain, label)
    return aside


def _extra(stored: Mapping[str, Any], extra: Mapping[str, Any], shape: _Shape) -> dict[str, Any]:
    """Extra fields, and stored fields that the class has lost if it allows extra ones."""
    part = shape.extra
    if part is None:
        if extra:
            refuse_unknown(extra, _known(shape), shape.label)
        return {}
    for name in extra:
        if name in shape.names:
            refused = Refused(f"it was stored as an extra field and '{shape.label}' declares it now; migrate the data")
            refused.within(extra, f".{name}")
            raise refused
    lost = {name: decode_field(ANY, stored, name) for name in stored if name not in shape.names}
    return lost | {name: decode_field(part, extra, name) for name in extra}


def _private(stored: Mapping[str, Any], shape: _Shape) -> dict[str, Any] | None:
    """Private attributes; one that isn't stored takes its default, if it has one."""
    attributes = shape.cls.__private_attributes__
    if not attributes:
        if stored:
            refuse_unknown(stored, _known(shape), shape.label)
        return None
    if not stored.keys() <= attributes.keys():
        refuse_unknown(stored, list(attributes), shape.label)
    made = {}
    for name, attribute in attributes.items():
        value = decode_field(shape.private[name], stored, name) if name in stored else attribute.get_default()
        if value is not PydanticUndefined:
            made[name] = value
    return made


def _known(shape: _Shape) -> list[str]:
    return [field.name for field in shape.fields]
