"""Oddities of providers as byte streams over a real socket: what a LiteLLMModel makes of each, named after its case."""

from __future__ import annotations

from typing import Any

import pytest
from support.openai_server import LITELLM_WARNS, Answer, call, chunk, openai_server, says, usage_chunk, whole

from graphagent.agents.assembler import Assembler
from graphagent.agents.model import ModelRequest, Reply
from graphagent.errors import ModelError
from graphagent.ledger import TokenUsage
from graphagent.messages import Message
from graphagent.models import LiteLLMModel, Profile

pytestmark = [pytest.mark.anyio, *LITELLM_WARNS]
REQUEST = ModelRequest((Message.user("hi"),))


def calls(*entries: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A chunk with pieces of calls."""
    return chunk(finish, tool_calls=list(entries))


def stream(*events: dict[str, Any] | str, then: str = "done") -> Answer:
    """A stream of these chunks."""
    return Answer(events, then=then)


async def fill(assembler: Assembler, model: LiteLLMModel) -> None:
    """Put the whole answer of the model in."""
    async for delta in model.stream(REQUEST):
        assembler.add(delta)


async def reply_to(answer: Answer, **options: Any) -> Reply:
    """What a model that is asked once makes of the stream."""
    async with openai_server([answer]) as server:
        model = LiteLLMModel("openai/small", api_base=server.url, api_key="k", retries=0, **options)
        assembler = Assembler()
        await fill(assembler, model)
        return assembler.reply()


X1, X2 = '{"x": 1}', '{"x": 2}'
ONE = [("a", "f", {"x": 1})]
TWO = [("a", "f", {"x": 1}), ("b", "f", {"x": 2})]

CALLS: list[tuple[str, Answer, list[tuple[str, str, dict[str, Any]]]]] = [
    (
        "C195 three calls in the chunk of the finish reason",
        stream(calls(*(call(n, f"c{n}", "f", f'{{"x": {n}}}') for n in range(3)), finish="tool_calls")),
        [(f"c{n}", "f", {"x": n}) for n in range(3)],
    ),
    (
        "C195 the calls come after the finish reason",
        stream(chunk("tool_calls"), calls(call(0, "a", "f", X1))),
        ONE,
    ),
    (
        "C197 number 0 for each call",
        stream(calls(call(0, "a", "f", X1)), calls(call(0, "b", "f", X2)), chunk("tool_calls")),
        TWO,
    ),
    ("C199 numbers from 1", stream(calls(call(1, "a", "f", X1)), chunk("tool_calls")), ONE),
    (
        "no numbers",
        stream(calls(call(None, "a", "f", X1)), calls(call(None, "b", "f", X2)), chunk("tool_calls")),
        TWO,
    ),
    (
        "no ids",
        stream(calls(call(0, None, "f", X1), call(1, None, "f", X2)), chunk("tool_calls")),
        [("auto_call_0", "f", {"x": 1}), ("auto_call_1", "f", {"x": 2})],
    ),
    ("empty id", stream(calls(call(0, "", "f", X1)), chunk("tool_calls")), [("auto_call_0", "f", {"x": 1})]),
    (
        "the id changes",
        stream(calls(call(0, "a", "f", '{"x"')), calls(call(0, "z", None, ": 1}")), chunk("tool_calls")),
        ONE,
    ),
    (
        "the name in each chunk",
        stream(calls(call(0, "a", "f", '{"x"')), calls(call(0, "a", "f", ": 1}")), chunk("tool_calls")),
        ONE,
    ),
    ("arguments as an object", stream(calls(call(0, "a", "f", {"x": 1})), chunk("tool_calls")), ONE),
    ("null for arguments", stream(calls(call(0, "a", "f", None)), chunk("tool_calls")), [("a", "f", {})]),
    ("no arguments", stream(calls(call(0, "a", "f", "")), chunk("tool_calls")), [("a", "f", {})]),
    ("stop although there are calls", stream(calls(call(0, "a", "f", X1)), chunk("stop")), ONE),
    (
        "text before the calls",
        stream(chunk(content="I look it up"), calls(call(0, "a", "f", X1)), chunk("tool_calls")),
        ONE,
    ),
]


@pytest.mark.parametrize(("answer", "expected"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
async def test_calls_come_out_as_meant(answer: Answer, expected: list[tuple[str, str, dict[str, Any]]]) -> None:
    """Each stream gives the calls that were meant, each once, in order, none empty (C195, C197, C199)."""
    reply = await reply_to(answer)
    assert [(made.id, made.name, made.arguments) for made in reply.message.tool_calls] == expected
    assert (reply.finish_reason, reply.invalid) == ("tool_calls", ())


async def test_a_call_cut_by_the_token_limit_is_not_run() -> None:
    """Arguments that break off at the token limit make the call invalid, with a reason that the model is told."""
    reply = await reply_to(stream(calls(call(0, "a", "f", X1)), calls(call(1, "b", "g", '{"x"')), chunk("length")))
    assert reply.finish_reason == "length"
    [(cut, why)] = reply.invalid
    assert (cut.name, len(reply.message.tool_calls)) == ("g", 2)
    assert "cut at its token limit" in why


@pytest.mark.parametrize(
    ("answer", "text", "reasoning"),
    [
        (says("Hel", "lo"), "Hello", None),
        (stream(chunk("stop", content="all at once")), "all at once", None),
        (
            stream(chunk(reasoning_content="hm "), chunk(reasoning="so"), chunk(content="A"), chunk("stop")),
            "A",
            "hm so",
        ),
        (stream(chunk(content=None), chunk(content=""), chunk(content="A"), chunk("stop")), "A", None),
        (stream(*[chunk(content="| - |\n")] * 150, chunk("stop")), "| - |\n" * 150, None),
        (stream(chunk(content="A"), chunk("stop"), then="cut"), "A", None),
        (stream(chunk(content="A"), chunk("stop"), then="end"), "A", None),
        (stream(chunk(content="你"), chunk(content="好 🙂"), chunk("stop")), "你好 🙂", None),
    ],
    ids=[
        "plain",
        "one chunk",
        "reasoning",
        "null and empty",
        "150 equal chunks",
        "cut after the end",
        "no DONE",
        "CJK",
    ],
)
async def test_text_comes_out_whole(answer: Answer, text: str, reasoning: str | None) -> None:
    """Text and reasoning come out apart and whole, whatever the chunks look like."""
    reply = await reply_to(answer)
    assert (reply.message.text, reply.message.reasoning, reply.finish_reason) == (text, reasoning, "stop")


@pytest.mark.parametrize(
    "answer",
    [
        stream(chunk(content="A"), chunk("stop"), usage_chunk(9, 2, 4)),
        stream(chunk(content="A"), chunk("stop") | {"usage": usage_chunk(9, 2, 4)["usage"]}),
        stream(
            chunk(content="A") | {"usage": usage_chunk(9, 1, 4)["usage"]},
            chunk(content="B") | {"usage": usage_chunk(9, 2, 4)["usage"]},
            chunk("stop"),
        ),
    ],
    ids=["a chunk without choices", "in the last chunk", "growing"],
)
async def test_usage_is_counted_once(answer: Answer) -> None:
    """Usage comes out once, wherever in the stream the provider put it."""
    assert (await reply_to(answer)).usage == TokenUsage(input_tokens=9, output_tokens=2, cached_tokens=4)


BROKEN = {
    "C202 the socket is cut": stream(chunk(content="Hello"), chunk(content=" wor"), then="cut"),
    "C202 an error event": stream(chunk(content="Hello"), chunk(content=" wor"), {"error": {"message": "overloaded"}}),
    "C204 the stream just ends": stream(chunk(content="Hello"), chunk(content=" wor"), then="end"),
    "C204 DONE without a finish reason": stream(chunk(content="Hello"), chunk(content=" wor")),
    "no JSON": stream(chunk(content="Hello"), chunk(content=" wor"), "{no json"),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_c202_c204_what_breaks_off_is_an_error_and_never_comes_twice(answer: Answer) -> None:
    """A stream that breaks off after text raises `stream_error`; it is not asked again, so nothing comes twice."""
    async with openai_server([answer, says("Hello world")]) as server:
        model = LiteLLMModel("openai/small", api_base=server.url, api_key="k", retries=3)
        assembler = Assembler()
        with pytest.raises(ModelError) as caught:
            await fill(assembler, model)
    assert (caught.value.kind, caught.value.retryable) == ("stream_error", True)
    assert (assembler.reply().message.text, assembler.reply().finish_reason) == ("Hello wor", "incomplete")
    assert len(server.requests) == 1


@pytest.mark.parametrize("then", ["done", "end"])
async def test_c204_a_provider_that_never_says_why_it_ends(then: str) -> None:
    """With a profile that says so, a stream without a finish reason that ends well is whole."""
    answer = stream(chunk(content="Hello"), chunk(content=" world"), then=then)
    reply = await reply_to(answer, profile=Profile(ends_silently=True))
    assert (reply.message.text, reply.finish_reason) == ("Hello world", "stop")


async def test_c204_the_profile_does_not_hide_a_cut() -> None:
    """With the same profile a socket that is cut is an error all the same."""
    with pytest.raises(ModelError, match="broke off"):
        await reply_to(BROKEN["C202 the socket is cut"], profile=Profile(ends_silently=True))


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body={"error": {"message": "no"}}),
        whole("not streamed"),
        stream(then="end"),
        stream({"error": {"message": "no"}}),
    ],
    ids=["an error with status 200", "a body instead of a stream", "nothing", "an error event first"],
)
async def test_no_answer_is_an_error(answer: Answer) -> None:
    """A stream in which nothing comes is `api_error`, not an empty answer."""
    with pytest.raises(ModelError) as caught:
        await reply_to(answer)
    assert (caught.value.kind, caught.value.retryable) == ("api_error", True)
