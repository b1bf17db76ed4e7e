"""One grammar of placeholders: the instruction of a model node and that of the projection say the same."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from graphagent import LLMAgent, Message, add
from graphagent.agents.graph_agent import GraphAgent
from graphagent.agents.invocation import RunOptions
from graphagent.agents.placeholders import Placeholder, placeholders
from graphagent.graph.builder import StateGraph
from graphagent.graph.schema import MessagesState
from graphagent.ledger import SessionKey
from graphagent.models import ScriptedModel
from processors import Instructions, SessionProjector, default_pipeline
from runner import Runner
from runner.artifacts import InMemoryArtifacts
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio

STATE = {"name": "Ann", "n": [1, "ä"], "none": None, "app:k": "A", "user:k": "U"}
CASES = [
    ("Hi {name}.", "Hi Ann."),
    ("{n} {app:k}{user:k}{invocation:who}{runtime:mode}", '[1, "ä"] AUmeshort'),
    ("{none} {none?}|{gone} {gone?}|", "{none} |{gone} |"),
    ("{{name}} {other:k} { name } {}", "{{name}} {other:k} { name } {}"),
    ("{artifact.my notes.txt}{artifact.gone?} {artifact.gone}", "a note {artifact.gone}"),
]


async def told(text: str, *, by_node: bool) -> str:
    """The system message that an instruction makes, of the model node or of the projection."""
    model, key = ScriptedModel(["ok"]), SessionKey("app", "u", "s")
    sessions, artifacts = InMemorySessions(), InMemoryArtifacts()
    await sessions.create(*key, state=STATE)
    await artifacts.save(key, "my notes.txt", b"a note")
    pipeline = default_pipeline(instructions=None if by_node else Instructions(text))
    agent = LLMAgent("bob", model, text if by_node else "")
    options = RunOptions(state={"mode": "short"}, extra={"who": "me"})
    projector = SessionProjector(pipeline)
    async with Runner("app", agent, sessions=sessions, artifacts=artifacts, projector=projector) as runner:
        await runner.run_text("u", "s", "hi", options)
    return model.requests[0].messages[0].text


@pytest.mark.parametrize(("text", "expected"), CASES)
@pytest.mark.parametrize("by_node", [True, False], ids=["node", "projection"])
async def test_both_say_the_same(text: str, expected: str, by_node: bool) -> None:
    """Scopes, artifacts, None, optional ones and braces that are no placeholder."""
    assert await told(text, by_node=by_node) == expected


class Desk(MessagesState):
    """A state with fields of its own."""

    name: str | None = None
    count: Annotated[int, add] = 2


@pytest.mark.parametrize(("own", "expected"), [({"name": "Bea"}, "Bea 2"), ({}, "Ann 2")])
async def test_the_state_of_the_graph_goes_first(own: dict[str, Any], expected: str) -> None:
    """A field of the graph's state, where it has a value; else the session's state."""
    model = ScriptedModel(["ok"])
    graph = StateGraph(Desk).add_llm_node("model", model, instruction="{name} {count}").set_entry_point("model")
    sessions = InMemorySessions()
    await sessions.create("app", "u", "s", state=STATE)
    async with Runner("app", GraphAgent("bob", graph.compile(), initial=own), sessions=sessions) as runner:
        await runner.run_text("u", "s", "hi")
    assert model.requests[0].messages[0] == Message.system(expected)


def test_the_placeholders_of_a_text() -> None:
    """Scope and key of each, in order; a text without braces has none."""
    found = list(placeholders("{a} {app:b?} {artifact.c d} {{e}} {x y}"))
    assert found == [Placeholder("", "a"), Placeholder("app", "b"), Placeholder("artifact", "c d")]
    assert [one.state_key for one in found[:2]] == ["a", "app:b"]
    assert list(placeholders("nothing")) == []
