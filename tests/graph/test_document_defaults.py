"""Defaults and marks of fields that a graph's document has no place for survive a round trip as far as they matter."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretBytes, SecretStr, create_model

from graphagent import END, START, CompiledGraph, Message, StateGraph, Transient


def graph_of(state: type[BaseModel]) -> CompiledGraph:
    """One node over that state."""
    return StateGraph(state).add_node("a", lambda state: None).add_edge(START, "a").add_edge("a", END).compile()


def now() -> datetime.datetime:
    """The time, which is another at every call."""
    return datetime.datetime.now(datetime.UTC)


FIELDS: dict[str, tuple[Any, Any]] = {
    "a time that is made anew": (datetime.datetime, Field(default_factory=now)),
    "an id that is made anew": (uuid.UUID, Field(default_factory=uuid.uuid4)),
    "either of two types": (datetime.datetime | uuid.UUID, Field(default_factory=uuid.uuid4)),
    "a number": (Decimal, Field(default_factory=Decimal)),
    "a message": (Message, Message.user("hello")),
    "a secret": (SecretStr, SecretStr("s3cret")),
    "secret bytes": (SecretBytes, SecretBytes(b"s3cret")),
    "a field that is never saved": (Transient[dict[str, int]], {}),
}


@pytest.mark.parametrize("declared", FIELDS.values(), ids=FIELDS)
def test_a_default_that_the_document_does_not_hold(declared: Any) -> None:
    """The graph that is read back compiles, with the same fingerprint, type, secrecy and persistence."""
    graph = graph_of(create_model("State", x=declared))
    again = StateGraph.from_json(graph.to_json(), {"a": lambda state: None}).compile()
    assert again.fingerprint == graph.fingerprint
    one, other = graph.schema.fields["x"], again.schema.fields["x"]
    assert (one.declared, one.secret, one.transient) == (other.declared, other.secret, other.transient)
    assert "s3cret" not in str(graph.to_json())
