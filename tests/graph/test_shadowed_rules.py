"""A merge rule that has the name of its field: inside the class body the name means the field's default."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel

from graphagent import Message, MessagesState, StateGraph, merge, messages
from graphagent.errors import GraphDefinitionError


class Shadowed(BaseModel):
    messages: Annotated[list[Message], messages] = []
    merge: Annotated[dict[str, int], merge] = {}
    note: Annotated[str, "an ordinary annotation"] = ""


class Required(BaseModel):
    messages: Annotated[list[Message], messages]


def test_a_rule_that_was_read_as_the_default_is_a_problem() -> None:
    """Without this the field would silently lose its rule; the message names the fields and the mend."""
    graph = StateGraph(Shadowed).add_node("a", lambda state: None).set_entry_point("a").set_finish_point("a")
    with pytest.raises(GraphDefinitionError, match="import what you mean under another name") as raised:
        graph.compile()
    assert "'messages'" in str(raised.value)
    assert "'merge'" in str(raised.value)
    assert "'note'" not in str(raised.value)


def test_a_field_without_default_keeps_its_rule() -> None:
    """Nothing stands in the way of the name where the field has no default; the library's own state has its rule."""
    for state in (Required, MessagesState):
        graph = StateGraph(state).add_node("a", lambda state: None).set_entry_point("a").set_finish_point("a").compile()
        assert graph.schema.fields["messages"].reducer.name == "messages"
