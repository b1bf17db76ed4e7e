"""Asking a model what is to be remembered: what it is shown, and how its answer is read."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from graphagent.errors import ModelError
from graphagent.ledger import SessionKey, TokenUsage
from graphagent.models import ScriptedModel
from graphagent.services import Memory
from runner.memory import ExtractionError, ExtractionInput, ModelExtractor, Said
from runner.memory.assistant_episodes import EXCERPT, MOST_BYTES, MOST_PAIRS, MOST_TEXT, pairs_of
from runner.memory.dates import period

pytestmark = pytest.mark.anyio
AT = period("2023-05-08T13:56:00Z").start
KEY = SessionKey("app", "ann", "s1")


def given(*texts: str, **fields: Any) -> ExtractionInput:
    """What was said, user and assistant in turn."""
    said = tuple(Said("assistant" if place % 2 else "user", text, AT) for place, text in enumerate(texts))
    return ExtractionInput(KEY, said, now=AT + 3600, **fields)


def answer(*items: dict[str, Any]) -> str:
    """An answer with these operations."""
    return json.dumps({"operations": list(items)})


async def test_what_a_model_is_shown() -> None:
    """The messages with their times, so that it can work out dates; memories with ids; a schema with the allowed
    operations only."""
    model = ScriptedModel([answer()])
    seen = given("I met Ben yesterday", "nice", existing=(Memory("m1", "knows Ben"),), allowed=frozenset({"add"}))
    assert (await ModelExtractor(model).extract(seen)).operations == ()
    system, user = (message.text for message in model.requests[0].messages)
    assert "Dates are absolute" in system
    assert "[Monday 2023-05-08 13:56] user: I met Ben yesterday" in user
    assert "[m1] knows Ben" in user
    schema: Any = model.requests[0].output_schema
    assert schema["properties"]["operations"]["items"]["properties"]["type"]["enum"] == ["add"]


async def test_how_an_answer_is_read() -> None:
    """Dates become moments; what is empty isn't given, so that an update keeps it; a date that is none costs only
    itself; a code fence doesn't matter."""
    full = {"type": "add", "id": "", "memory": " met Ben ", "topics": ["friends", ""], "kind": "episode"}
    when = {"event_time": "2023-05-07", "participants": ["Ben"], "location": "Oslo"}
    empty = {"topics": [], "kind": "", "event_time": "", "participants": [], "location": ""}
    items = [
        {**full, **when},
        {"type": "update", "id": "m1", "memory": "knows Ben well", **empty},
        {"type": "add", "memory": "swims", "event_time": "some day"},
        {"type": "delete", "id": "m2", "memory": None},
    ]
    usage = TokenUsage(input_tokens=9, output_tokens=3)
    model = ScriptedModel([f"```json\n{answer(*items)}\n```"], usage=usage)
    found = await ModelExtractor(model).extract(given("hi"))
    assert found.usage == usage
    first, second, third, fourth = found.operations
    assert (first.kind, first.text) == ("add", "met Ben")
    assert first.about == {
        "topics": ["friends"],
        "kind": "episode",
        "event_time": period("2023-05-07").start,
        "participants": ["Ben"],
        "location": "Oslo",
    }
    assert (second.id, second.about) == ("m1", {})
    assert third.about == {}
    assert (fourth.kind, fourth.id) == ("delete", "m2")


async def test_an_answer_that_cannot_be_read_is_asked_for_again() -> None:
    """The model is told what is wrong; if it is wrong again that is an error, and so is a model that fails."""
    usage = TokenUsage(input_tokens=9, output_tokens=3)
    model = ScriptedModel(["no idea", answer({"type": "add", "memory": "x"})], usage=usage)
    found = await ModelExtractor(model).extract(given("hi"))
    assert [operation.text for operation in found.operations] == ["x"]
    assert found.usage is not None
    assert found.usage.input_tokens == 18
    assert "not as the schema asks" in model.requests[1].messages[-1].text
    with pytest.raises(ExtractionError, match=r"operations\.0\.type"):
        await ModelExtractor(ScriptedModel([answer({"memory": "x"})] * 2)).extract(given("hi"))
    with pytest.raises(ModelError):
        await ModelExtractor(ScriptedModel([])).extract(given("hi"))


async def test_episodes_of_answers() -> None:
    """Asked for, a second call makes episodes of what the assistant said, with the time of the answer and a text of
    bounded length; only additions count."""
    long = answer({"type": "add", "memory": "m" * 9000, "kind": "fact"}, {"type": "clear"})
    model = ScriptedModel([answer({"type": "add", "memory": "likes tea"}), long])
    found = await ModelExtractor(model, assistant_episodes=True).extract(given("which tea?", "Assam"))
    assert [operation.kind for operation in found.operations] == ["add", "add"]
    episode = found.operations[1]
    assert (episode.about["kind"], episode.about["event_time"]) == ("episode", AT)
    assert len(episode.text.encode()) <= MOST_TEXT
    assert "assistant: Assam" in model.requests[1].messages[1].text


async def test_episodes_never_cost_the_facts() -> None:
    """A second call that fails, or for which there is no time before the deadline, leaves what the first one found."""
    fact = answer({"type": "add", "memory": "likes tea"})
    model = ScriptedModel([fact, ModelError("down")])
    found = await ModelExtractor(model, assistant_episodes=True).extract(given("which tea?", "Assam"))
    assert [operation.text for operation in found.operations] == ["likes tea"]
    model = ScriptedModel([fact, fact])
    with anyio.fail_after(4):
        found = await ModelExtractor(model, assistant_episodes=True).extract(given("which tea?", "Assam"))
    assert [operation.text for operation in found.operations] == ["likes tea"]
    model = ScriptedModel([fact])
    await ModelExtractor(model, assistant_episodes=True).extract(given("nobody answers"))
    assert len(model.requests) == 1


def test_pairs_have_bounds() -> None:
    """The newest pairs, so many and so many bytes, each message an excerpt; of several answers the last."""
    said = [Said("user", "q"), Said("assistant", "first"), Said("assistant", "second"), Said("user", "open")]
    pairs, left = pairs_of(said)
    assert ([(pair.asked.text, pair.answer.text) for pair in pairs], left) == ([("q", "second")], 0)
    many = [Said(role, f"{role} {n}") for n in range(40) for role in ("user", "assistant")]
    pairs, left = pairs_of(many)
    assert (len(pairs), left, pairs[-1].answer.text) == (MOST_PAIRS, 8, "assistant 39")
    large = [Said(role, "語" * 9000) for _ in range(10) for role in ("user", "assistant")]
    pairs, left = pairs_of(large)
    sizes = [len(message.text.encode()) for pair in pairs for message in pair]
    assert max(sizes) <= EXCERPT
    assert sum(sizes) <= MOST_BYTES
    assert len(pairs) + left == 10
