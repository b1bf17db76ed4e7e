"""Forms made from JSON schemas: which fields they have, and that entries amount to the values they were made for."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr, TypeAdapter

from graphagent.engine.questions import answer_schema
from graphagent.unset import UNSET
from runner.studio.forms import FormError, entries_of, form_of, value_of


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    number: int = Field(ge=1)


class Decision(BaseModel):
    """What a person decided."""

    approved: bool
    colour: Colour
    reason: str = "none given"
    budget: float | None = None
    address: Address
    second: Address | None = None
    tags: list[str] = []


KINDS: list[tuple[Any, str]] = [
    (bool, "bool"),
    (str, "text"),
    (int, "integer"),
    (float, "number"),
    (SecretStr, "secret"),
    (Literal["yes", "no"], "choice"),
    (Literal["only"], "choice"),
    (Colour, "choice"),
    (Address, "object"),
    (list[int], "json"),
    (dict[str, int], "json"),
    (int | str, "json"),
    (Any, "json"),
]


@pytest.mark.parametrize(("declared", "kind"), KINDS, ids=str)
def test_a_type_has_its_kind_of_field(declared: Any, kind: str) -> None:
    """The kind comes from the schema that a question has, with or without null beside it."""
    assert form_of(answer_schema(declared)).kind == kind
    if declared is not Any:
        maybe = form_of(answer_schema(declared | None if isinstance(declared, type) else declared))
        assert maybe.kind == kind
        assert maybe.nullable == isinstance(declared, type)


def test_a_model_has_a_field_for_each_of_its_own() -> None:
    """Names, defaults, what may be left out, and models inside of models."""
    form = form_of(answer_schema(Decision))
    assert [(".".join(one.path), one.kind) for one in form.leaves] == [
        ("approved", "bool"),
        ("colour", "choice"),
        ("reason", "text"),
        ("budget", "number"),
        ("address.street", "text"),
        ("address.number", "integer"),
        ("second.street", "text"),
        ("second.number", "integer"),
        ("tags", "json"),
    ]
    entries = entries_of(form, UNSET)
    assert (entries["reason",], entries["budget",], entries["approved",]) == ("none given", None, None)
    entries |= {("approved",): True, ("colour",): 1, ("address", "street"): "Elm", ("address", "number"): "12"}
    assert value_of(form, entries) == {
        "approved": True,
        "colour": "blue",
        "reason": "none given",
        "budget": None,
        "address": {"street": "Elm", "number": 12},
        "second": None,
        "tags": [],
    }


def test_all_that_is_wrong_is_said_at_its_field() -> None:
    """What is missing, what is no number, what is out of bounds and what is no JSON, at once."""
    form = form_of(answer_schema(Decision))
    entries = entries_of(form, UNSET)
    entries |= {("budget",): "much", ("address", "street"): "", ("address", "number"): "0", ("tags",): "[1"}
    with pytest.raises(FormError) as caught:
        value_of(form, entries)
    problems = {".".join(path): text for path, text in caught.value.problems.items()}
    assert problems.keys() == {"approved", "colour", "budget", "address.number", "tags"}
    assert problems["approved"] == "this is needed"
    assert "'much' is no number" in problems["budget"]
    assert "greater than or equal to 1" in problems["address.number"]
    assert "no JSON" in problems["tags"]
    assert "approved: this is needed" in str(caught.value)


@pytest.mark.parametrize(
    ("declared", "text", "said"),
    [
        (int, "3.5", "no whole number"),
        (int, "1_000", "no whole number"),
        (int, "", "this is needed"),
        (float, "nan", "no finite number"),
        (float, "1e999", "no finite number"),
        (list[int], '["a"]', "valid integer"),
        (dict[str, int], "[1]", "valid dictionary"),
        (Annotated[str, Field(max_length=2)], "abc", "at most 2"),
    ],
    ids=str,
)
def test_a_wrong_entry_is_told(declared: Any, text: str, said: str) -> None:
    """In words at the field, before anything reaches the run."""
    with pytest.raises(FormError, match=said):
        value_of(form_of(answer_schema(declared)), {(): text})


def test_without_a_type_a_text_is_meant_as_it_stands() -> None:
    """JSON where it is some, else the text."""
    form = form_of(None)
    assert value_of(form, {(): '{"a": 1}'}) == {"a": 1}
    assert value_of(form, {(): "yes, do it"}) == "yes, do it"


def test_schemas_that_refer_to_themselves_end_in_json() -> None:
    """A recursive model gets a JSON field where it gets too deep."""
    schema = {
        "$defs": {"T": {"type": "object", "properties": {"t": {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]}}}},
        "$ref": "#/$defs/T",
    }
    assert [one.kind for one in form_of(schema).leaves] == ["json"]


addresses = st.builds(Address, street=st.text(), number=st.integers(1, 2**70))
decisions = st.builds(
    Decision,
    approved=st.booleans(),
    colour=st.sampled_from(Colour),
    reason=st.text(),
    budget=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    address=addresses,
    second=st.none() | addresses,
    tags=st.lists(st.text()),
)


@given(decisions)
def test_entries_of_a_value_amount_to_it(decision: Decision) -> None:
    """Whatever a model holds: entered in its form it comes back."""
    form = form_of(answer_schema(Decision))
    value = value_of(form, entries_of(form, decision.model_dump(mode="json")))
    assert Decision.model_validate(value) == decision


@pytest.mark.parametrize(("declared", "kind"), KINDS, ids=str)
@given(data=st.data())
def test_entries_of_plain_values_amount_to_them(declared: Any, kind: str, data: Any) -> None:
    """Of every kind of field, also of types that models don't have."""
    if declared is Any:
        values: Any = st.recursive(st.none() | st.integers(), lambda inner: st.lists(inner, max_size=3), max_leaves=5)
    elif declared is SecretStr:
        values = st.text().map(SecretStr)
    elif declared is float:
        values = st.floats(allow_nan=False, allow_infinity=False)
    else:
        values = st.from_type(declared)
    plain = TypeAdapter(declared).dump_python(data.draw(values), mode="json")
    form = form_of(answer_schema(declared))
    if kind == "object" and plain["number"] < 1:
        return
    assert value_of(form, entries_of(form, plain)) == plain
