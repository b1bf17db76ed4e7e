"""The arguments of a tool call are read by two parsers, the quick one first: where it reads, it reads the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphagent.agents.assembler import assemble
from graphagent.agents.model import Delta, ToolCallDelta

LENIENT = json.JSONDecoder(strict=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def read(text: str) -> Any:
    """The arguments of the only call of an answer; None if it must not be run."""
    call = ToolCallDelta(0, "c1", "look", text)
    reply = assemble([Delta(tool_calls=(call,), finish_reason="tool_calls")])
    return None if reply.invalid else reply.message.tool_calls[0].arguments


@given(st.dictionaries(st.text(), VALUES), st.booleans())
def test_arguments_are_read_as_python_reads_them(value: dict[str, Any], ascii: bool) -> None:
    """Whatever JSON object a model writes, the tool gets what Python's own parser makes of it."""
    text = json.dumps(value, ensure_ascii=ascii)
    assert repr(read(text)) == repr(LENIENT.decode(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": "x\ny"}', {"a": "x\ny"}),
        ('{"a": "\\ud800"}', {"a": "\ud800"}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('{"a": -0, "b": 1E2}', {"a": 0, "b": 100.0}),
        ('"{\\"a\\": \\"x\ny\\"}"', {"a": "x\ny"}),
        ('{"a": [1,]}', None),
        ("[1]", None),
    ],
    ids=["line break", "half a character", "twice", "numbers", "encoded twice", "comma", "no object"],
)
def test_what_the_quick_parser_refuses_is_read_by_the_other(text: str, expected: Any) -> None:
    """Line breaks in strings and half characters are taken, as before; what is no JSON object is told to the model."""
    assert read(text) == expected
