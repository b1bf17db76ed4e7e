"""What happens to stored data when the declared type has changed since."""

from __future__ import annotations

import contextlib
import enum
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import pytest
from codec_values import PLAIN, label
from hypothesis import given
from pydantic import BaseModel, Field, PrivateAttr, SecretStr

from graphagent.checkpoint.plans import plan_for
from graphagent.errors import DecodeError, EncodeError


class Model(BaseModel):
    name: str
    size: int = 1
    tags: list[str] = Field(default_factory=lambda: ["new"])
    both: str = Field(default_factory=lambda data: f"{data['name']}-{data['size']}")
    _note: str = PrivateAttr(default="none")
    _late: str


class Extra(BaseModel, extra="allow"):
    name: str = ""


@dataclass
class Data:
    name: str
    size: int = 1
    tags: list[str] = field(default_factory=list)


class Other(BaseModel):
    title: str


class Named(NamedTuple):
    name: str
    size: int = 1


class Typed(TypedDict):
    name: str
    size: NotRequired[int]


class Plain:
    """A cipher of the identity."""

    def encrypt(self, data: bytes) -> bytes:
        return data

    decrypt = encrypt


class Colour(enum.Enum):
    RED = 1
    SCARLET = RED


class Access(enum.Flag):
    READ = 1


@pytest.mark.parametrize(
    ("annotation", "plain", "value"),
    [
        (Data, {"name": "a"}, Data("a")),
        (Data, {"size": 2, "name": "a"}, Data("a", 2)),
        (Named, {"name": "a"}, Named("a")),
        (Typed, {"name": "a"}, {"name": "a"}),
        (Model, {"name": "a"}, Model(name="a")),
        (Extra, {"name": "a", "gone": {"$": ["tuple", [1]]}}, Extra(name="a", gone=(1,))),
        (Colour, "SCARLET", Colour.RED),
        (int | None, 3, 3),
        (float, 3, 3),
        (Decimal, 3, Decimal(3)),
        (str | date | None, "a", "a"),
        (Model | Other, {"title": "a"}, Other(title="a")),
        (list[int] | list[str], ["a"], ["a"]),
    ],
    ids=label,
)
def test_what_needs_no_guess_is_read(annotation: Any, plain: Any, value: Any) -> None:
    """New fields with a default, new union arms, wider scalars and aliases of renamed members read old data."""
    back = plan_for(annotation).decode(plain, "state.x")
    assert back == value
    assert type(back) is type(value)


def test_defaults_are_not_given_fields() -> None:
    """A field that takes its default on load isn't in `model_fields_set`, and each load makes its own default."""
    first, second = (plan_for(Model).decode({"name": "a"}) for _ in range(2))
    assert first.model_fields_set == {"name"}
    assert (first.tags, first.both, first._note) == (["new"], "a-1", "none")
    assert first.tags is not second.tags
    assert "_late" not in first.__pydantic_private__


@pytest.mark.parametrize(
    ("annotation", "plain", "where", "text"),
    [
        (Data, {"size": 1}, "state.x.name", "give the field a default"),
        (list[Model], [{"size": 1}], "state.x[0].name", "give the field a default"),
        (Named, {}, "state.x.name", "give the field a default"),
        (Typed, {"size": 1}, "state.x['name']", "NotRequired"),
        (Data, {"name": "a", "sise": 1}, "state.x.sise", "did you mean 'size'?"),
        (Model, {"name": "a", "colour": 1}, "state.x.colour", "known: 'name', 'size', 'tags', 'both'"),
        (Model, {"name": "a", "$": {"private": {"_nota": "b"}}}, "state.x._nota", "did you mean '_note'?"),
        (Model, {"name": "a", "$": {"extra": {"x": 1}}}, "state.x.x", "declares no field 'x'"),
        (Other, {"title": "a", "$": {"private": {"_x": 1}}}, "state.x._x", "declares no field '_x'"),
        (Other, {"title": "a", "$": {"unsett": {}}}, "state.x.unsett", "did you mean 'unset'?"),
        (Other, {"title": "a", "$": []}, "state.x", "declared 'Other'"),
        (Extra, {"$": {"extra": {"name": "a"}}}, "state.x.name", "declares it now"),
        (Typed, {"name": "a", "sise": 1}, "state.x['sise']", "did you mean 'size'?"),
        (Data, {"name": 1}, "state.x.name", "stored 1 doesn't fit the declared 'str'"),
        (int, 1.5, "state.x", "declared 'int'"),
        (Colour, "REDD", "state.x", "did you mean 'RED'?"),
        (Access, ["WRITE"], "state.x", "known: 'READ'"),
        (Literal["a", "b"], "c", "state.x", "'c' is none of the declared"),
        (Model | Other, {"$": ["arm", "Othre", {}]}, "state.x", "did you mean 'Other'?"),
        (Extra | Data, {"name": "a"}, "state.x", "fits 2 types"),
        (Model | Other, {"nothing": 1}, "state.x", "Model | Other"),
        (tuple[int, int], [1], "state.x", "declared 'tuple[int, int]'"),
        (set[Any], [[1]], "state.x", "declared 'set[Any]'"),
        (dict[str, int], [1], "state.x", "declared 'dict[str, int]'"),
        (list[date], ["2026-02-30"], "state.x[0]", "is no 'datetime.date'"),
    ],
    ids=label,
)
def test_what_needs_a_guess_is_refused_by_name(annotation: Any, plain: Any, where: str, text: str) -> None:
    """Data that don't fit the declared type are a DecodeError naming the place, the type and the nearest name."""
    with pytest.raises(DecodeError) as caught:
        plan_for(annotation).decode(plain, "state.x")
    assert caught.value.path == where
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "annotation",
    [
        UUID,
        str,
        Literal[1],
        Colour,
        Access,
        SecretStr,
        list[int],
        set[int],
        tuple[int, int],
        deque[int],
        dict[str, int],
        defaultdict[str, int],
        Data,
        Named,
        Typed,
        Model,
        int | Model,
    ],
    ids=label,
)
def test_each_kind_of_type_checks_both_ways(annotation: Any) -> None:
    """A value of another class is refused on the way in, data of another shape on the way out, for every kind."""
    plan = plan_for(annotation, cipher=Plain())
    with pytest.raises(EncodeError, match=r"^state\.x can't be stored"):
        plan.encode(object(), "state.x")
    for plain in (1.5, [[], 1], {"$": {"set": [1]}}, {"$": {"set": {}}}):
        with pytest.raises(DecodeError, match=r"^state\.x.* can't be restored"):
            plan.decode(plain, "state.x")


EVERY_KIND = [
    plan_for(kind).decode
    for kind in (
        Model,
        Extra | Data | None,
        Named,
        Typed,
        Colour | Access,
        dict[date, set[Any]],
        tuple[int, float] | str | date,
        list[dict[str, Any]],
    )
]


@pytest.mark.parametrize("decode", EVERY_KIND)
@given(plain=PLAIN)
def test_damaged_data_raise_nothing_but_a_decode_error(decode: Callable[[Any, str], Any], plain: Any) -> None:
    """Whatever stands in a row, decoding returns a value or raises DecodeError with the path."""
    with contextlib.suppress(DecodeError):
        decode(plain, "state.x")
