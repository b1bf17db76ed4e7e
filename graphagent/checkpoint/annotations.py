"""Reading annotations: qualifiers taken off, aliases and type variables resolved, the declared fields of a class.

Nothing here knows of codecs. Sources: PEP 484, 593 (Annotated), 655 (NotRequired), 695 (type aliases), 705 (ReadOnly).
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Mapping
from datetime import date, datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, ClassVar, Final, NewType, NotRequired, Required, TypeVar, get_args, get_origin

import pydantic
from typing_extensions import ReadOnly, TypeAliasType

_QUALIFIERS = (Annotated, Required, NotRequired, ReadOnly, Final, ClassVar)
_ALIAS_TYPES: tuple[type, ...] = (TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType))

_MARKERS: dict[Any, Any] = {
    pydantic.PastDate: date,
    pydantic.FutureDate: date,
    pydantic.PastDatetime: datetime,
    pydantic.FutureDatetime: datetime,
    pydantic.AwareDatetime: datetime,
    pydantic.NaiveDatetime: datetime,
    pydantic.EmailStr: str,
    pydantic.IPvAnyAddress: IPv4Address | IPv6Address,
    pydantic.Json: Any,
}
"""Pydantic's classes that only mark a rule; the values are of another class."""


class Unreadable(Exception):
    """An annotation, written as text, can't be evaluated."""


def bare(hint: Any) -> Any:
    """The annotation without qualifiers, metadata, `NewType` and type variables; type aliases stay, they may recur.

    A type variable becomes its bound, the union of its constraints, or Any.
    """
    while True:
        if get_origin(hint) in _QUALIFIERS:
            hint = get_args(hint)[0]
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        elif isinstance(hint, TypeVar):
            hint = typing.Union[hint.__constraints__] if hint.__constraints__ else hint.__bound__ or Any  # noqa: UP007
        elif isinstance(hint, type) and hint in _MARKERS:
            hint = _MARKERS[hint]
        else:
            return hint


def is_union(hint: Any) -> bool:
    """Whether the annotation is `Union[...]`, `Optional[...]` or `A | B`."""
    return get_origin(hint) in (typing.Union, types.UnionType)


def union_arms(hint: Any) -> list[Any]:
    """The arms of a union, bare, those of nested unions in their place; an alias counts as one arm."""
    arms: list[Any] = []
    for arm in map(bare, get_args(hint)):
        arms.extend(union_arms(arm) if is_union(arm) else [arm])
    return arms


def is_bare_tuple(hint: Any) -> bool:
    """Whether the annotation is `tuple` without arguments, which `tuple[()]` is not."""
    return hint in (tuple, typing.Tuple)  # noqa: UP006


def type_name(hint: Any, *, full: bool = False) -> str:
    """The short name of an annotation, such as `Box[int]`: unlike its repr, it stays when a class moves.

    `full` names classes with their modules.
    """
    names = [type_name(item, full=full) for item in get_args(hint)]
    if is_union(hint):
        return " | ".join(names)
    origin = get_origin(hint) or hint
    if not isinstance(origin, type):
        return str(hint)
    name = f"{origin.__module__}.{origin.__qualname__}" if full else origin.__name__
    return f"{name}[{', '.join(names)}]" if names else name


def is_alias(hint: Any) -> bool:
    """Whether the annotation is a named type alias (`type X = ...` or TypeAliasType), parametrised or not."""
    return isinstance(get_origin(hint) or hint, _ALIAS_TYPES)


def alias_value(hint: Any) -> Any:
    """What a type alias stands for, names in text resolved (its own is always one) and its parameters replaced.

    Raises Unreadable.
    """
    alias = get_origin(hint) or hint
    known = {alias.__name__: alias} | {item.__name__: item for item in alias.__type_params__}
    holder = types.SimpleNamespace(__annotations__={"value": alias.__value__}, __qualname__=alias.__name__)
    value = _read(holder, vars(sys.modules[alias.__module__]), known)["value"]
    return bind(value, dict(zip(alias.__type_params__, get_args(hint), strict=False)))


def bind(hint: Any, arguments: Mapping[Any, Any]) -> Any:
    """The annotation with type variables replaced."""
    if isinstance(hint, TypeVar):
        return arguments.get(hint, hint)
    if isinstance(hint, type) and get_origin(hint) is None:
        return hint  # a class without arguments: what its parameters are is its own affair
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple(arguments.get(item, item) for item in parameters)] if parameters else hint


def field_hints(hint: Any) -> dict[str, Any]:
    """The annotations of a class by name, inherited ones included, type variables of generic classes replaced.

    `hint` is a class or a generic class with arguments. Raises Unreadable if an annotation names something that isn't
    defined in the module of its class.
    """
    cls = get_origin(hint) or hint
    hints = _read(cls)
    owners = _arguments(hint)
    if not any(owners.values()):
        return hints
    merged = {name: value for arguments in owners.values() for name, value in arguments.items()}
    for name in hints:
        owner = next((base for base in cls.__mro__ if name in inspect.get_annotations(base)), cls)
        hints[name] = bind(hints[name], merged | owners.get(owner, {}))
    return hints


def _read(holder: Any, scope: dict[str, Any] | None = None, known: dict[str, Any] | None = None) -> dict[str, Any]:
    try:
        return typing.get_type_hints(holder, scope, known, include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise Unreadable(f"the annotations of '{holder.__qualname__}' can't be read ({error})") from error


def _arguments(hint: Any) -> dict[Any, dict[Any, Any]]:
    """For a class and its generic bases, what their type variables stand for."""
    cls = get_origin(hint) or hint
    own = dict(zip(getattr(cls, "__parameters__", ()), get_args(hint), strict=False))
    found: dict[Any, dict[Any, Any]] = {cls: own}
    for base in getattr(cls, "__orig_bases__", ()):
        if get_origin(base) not in (None, typing.Generic, typing.Protocol):
            found = _arguments(bind(base, own)) | found
    return found
