"""Whether a type fits a field of another: verdicts by table, and held against what pydantic does with values."""

from __future__ import annotations

import datetime
import enum
import itertools
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel, TypeAdapter, ValidationError, model_validator
from typing_extensions import TypedDict

from graphagent.validation.fits import fit


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int = 0


class Spot(Point):
    size: int = 1


class Other(BaseModel):
    y: int = 0


class Parsing(BaseModel):
    x: int = 0

    @model_validator(mode="before")
    @classmethod
    def read(cls, value: Any) -> Any:
        """Takes text."""
        return {"x": len(value)} if isinstance(value, str) else value


class Words(RootModel[list[str]]):
    pass


class Row(TypedDict):
    x: int


CASES: list[tuple[Any, Any, str]] = [
    (int, int, "yes"),
    (bool, int, "yes"),
    (int, float, "yes"),
    (int, str, "no"),
    (str, int, "sometimes"),
    (str, uuid.UUID, "sometimes"),
    (str, datetime.date, "sometimes"),
    (str, list[str], "no"),
    (list[str], str, "no"),
    (float, int, "sometimes"),
    (None, int, "no"),
    (int, int | None, "yes"),
    (int | None, int, "sometimes"),
    (int | str, dict, "no"),
    (Any, int, "unknown"),
    (int, Any, "yes"),
    (int, object, "yes"),
    (Annotated[int, Field(gt=3)], float, "yes"),
    (Literal["a", "b"], str, "yes"),
    (Literal["a", "b"], Literal["b", "c"], "sometimes"),
    (Literal["a"], int, "no"),
    (str, Literal["a"], "sometimes"),
    (int, Literal["a"], "no"),
    (str, Colour, "sometimes"),
    (int, Colour, "no"),
    (list[int], list[int], "yes"),
    (list[int], Sequence[float], "yes"),
    (list[int], set[int], "yes"),
    (set[int], Sequence[int], "unknown"),
    (Spot, Row, "no"),
    (list[int], list[str], "no"),
    (list[str], list[int], "sometimes"),
    (list, list[int], "unknown"),
    (tuple[int, ...], list[int], "yes"),
    (tuple[int, str], list[int], "unknown"),
    (list[int], dict[str, int], "no"),
    (dict[str, int], Mapping[str, float], "yes"),
    (dict[str, int], dict[str, str], "no"),
    (dict[str, int], list[int], "no"),
    (dict[str, Any], Point, "unknown"),
    (Row, dict[str, int], "unknown"),
    (Spot, Point, "yes"),
    (Point, Spot, "no"),
    (Point, Other, "no"),
    (Point, str, "no"),
    (Point, dict[str, Any], "no"),
    (str, Point, "no"),
    (str, Parsing, "unknown"),
    (list[str], Point, "no"),
    (list[str], Words, "unknown"),
    (int, Decimal, "yes"),
    (Point, Words, "unknown"),
]


@pytest.mark.parametrize(("source", "target", "expected"), CASES)
def test_a_verdict(source: Any, target: Any, expected: str) -> None:
    """What is said of a pair of types."""
    assert fit(source, target) == expected


VALUES: list[tuple[Any, list[Any]]] = [
    (int, [0, 1, 7, -3]),
    (bool, [True, False]),
    (float, [0.0, 1.5]),
    (str, ["", "x", "7", "2024-01-01", "red", "8b9c0d5e-0000-4000-8000-000000000000", "true"]),
    (bytes, [b"x", b"7"]),
    (None, [None]),
    (int | None, [None, 3]),
    (Literal["red", "x"], ["red", "x"]),
    (list[int], [[1], [1, 2]]),
    (list[str], [["x"], ["7"]]),
    (set[int], [{1}]),
    (tuple[int, ...], [(1,), (1, 2)]),
    (dict[str, int], [{"x": 1}, {"a": 2}]),
    (dict[int, str], [{1: "x"}]),
    (Point, [Point()]),
    (Spot, [Spot()]),
    (Colour, [Colour.RED]),
]
TARGETS: list[Any] = [
    *(declared for declared, _ in VALUES), Other, Parsing, Words, Row, uuid.UUID, datetime.date, Decimal, object,
    Literal[1, 7], list[float], Mapping[str, str], Sequence[int],
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_verdicts_agree_with_values(target: Any) -> None:
    """Where a pair is said to fit, every value is taken; where it is said not to, none is."""
    adapter = TypeAdapter(target)
    for source, values in VALUES:
        verdict = fit(source, target)
        taken = [_taken(adapter, value) for value in values]
        if verdict in ("yes", "no"):
            assert set(taken) == {verdict == "yes"}, (source, target, verdict)


def _taken(adapter: TypeAdapter[Any], value: Any) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def test_a_type_fits_itself() -> None:
    """Whatever it is."""
    assert all(fit(target, target) == "yes" for target in TARGETS)
    assert len(list(itertools.product(VALUES, TARGETS))) > 400
