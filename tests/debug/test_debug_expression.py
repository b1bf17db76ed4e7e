"""Safe expressions: what they can say, and that they can do nothing."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs import Trail

from graphagent import StateGraph
from graphagent.debug import Expression
from graphagent.errors import UnsetField, UsageError
from graphagent.messages import Message


class Colour(Enum):
    """An enum in a state."""

    RED = "red"


@dataclass
class Part:
    """A value whose property would run code."""

    size: int = 3
    tags: dict[str, int] = field(default_factory=lambda: {"a": 1})
    touched: list[str] = field(default_factory=list)

    @property
    def cost(self) -> int:
        """Never called."""
        self.touched.append("cost")
        return 1


NAMES: dict[str, Any] = {
    "state": StateGraph(Trail).schema.view({"log": ["a", "bb"], "item": "Word", "n": 4}),
    "part": Part(),
    "colour": Colour.RED,
    "said": Message.user("hello"),
    "node": "a",
    "step": 2,
}

VALUES = [
    ("state.n >= 4 and node == 'a'", True),
    ("state['n'] + 1", 5),
    ("'bb' in state.log and not step == 3", True),
    ("len(state.log) * 2 ** 3", 16),
    ("[len(x) for x in state.log if x != 'a']", [2]),
    ("any(x == 'bb' for x in state.log)", True),
    ("state.item.lower().startswith('w')", True),
    ("part.tags.get('a', 0) + part.size", 4),
    ("sorted(part.tags.items())", [("a", 1)]),
    ("colour.value", "red"),
    ("said.role", "user"),
    ("state.log[-1]", "bb"),
    ("state.log[0:1]", ["a"]),
    ("max(state.log, key=len)", "bb"),
    ("'many' if state.n > 3 else 'few'", "many"),
    ("{'a': state.n}['a']", 4),
    ("set(state.log) == {'a', 'bb'}", True),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_what_an_expression_comes_to(text: str, value: Any) -> None:
    """Comparison, logic, arithmetic, items, comprehensions, the named functions and pure methods."""
    assert Expression(text).value(NAMES) == value


REFUSED = [
    ("", "1 to 2000"),
    ("a =", "no expression"),
    ("state.n = 3", "no expression"),
    ("open('x')", "'open' can't be called"),
    ("__import__('os')", "'__import__' can't be called"),
    ("state.__class__", "begin with '_'"),
    ("().__class__.__bases__", "begin with '_'"),
    ("state.log.append('x')", "the method 'append' can't be called"),
    ("part.tags.pop('a')", "the method 'pop' can't be called"),
    ("part.tags.update({})", "the method 'update' can't be called"),
    ("(lambda: 1)()", "can be called"),
    ("[f for f in state.log][0]()", "can be called"),
    ("(n := 3)", "NamedExpr"),
    ("f'{state.n}'", "JoinedStr"),
    ("{k: 1 for k in state.log}", "DictComp"),
    ("lenn(state.log)", "did you mean 'len'?"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_can_not_be_said(text: str, why: str) -> None:
    """An expression that could call, assign or reach under the surface is refused before it is worked out."""
    with pytest.raises(UsageError) as raised:
        Expression(text)
    assert why in str(raised.value)


FAILS = [
    ("stat.n", "did you mean 'state'?"),
    ("part.cost", "no field 'cost'"),
    ("part.siz", "did you mean 'size'?"),
    ("step.real", "no field 'real'"),
    ("state.nn", "no field 'nn'"),
    ("state.log[9]", "IndexError"),
    ("9 ** 9 ** 9", "NumberTooHigh"),
    ("'x' * 10 ** 9", "IterableTooLong"),
    ("[x for x in 'a' * 20000]", "IterableTooLong"),
    ("part.get('a')", "no method 'get'"),
    ("1 / 0", "ZeroDivisionError"),
]


@pytest.mark.parametrize(("text", "why"), FAILS)
def test_what_goes_wrong_is_named(text: str, why: str) -> None:
    """A wrong name comes with the nearest one, a value that can't be worked out with its reason; no property runs."""
    with pytest.raises(UsageError) as raised:
        Expression(text).value(NAMES)
    assert why in str(raised.value)
    assert NAMES["part"].touched == []


def test_a_field_without_a_value_is_told_apart() -> None:
    """Reading a field that nothing was written to raises UnsetField, as it does in a node."""
    view = StateGraph(Trail).schema.view({})
    with pytest.raises(UnsetField):
        Expression("state.n > 1").value({"state": view})


def test_names_and_fields_of_an_expression() -> None:
    """What an expression reads can be known beforehand."""
    expression = Expression("any(x in other for x in state.log) and state['n'] > len(node)")
    assert expression.names() == {"state", "other", "node"}
    assert expression.fields() == {"log", "n"}


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="statelogn.()[]{}'+-*/<>=,: 0123_xfori", max_size=40))
def test_no_text_does_anything(text: str) -> None:
    """Whatever is typed, an expression comes to a value or raises UsageError, and the state is as it was."""
    before = (list(NAMES["state"].log), dict(NAMES["part"].tags))
    with contextlib.suppress(UsageError):
        Expression(text).value(NAMES)
    assert (NAMES["state"].log, NAMES["part"].tags) == before
