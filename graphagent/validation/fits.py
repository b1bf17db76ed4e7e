"""Whether values of one type can stand in a field of another, as far as that can be said without a value."""

from __future__ import annotations

import collections.abc
import enum
import types
import typing
from collections.abc import Iterable
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

Fit = Literal["yes", "sometimes", "no", "unknown"]

_SAMPLES: dict[type, tuple[Any, ...]] = {
    types.NoneType: (None,),
    bool: (False, True),
    int: (0, 7),
    float: (0.0, 1.5),
    str: ("x", "7"),
    bytes: (b"x",),
}
_PARSED = (str, bytes)  # of these, which values a scalar type takes is a matter of the value
_ROWS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
_TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def fit(source: Any, target: Any) -> Fit:
    """Whether every value of `source` is taken by a field of type `target`: `yes`; `no`: none (but an empty
    container); `sometimes`: it depends on the value; `unknown`: it can't be said.

    What a field takes is what pydantic's lax mode takes. Constraints and validators are not looked at.
    """
    source, target = _bare(source), _bare(target)
    if source == target or target in (Any, object):
        return "yes"
    if get_origin(source) in (typing.Union, types.UnionType):
        return _every(fit(part, target) for part in get_args(source))
    if get_origin(source) is Literal:
        return _samples(get_args(source), target)
    if get_origin(target) in (typing.Union, types.UnionType):
        return _best(fit(source, part) for part in get_args(target))
    if source in _SAMPLES:
        return _scalar(source, target)
    shape = _shape(source)
    if shape and _shape(target):
        return _items(source, target) if shape == _shape(target) else "no"
    if shape:
        return "no" if target in _SAMPLES or (shape == "row" and _closed(target)) else "unknown"
    return _classes(source, target)


def _bare(annotation: Any) -> Any:
    if annotation is None:
        return types.NoneType
    return _bare(get_args(annotation)[0]) if get_origin(annotation) is typing.Annotated else annotation


def _every(parts: Iterable[Fit]) -> Fit:
    found = set(parts)
    if len(found) == 1:
        return found.pop()
    return "unknown" if "unknown" in found else "sometimes"


def _best(parts: Iterable[Fit]) -> Fit:
    found = set(parts)
    order: tuple[Fit, ...] = ("yes", "unknown", "sometimes", "no")
    return next(fit for fit in order if fit in found)


def _samples(values: Iterable[Any], target: Any) -> Fit:
    try:
        adapter = TypeAdapter(target, config=ConfigDict(arbitrary_types_allowed=True)) if _own(target) else None
        adapter = adapter or TypeAdapter(target)
    except Exception:
        return "unknown"
    return _every("yes" if _taken(adapter, value) else "no" for value in values)


def _own(target: Any) -> bool:
    """True if the type takes no configuration from outside."""
    return not (is_typeddict(target) or hasattr(target, "__dataclass_fields__") or _is(target, BaseModel))


def _taken(adapter: TypeAdapter[Any], value: Any) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def _scalar(source: type, target: Any) -> Fit:
    if _shape(target):
        return "no"
    if get_origin(target) is Literal or _is(target, enum.Enum):
        values = [getattr(item, "value", item) for item in (get_args(target) or target)]
        wanted = int if source is bool else source  # True equals 1
        return "sometimes" if any(isinstance(value, wanted) for value in values) else "no"
    if target is types.NoneType or _closed(target):
        return "no"
    found = _samples(_SAMPLES[source], target)
    if target in _SAMPLES or source is types.NoneType:
        return "sometimes" if found == "no" and source in _PARSED else found
    if source in _PARSED:  # which texts it can be made of is not known
        return "unknown" if found == "yes" else "sometimes"
    return "unknown" if found == "no" else found


def _shape(annotation: Any) -> str | None:
    """`row` for a list and its like, `table` for a mapping."""
    origin = get_origin(annotation) or annotation
    if origin in _ROWS:
        return "row"
    return "table" if origin in _TABLES or is_typeddict(origin) else None


def _items(source: Any, target: Any) -> Fit:
    """Two containers of one shape: as their items do."""
    have, want = get_args(source), get_args(target)
    if is_typeddict(source) or is_typeddict(target) or not have or not want:
        return "unknown"
    origin = get_origin(target)
    if origin not in (list, tuple, set, frozenset, dict) and not issubclass(get_origin(source), origin):
        return "unknown"
    have, want = (tuple(x for x in arguments if x is not Ellipsis) for arguments in (have, want))
    if len(have) != len(want):
        return "unknown"
    return _worst(fit(one, other) for one, other in zip(have, want, strict=True))


def _worst(parts: Iterable[Fit]) -> Fit:
    found = set(parts)
    order: tuple[Fit, ...] = ("no", "sometimes", "unknown", "yes")
    return next(fit for fit in order if fit in found)


def _classes(source: Any, target: Any) -> Fit:
    if not isinstance(source, type):
        return "unknown"
    if target in source.__mro__:
        return "yes"
    own = _is(source, BaseModel) or hasattr(source, "__dataclass_fields__")
    return "no" if own and (target in _SAMPLES or _shape(target) or _closed(target)) else "unknown"


def _closed(target: Any) -> bool:
    """True for a model that takes mappings and its own instances only."""
    if not _is(target, BaseModel) or "__get_pydantic_core_schema__" in vars(target):
        return False
    return not (
        target.__pydantic_decorators__.model_validators
        or target.__pydantic_root_model__
        or target.model_config.get("from_attributes")
    )


def _is(item: Any, kind: type) -> bool:
    return isinstance(item, type) and issubclass(item, kind)
