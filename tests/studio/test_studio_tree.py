"""States as trees: what changed of a value, and values with a part of them replaced."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from graphagent.unset import UNSET
from runner.studio.tree import Item, parts, plain, preview, replaced

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


def marks(before: Any, after: Any) -> list[str]:
    """Path and mark of each part of a value."""
    return [f"{one.path[-1]} {one.mark}" for one in parts(Item(("f",), before, after))]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}, ["a same", "b changed", "c added"]),
        ({"a": 1, "b": 2}, {"b": 2}, ["b same", "a removed"]),
        ([1, 2], [1, 2, 3], ["0 same", "1 same", "2 added"]),
        ([1, 2, 3], [2, 3], ["0 removed", "0 same", "1 same"]),
        ([1, 2, 3], [1, 9, 3], ["0 same", "1 changed", "2 same"]),
        ([], [1], ["0 added"]),
        ([1], UNSET, ["0 removed"]),
        (UNSET, {"a": [1]}, ["a added"]),
        (5, [5], ["0 added"]),
        ([1], {"a": 1}, ["a added"]),
        ([True], [1], ["0 changed"]),
    ],
)
def test_parts_have_what_became_of_them(before: Any, after: Any, wanted: list[str]) -> None:
    """Entries by name; items by what both lists begin and end with."""
    assert marks(before, after) == wanted


@given(values, values)
def test_marks_are_right_at_every_depth(before: Any, after: Any) -> None:
    """Put together again from its parts, the newer value is itself; nothing is the same that isn't."""

    def check(item: Item) -> Any:
        found = parts(item)
        if item.mark == "same":
            assert all(one.mark == "same" for one in found)
        if not item.has_parts or item.after is UNSET:
            return item.after
        now = [(one.path[-1], check(one)) for one in found if one.after is not UNSET]
        return dict(now) if isinstance(item.after, dict) else [value for _, value in now]

    assert check(Item(("f",), before, after)) == after


@given(values, st.data())
def test_a_replaced_part_is_the_only_change(value: Any, data: Any) -> None:
    """The copy has the new value at its path, and the rest as it was; the original stays."""
    item, kept = Item((), UNSET, value), repr(value)
    while item.has_parts and data.draw(st.booleans()):
        item = data.draw(st.sampled_from(parts(item)))
    new = replaced(value, item.path, "new")
    here = new
    for name in item.path:
        here = here[name]
    assert here == "new"
    assert replaced(new, item.path, item.after) == value
    assert repr(value) == kept


def test_a_part_that_is_not_there_cannot_be_replaced() -> None:
    """A path into a number is an error."""
    with pytest.raises(LookupError):
        replaced({"a": 1}, ("a", "b"), 2)


def test_previews_are_short_and_secrets_hidden() -> None:
    """A line for each value; what is long is counted, and secrets show as their class shows them."""

    class Login(BaseModel):
        name: str
        word: SecretStr

    assert preview(plain(Login(name="ann", word=SecretStr("hush")))) == '{"name": "ann", "word": "**********"}'
    assert preview([*range(5000)]) == "5,000 items"
    assert preview({"a": "x" * 500}) == "1 entry"
    assert preview("x" * 500).endswith("... (502 characters)")
    assert (preview([]), preview({}), preview(None), preview(UNSET)) == ("[]", "{}", "null", "unset")
