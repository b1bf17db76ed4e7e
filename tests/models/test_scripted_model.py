"""ScriptedModel: each kind of item, what it keeps, and how it ends."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import anyio
import pytest

from graphagent.agents.assembler import Assembler, assemble
from graphagent.agents.model import Delta, Model, ModelRequest, Reply, ToolCallDelta
from graphagent.errors import ModelError
from graphagent.ledger import TokenUsage
from graphagent.messages import Message, ToolCall
from graphagent.models import ScriptedModel

pytestmark = pytest.mark.anyio


def asks(text: str) -> ModelRequest:
    """A request with one user message."""
    return ModelRequest((Message.user(text),))


async def deltas_of(model: Model, text: str = "hi") -> list[Delta]:
    """All deltas of the next answer."""
    return [delta async for delta in model.stream(asks(text))]


async def reply_of(model: Model, text: str = "hi") -> Reply:
    """The next answer, assembled."""
    return assemble(await deltas_of(model, text))


CALL = ToolCallDelta(0, "a", "f", '{"x": 1}')
MADE = ToolCall(id="a", name="f", arguments={"x": 1})
ITEMS: list[tuple[Any, Message, str]] = [
    ("Hello", Message.assistant("Hello"), "stop"),
    ("", Message.assistant(""), "stop"),
    (Message.assistant("Hello", reasoning="hm"), Message.assistant("Hello", reasoning="hm"), "stop"),
    (Message.assistant("", tool_calls=(MADE,)), Message.assistant("", tool_calls=(MADE,)), "tool_calls"),
    (
        {"tool_calls": [{"name": "f", "arguments": {"x": 1}}, {"name": "g"}]},
        Message.assistant(
            "",
            tool_calls=(ToolCall(id="call_0_0", name="f", arguments={"x": 1}), ToolCall(id="call_0_1", name="g")),
        ),
        "tool_calls",
    ),
    (
        {"content": "I look", "reasoning": "hm", "tool_calls": [{"id": "a", "name": "f", "arguments": '{"x": 1}'}]},
        Message.assistant("I look", reasoning="hm", tool_calls=(MADE,)),
        "tool_calls",
    ),
    ({"content": "cut", "finish_reason": "length"}, Message.assistant("cut"), "length"),
    (["Hel", "lo"], Message.assistant("Hello"), "stop"),
    ([Delta("Hel"), Delta(tool_calls=(CALL,))], Message.assistant("Hel", tool_calls=(MADE,)), "tool_calls"),
    (["Hel", Delta(finish_reason="incomplete")], Message.assistant("Hel"), "incomplete"),
    (lambda request: f"you said {request.messages[-1].text}", Message.assistant("you said hi"), "stop"),
]


@pytest.mark.parametrize("pieces", [None, 1, 3])
@pytest.mark.parametrize(("item", "message", "reason"), ITEMS, ids=range(len(ITEMS)))
async def test_items(item: Any, message: Message, reason: str, pieces: int | None) -> None:
    """Each kind of item gives the answer that it stands for, whole or in pieces."""
    reply = await reply_of(ScriptedModel([item], pieces=pieces))
    assert (reply.message, reply.finish_reason, reply.invalid) == (message, reason, ())


async def test_pieces_and_usage() -> None:
    """A text goes out in pieces of the given size; usage comes once, with the end."""
    usage = TokenUsage(input_tokens=3, output_tokens=2)
    model = ScriptedModel(["Hello"], pieces=2, usage=usage, context_window=9)
    deltas = await deltas_of(model)
    assert [delta.text for delta in deltas] == ["He", "ll", "o", ""]
    assert [delta.usage for delta in deltas] == [None, None, None, usage]
    assert model.context_window == 9


@pytest.mark.parametrize("error", [ModelError("no", kind="auth"), RuntimeError("no"), OSError])
async def test_an_exception_is_raised(error: Any) -> None:
    """An exception is raised at its place: instead of an answer, or after the first part of one."""
    with pytest.raises(error if isinstance(error, type) else type(error)):
        await deltas_of(ScriptedModel([error]))
    assembler = Assembler()
    with pytest.raises(OSError, match="gone"):  # noqa: PT012
        async for delta in ScriptedModel([["Hello wor", OSError("gone")]]).stream(asks("hi")):
            assembler.add(delta)
    assert (assembler.reply().message.text, assembler.reply().finish_reason) == ("Hello wor", "incomplete")


async def test_requests_are_kept_in_order() -> None:
    """What was asked is there to be looked at; with `keep_requests=False` nothing piles up."""
    model = ScriptedModel(["a", "b"])
    await deltas_of(model, "one")
    await deltas_of(model, "two")
    assert [request.messages[-1].text for request in model.requests] == ["one", "two"]
    forgetful = ScriptedModel(cycle(["a"]), keep_requests=False)
    for _ in range(3):
        await deltas_of(forgetful)
    assert forgetful.requests == []


async def test_a_script_that_is_over() -> None:
    """One request too many is a typed error that says how many items there were."""
    model = ScriptedModel(["a"], name="helper")
    await deltas_of(model)
    with pytest.raises(
        ModelError, match=r"script of model 'helper' is over: request 2 came and it has 1 item"
    ) as caught:
        await deltas_of(model)
    assert (caught.value.kind, caught.value.retryable) == ("invalid_request", False)


async def test_a_function_answers_without_end() -> None:
    """A function in place of the items answers every request."""
    model = ScriptedModel(lambda request: request.messages[-1].text.upper())
    assert [(await reply_of(model, text)).message.text for text in ("a", "b", "c")] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("item", "error", "told"),
    [
        ({"contents": "x"}, ValueError, "has 'contents': did you mean 'content'"),
        (7, TypeError, "is a 'int'; it must be a text, a Message"),
    ],
)
async def test_items_that_are_none(item: Any, error: type[Exception], told: str) -> None:
    """An item of a wrong kind says what it may be."""
    with pytest.raises(error, match=told):
        await deltas_of(ScriptedModel([item]))


async def test_a_slow_script_can_be_cancelled() -> None:
    """With a delay the model gives way, so that a cancelled reader stops between two pieces."""
    heard: list[str] = []
    with anyio.CancelScope() as scope:
        async for delta in ScriptedModel([["a", "b"]], delay=0.001).stream(asks("hi")):
            heard.append(delta.text)
            scope.cancel()
    assert heard == ["a"]
