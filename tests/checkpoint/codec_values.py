"""What the codec's tests share: a comparison that `==` is too kind for, and strategies of values."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping, Set
from datetime import datetime, time
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel


def traits(value: Any) -> Any:
    """What must survive storing: classes, order, zones and folds, signs of zero, limits of deques; NaN equals NaN."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (float, value, math.copysign(1, value))
    if isinstance(value, complex):
        return complex, traits(value.real), traits(value.imag)
    if isinstance(value, datetime | time):
        zone = value.tzinfo
        return type(value), value.replace(tzinfo=None), value.fold, type(zone), str(zone), repr(zone)
    if isinstance(value, Mapping):
        return type(value), [(traits(key), traits(item)) for key, item in value.items()]
    if isinstance(value, Set):
        return type(value), sorted((traits(item) for item in value), key=repr)
    if isinstance(value, list | tuple):
        return type(value), [traits(item) for item in value]
    if isinstance(value, deque):
        return deque, value.maxlen, [traits(item) for item in value]
    if isinstance(value, BaseModel):
        aside = (value.__pydantic_extra__, value.__pydantic_private__, value.model_fields_set)
        return type(value), traits(dict(sorted(value.__dict__.items()))), traits(aside)
    if dataclasses.is_dataclass(value):
        return type(value), [traits(getattr(value, item.name)) for item in dataclasses.fields(value)]
    return type(value), value if isinstance(value, int) else repr(value)  # integers may be too long for a repr


ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates and NUL too
ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT
ZONES = st.none() | st.timezones()
HASHABLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | ANY_TEXT
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=ZONES, allow_imaginary=False)
    | st.times(timezones=ZONES)
    | st.timedeltas()
    | st.uuids()
    | st.decimals(allow_nan=False)
)
SCALARS = HASHABLE | st.floats() | st.decimals() | st.complex_numbers() | st.binary().map(bytearray)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = HASHABLE | st.tuples(HASHABLE, HASHABLE) | st.frozensets(HASHABLE, max_size=2)
    return (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.lists(inner, max_size=4).map(lambda items: deque(items, 5))
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(st.text(max_size=2) | st.just("$"), inner, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=3).map(OrderedDict)
        | st.dictionaries(HASHABLE, st.integers(), max_size=3).map(Counter)
        | st.sets(keys, max_size=4)
        | st.frozensets(keys, max_size=4)
    )


VALUES = st.recursive(SCALARS, _containers, max_leaves=12)
"""Values that a field of type Any may hold."""

_TAGS = ["tuple", "set", "dict", "counter", "deque", "datetime", "time", "uuid", "bytes", "decimal", "arm", "x"]

PLAIN = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(
            lambda tag, payload: {"$": [tag, payload]},
            st.sampled_from(_TAGS),
            inner,
        )
        | st.fixed_dictionaries(
            {"$": st.dictionaries(st.sampled_from(["unset", "extra", "private", "set"]), inner)},
            optional={"name": inner, "size": inner},
        )
    ),
    max_leaves=10,
)
"""Plain data, among it much that no encoder ever made."""


def label(value: object) -> str:
    """A test id that every process makes alike: the order in which a set shows itself differs."""
    return str(sorted(value, key=repr)) if isinstance(value, set | frozenset) else str(value)
