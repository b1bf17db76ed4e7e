"""From an annotation to its part: which kind of type it is, and the parts of what it contains."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections import abc
from collections.abc import Callable
from enum import Enum, Flag
from types import BuiltinFunctionType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretBytes, SecretStr
from typing_extensions import is_typeddict

from graphagent.checkpoint.annotations import (
    Unreadable,
    alias_value,
    bare,
    is_alias,
    is_bare_tuple,
    is_union,
    type_name,
    union_arms,
)
from graphagent.checkpoint.codec import ANY
from graphagent.checkpoint.part import ATOMS, FORMS, Part
from graphagent.checkpoint.part_containers import (
    defaultdict_part,
    deque_part,
    items_part,
    mapping_part,
    tuple_part,
)
from graphagent.checkpoint.part_dataclasses import dataclass_part, namedtuple_part
from graphagent.checkpoint.part_fields import PartOf
from graphagent.checkpoint.part_models import model_part
from graphagent.checkpoint.part_scalars import (
    JSON_SCALARS,
    Cipher,
    enum_part,
    flag_part,
    literal_part,
    refusing_part,
    scalar_part,
    secret_part,
)
from graphagent.checkpoint.part_typeddicts import typeddict_part
from graphagent.checkpoint.part_unions import union_part
from graphagent.checkpoint.refusal import class_name
from graphagent.checkpoint.scalars import declared_scalar

_ITEMS: dict[type, tuple[type, ...]] = {
    **{cls: (cls,) for cls in (list, tuple, set, frozenset, collections.deque)},
    abc.Sequence: (list, tuple, collections.deque),
    abc.MutableSequence: (list, collections.deque),
    abc.Set: (set, frozenset),
    abc.MutableSet: (set,),
}
"""The classes that a value of a declared container may have; the first of several is stored without a tag."""

_MAPPINGS: dict[type, type] = {
    dict: dict,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
}

_CONTAINERS = frozenset({*_ITEMS, *_MAPPINGS, collections.Counter, collections.defaultdict})


def build_part(annotation: Any, cipher: Cipher | None = None, *, partial: bool = False) -> Part:
    """The part of an annotation. `partial`: the keys of a TypedDict that is the annotation itself may be missing."""
    return _Builder(cipher).part(annotation, partial=partial)


class _Builder:
    """Builds the parts of one annotation; `made` has the records and aliases so far, which may contain themselves."""

    def __init__(self, cipher: Cipher | None) -> None:
        self.cipher = cipher
        self.made: list[tuple[Any, Part]] = []

    def part(self, hint: Any, *, partial: bool = False) -> Part:
        """The part of an annotation."""
        hint = bare(hint)
        origin = get_origin(hint) or hint
        if hint is Any or hint is object:
            return ANY
        if is_union(hint):
            return self._union(union_arms(hint))
        if origin is Literal:
            return self._literal(get_args(hint))
        if is_alias(hint):
            start = Part(origin.__name__, _unfinished, _unfinished, classes=None, forms=FORMS)
            return self._once(hint, start, lambda: self.part(alias_value(hint)))
        if hint is None:
            return JSON_SCALARS[type(None)]
        if isinstance(origin, type):
            return JSON_SCALARS.get(origin) or self._container(hint, origin) or self._class(hint, origin, partial)
        return _unstorable(getattr(hint, "__forward_arg__", str(hint)))

    def _union(self, arms: list[Any]) -> Part:
        literals = tuple(value for arm in arms if get_origin(arm) is Literal for value in get_args(arm))
        others = [arm for place, arm in enumerate(arms) if get_origin(arm) is not Literal and arm not in arms[:place]]
        parts = [self._literal(literals)] if literals else []
        parts += map(self.part, others)
        if len(parts) == 1:
            return parts[0]
        short = [part.label for part in parts]
        long = [*short[: -len(others)], *(type_name(arm, full=True) for arm in others)]
        return union_part(parts, names=[a if short.count(a) == 1 else b for a, b in zip(short, long, strict=True)])

    def _literal(self, values: tuple[Any, ...]) -> Part:
        """Literals that JSON has no form for (enum members, bytes) are stored as any value of their class."""
        atoms = tuple(value for value in values if type(value) in ATOMS)
        parts = [literal_part(atoms)] if atoms else []
        parts += [self.part(cls) for cls in dict.fromkeys(type(value) for value in values) if cls not in ATOMS]
        return parts[0] if len(parts) == 1 else union_part(parts)

    def _container(self, hint: Any, cls: Any) -> Part | None:
        args = get_args(hint)
        if cls is tuple and not is_bare_tuple(hint) and (len(args) != 2 or args[1] is not Ellipsis):
            return tuple_part(tuple(map(self.part, args)))
        if cls not in _CONTAINERS:
            return None
        first = self.part(args[0]) if args else ANY
        if cls in _ITEMS:
            kinds = [
                deque_part(first) if kind is collections.deque else items_part(kind, first) for kind in _ITEMS[cls]
            ]
            return kinds[0] if len(kinds) == 1 else union_part(kinds, f"{cls.__name__}[{first.label}]", plain=kinds[0])
        if cls is collections.Counter:
            return mapping_part(cls, first, JSON_SCALARS[int])
        second = self.part(args[1]) if len(args) == 2 else ANY
        if cls is collections.defaultdict:
            return defaultdict_part(first, second, bare(args[1]) if len(args) == 2 else None)
        return mapping_part(_MAPPINGS[cls], first, second)

    def _class(self, hint: Any, cls: type, partial: bool) -> Part:
        if cls is SecretStr or cls is SecretBytes:
            return secret_part(cls, self.cipher)
        if scalar := declared_scalar(cls):
            return scalar_part(scalar)
        if issubclass(cls, Enum) and cls.__members__:
            return flag_part(cls) if issubclass(cls, Flag) else enum_part(cls)
        record = _record(cls, partial)
        if record is None:
            return _unstorable(class_name(cls), cls)
        kinds = frozenset({dict if is_typeddict(cls) else cls})
        start = Part(type_name(hint), _unfinished, _unfinished, kinds, forms=frozenset({dict}))
        return self._once(hint, start, lambda: record(hint, self.part))

    def _once(self, hint: Any, start: Part, build: Callable[[], Part]) -> Part:
        """The part that `build` makes; `start` stands for it where the type contains itself."""
        for known, part in self.made:
            if known == hint:
                return part
        self.made.append((hint, start))
        label = start.label
        try:
            start.become(build())
        except Unreadable as error:
            start.become(refusing_part(label, f"{error}; define what they name in its module", *(start.classes or ())))
        start.label = label  # of an alias: its name, not what it stands for
        return start


def _record(cls: type, partial: bool) -> Callable[[Any, PartOf], Part] | None:
    if is_typeddict(cls):
        return functools.partial(typeddict_part, partial=partial)
    if _has_contents(cls):
        return namedtuple_part if issubclass(cls, tuple) and hasattr(cls, "_fields") else None
    if issubclass(cls, BaseModel):
        return model_part
    return dataclass_part if dataclasses.is_dataclass(cls) else None


def _has_contents(cls: type) -> bool:
    """Whether instances hold more than attributes: a subclass of `dict`, `Exception` or another class written in C."""
    makers = [vars(base)["__new__"] for base in cls.__mro__ if "__new__" in vars(base)]
    return any(isinstance(maker, BuiltinFunctionType) and maker is not object.__new__ for maker in makers)


def _unstorable(label: str, *classes: type) -> Part:
    reason = (
        f"a field declared '{label}' has no stored form; declare a type of plain data or mark the field 'Transient'"
    )
    return refusing_part(label, reason, *classes)


def _unfinished(*_: Any) -> Any:
    raise AssertionError("a part is used before its type is built")
