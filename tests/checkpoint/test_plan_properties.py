"""Plans of random types: whatever is nested in what, a stored value comes back."""

from __future__ import annotations

import enum
import itertools
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import field, make_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, Optional, Union
from uuid import UUID

from codec_values import ANY_TEXT, VALUES, ZONES, traits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import create_model
from typing_extensions import TypedDict

from graphagent.checkpoint.codec import dumps, loads
from graphagent.checkpoint.plans import plan_for


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


_NUMBERS = itertools.count()

Typed = tuple[Any, st.SearchStrategy[Any]]
"""An annotation and a strategy of its values."""

KEYS: list[Typed] = [
    (str, ANY_TEXT),
    (int, st.integers()),
    (bool, st.booleans()),
    (bytes, st.binary()),
    (date, st.dates()),
    (datetime, st.datetimes(timezones=ZONES, allow_imaginary=False)),
    (UUID, st.uuids()),
    (timedelta, st.timedeltas()),
    (Colour, st.sampled_from(Colour)),
]
LEAVES: list[Typed] = [
    *KEYS,
    (None, st.none()),
    (float, st.floats() | st.integers()),
    (time, st.times(timezones=ZONES)),
    (Decimal, st.decimals(allow_nan=False)),
    (Any, VALUES),
]


@st.composite
def _list_of(draw: Callable[..., Any], inner: st.SearchStrategy[Typed]) -> Typed:
    hint, values = draw(inner)
    items = st.lists(values, max_size=3)
    return draw(
        st.sampled_from([(list[hint], items), (tuple[hint, ...], items.map(tuple)), (deque[hint], items.map(deque))])
    )


@st.composite
def _dict_of(draw: Callable[..., Any], inner: st.SearchStrategy[Typed]) -> Typed:
    key, keys = draw(st.sampled_from(KEYS))
    hint, values = draw(inner)
    entries = st.dictionaries(keys, values, max_size=3)
    return draw(st.sampled_from([(dict[key, hint], entries), (OrderedDict[key, hint], entries.map(OrderedDict))]))


@st.composite
def _tuple_of(draw: Callable[..., Any], inner: st.SearchStrategy[Typed]) -> Typed:
    parts = draw(st.lists(inner, min_size=1, max_size=3))
    return tuple[tuple(hint for hint, _ in parts)], st.tuples(*(values for _, values in parts))


@st.composite
def _union_of(draw: Callable[..., Any], inner: st.SearchStrategy[Typed]) -> Typed:
    parts = draw(st.lists(inner, min_size=1, max_size=3))
    values = st.one_of(st.none(), *(values for _, values in parts))
    return Optional[Union[tuple(hint for hint, _ in parts)]], values  # noqa: UP007, UP045


@st.composite
def _record_of(draw: Callable[..., Any], inner: st.SearchStrategy[Typed]) -> Typed:
    parts = draw(st.lists(inner, min_size=1, max_size=3))
    hints = {f"f{place}": hint for place, (hint, _) in enumerate(parts)}
    values = st.fixed_dictionaries({f"f{place}": values for place, (_, values) in enumerate(parts)})
    name = f"Record{next(_NUMBERS)}"  # types of one union need names of their own
    cls: Any = draw(st.sampled_from(["model", "dataclass", "namedtuple", "typeddict"]))
    if cls == "typeddict":
        return TypedDict(name, hints), values
    if cls == "model":
        cls = create_model(name, **{key: (hint, None) for key, hint in hints.items()})
        given_fields = st.fixed_dictionaries({}, optional={key: st.just(key) for key in hints}).map(set)
        return cls, st.tuples(values, given_fields).map(lambda pair: cls.model_construct(pair[1], **pair[0]))
    if cls == "dataclass":
        cls = make_dataclass(name, [(key, hint, field(default=None)) for key, hint in hints.items()])
    else:
        cls = NamedTuple(name, list(hints.items()))
    return cls, values.map(lambda entries: cls(**entries))


TYPES: st.SearchStrategy[Typed] = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: _list_of(inner) | _dict_of(inner) | _tuple_of(inner) | _union_of(inner) | _record_of(inner),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_values_of_random_types_come_back(data: st.DataObject) -> None:
    """For a random type and a random value of it, storing is the identity: values, classes, given fields."""
    annotation, values = data.draw(TYPES)
    value = data.draw(values)
    plan = plan_for(annotation)
    assert plan.accepts(value)
    back = plan.decode(loads(dumps(plan.encode(value, "state.x"))), "state.x")
    assert traits(back) == traits(value)
