"""LiteLLMModel over a real socket: what it asks, how it fails and tries again, what a cancelled call leaves behind."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import pytest
from support.openai_server import LITELLM_WARNS, Answer, chunk, fails, openai_server, says, whole

from graphagent.agents.assembler import Assembler
from graphagent.agents.model import GenerationConfig, ModelRequest, Reply, ToolSpec
from graphagent.errors import ModelError
from graphagent.messages import Message, ToolCall
from graphagent.models import LiteLLMModel, Profile

pytestmark = [pytest.mark.anyio, *LITELLM_WARNS]
HI = ModelRequest((Message.user("hi"),))
WEATHER = ToolSpec("weather", "The weather of a city.", {"type": "object", "properties": {"city": {"type": "string"}}})
SCHEMA = {"title": "Answer", "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Waits:
    """A clock on which no time passes; it keeps what was waited for."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


async def ask(server: Any, request: ModelRequest = HI, **options: Any) -> Reply:
    """The whole answer of a model at that server."""
    model = LiteLLMModel("openai/small", api_base=server.url, **{"api_key": "secret", "clock": Waits()} | options)
    assembler = Assembler()
    async for delta in model.stream(request):
        assembler.add(delta)
    return assembler.reply()


def test_litellm_is_imported_at_the_first_call_only() -> None:
    """Importing the models and making one loads no litellm; asking for its window neither."""
    code = (
        "import sys; from graphagent.models import LiteLLMModel; m = LiteLLMModel('openai/gpt-4o');"
        "assert m.context_window == 128000; assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


async def test_a_request_goes_out_as_it_was_meant() -> None:
    """Messages, tools, choice, schema and generation parameters arrive; what was not asked for isn't sent."""
    history = (
        Message.system("Be short."),
        Message.user([{"type": "text", "text": "What is this?"}]),
        Message.assistant(
            "", tool_calls=(ToolCall(id="c1", name="weather", arguments={"city": "Köln"}),), reasoning="hm"
        ),
        Message.tool("12 degrees", "c1"),
    )
    config = GenerationConfig(temperature=0.0, stop=("END",), extra={"presence_penalty": 0.5})
    request = ModelRequest(history, (WEATHER,), SCHEMA, config, tool_choice="weather")
    async with openai_server([says("ok")]) as server:
        await ask(
            server, request, config=GenerationConfig(temperature=1.0, max_tokens=9, extra={"presence_penalty": 0.1})
        )
    [sent] = server.requests
    assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "tool"]
    [call] = sent["messages"][2]["tool_calls"]
    assert (call["id"], call["function"]) == ("c1", {"name": "weather", "arguments": '{"city": "Köln"}'})
    assert "reasoning_content" not in sent["messages"][2]
    assert sent["messages"][3] == {"role": "tool", "content": "12 degrees", "tool_call_id": "c1"}
    assert sent["tools"][0]["function"]["parameters"] == WEATHER.parameters
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert sent["response_format"]["json_schema"] == {"name": "Answer", "schema": SCHEMA, "strict": False}
    assert sent["parallel_tool_calls"] is False
    assert (sent["temperature"], sent["max_tokens"], sent["stop"]) == (0.0, 9, ["END"])
    assert sent["presence_penalty"] == 0.5
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})
    assert not {"top_p", "seed", "reasoning_effort"} & set(sent)
    assert server.headers[0]["authorization"] == "Bearer secret"


async def test_a_provider_that_cannot_stream() -> None:
    """With a profile that says so the answer comes in one piece, calls and usage in it."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Köln"}'}}]
    async with openai_server([whole(None, tool_calls=calls), whole("Hello")]) as server:
        asked = await ask(server, profile=Profile(streams=False))
        said = await ask(server, profile=Profile(streams=False))
    assert asked.message.tool_calls == (ToolCall(id="c1", name="weather", arguments={"city": "Köln"}),)
    assert (said.message.text, said.finish_reason, said.usage.output_tokens) == ("Hello", "stop", 3)
    assert "stream_options" not in server.requests[0]


@pytest.mark.parametrize(
    "body", [{"error": {"message": "no"}}, {"id": "1", "object": "chat.completion", "choices": []}]
)
async def test_a_body_without_an_answer(body: dict[str, Any]) -> None:
    """A body that holds an error or no choice is a ModelError, not an empty answer."""
    async with openai_server([Answer(body=body)]) as server:
        with pytest.raises(ModelError, match="model 'openai/small'"):
            await ask(server, profile=Profile(streams=False), retries=0)


async def test_reasoning_goes_back_to_a_provider_that_wants_it() -> None:
    """With a profile that says so, an assistant's earlier thinking is sent."""
    request = ModelRequest((Message.user("a"), Message.assistant("b", reasoning="hm"), Message.user("c")))
    async with openai_server([says("ok")]) as server:
        await ask(server, request, profile=Profile(wants_reasoning=True))
    assert server.requests[0]["messages"][1]["reasoning_content"] == "hm"


# -- failures -------------------------------------------------------------------------------------------------

ERRORS = [
    (fails(400, "This model's maximum context length is 10", code="context_length_exceeded"), "context_length", 1),
    (fails(400, "prompt is too long: 9 tokens"), "context_length", 1),
    (fails(400, "no such field"), "invalid_request", 1),
    (fails(404, "no such model"), "invalid_request", 1),
    (fails(413, "too large"), "invalid_request", 1),
    (fails(422, "no"), "invalid_request", 1),
    (fails(401, "bad key"), "auth", 1),
    (fails(403, "not yours"), "auth", 1),
    (fails(429, "slow down"), "rate_limit", 3),
    (fails(429, "no money", code="insufficient_quota"), "rate_limit", 1),
    (fails(500, "boom"), "api_error", 3),
    (fails(503, "boom"), "api_error", 3),
    (Answer([{"error": {"message": "boom"}}]), "api_error", 3),
    (Answer(then="cut"), "api_error", 3),
]


@pytest.mark.parametrize(
    ("answer", "kind", "requests"), ERRORS, ids=[f"{row[0].status}-{row[1]}-{n}" for n, row in enumerate(ERRORS)]
)
async def test_failures_have_a_kind_and_are_repeated_where_it_may_help(
    answer: Answer, kind: str, requests: int
) -> None:
    """Each failure of a provider has its kind; only those that may pass are asked again, as often as said."""
    async with openai_server([answer] * 9) as server:
        with pytest.raises(ModelError, match="model 'openai/small'") as caught:
            await ask(server, retries=2)
    assert (caught.value.kind, len(server.requests)) == (kind, requests)
    assert caught.value.retryable is (requests > 1)
    assert caught.value.__cause__ is not None


async def test_nobody_listens() -> None:
    """A server that isn't there is an `api_error` that may be tried again."""
    async with openai_server([]) as server:
        pass
    with pytest.raises(ModelError) as caught:
        await ask(server, retries=1)
    assert (caught.value.kind, caught.value.retryable) == ("api_error", True)


async def test_an_attempt_after_failures_gives_the_answer_once() -> None:
    """Two failures before the first piece, then an answer: it comes whole, and once."""
    clock = Waits()
    async with openai_server([fails(500, "boom"), Answer(then="cut"), says("Hel", "lo")]) as server:
        reply = await ask(server, retries=2, clock=clock)
    assert reply.message.text == "Hello"
    assert len(clock.waited) == 2
    assert clock.waited[0] < clock.waited[1] * 2 <= 4


@pytest.mark.parametrize(
    ("header", "waited"),
    [({"retry_after": "7"}, [7.0]), ({"retry_after_ms": "250"}, [0.25]), ({"retry_after": "900"}, [])],
)
async def test_a_provider_says_how_long_to_wait(header: dict[str, str], waited: list[float]) -> None:
    """What the provider asks for is waited for, unless it is more than a minute: then the failure is raised."""
    clock = Waits()
    async with openai_server([fails(429, "slow", **header), says("ok")]) as server:
        if waited:
            assert (await ask(server, clock=clock)).message.text == "ok"
        else:
            with pytest.raises(ModelError, match="slow"):
                await ask(server, clock=clock)
    assert clock.waited == waited


@pytest.mark.parametrize("events", [[], [chunk(content="Hel")]], ids=["before the first piece", "between two pieces"])
async def test_silence_is_a_timeout(events: list[dict[str, Any]]) -> None:
    """A server that goes silent is left after `timeout` seconds, before the first piece and between two."""
    async with openai_server([Answer(events, then="hold")]) as server:
        with pytest.raises(ModelError, match=r"nothing came for 0\.3 s|timed out|Timeout") as caught:
            await ask(server, timeout=0.3, retries=0)
        with anyio.fail_after(5):
            await server.left.wait()
    assert caught.value.kind == ("stream_error" if events else "timeout")


# -- cancelling -----------------------------------------------------------------------------------------------


async def test_a_cancelled_call_closes_its_connection() -> None:
    """Cancelling in the middle of an answer closes the connection, so that the provider stops; the text is kept."""
    assembler = Assembler()
    async with openai_server([Answer([chunk(content="Hel")], then="hold")]) as server:
        model = LiteLLMModel("openai/small", api_base=server.url, api_key="k")
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                async for delta in model.stream(HI):
                    assembler.add(delta)
                    tasks.cancel_scope.cancel()

            tasks.start_soon(read)
        with anyio.fail_after(5):
            await server.left.wait()
    assert (assembler.reply().message.text, assembler.reply().finish_reason) == ("Hel", "incomplete")


async def test_a_reader_that_stops_closes_the_connection() -> None:
    """A reader that closes the stream closes the connection, without being cancelled."""
    async with openai_server([Answer([chunk(content="Hel")], then="hold")]) as server:
        stream = LiteLLMModel("openai/small", api_base=server.url, api_key="k").stream(HI)
        assert (await anext(stream)).text == "Hel"
        await stream.aclose()  # type: ignore[attr-defined]
        with anyio.fail_after(5):
            await server.left.wait()


async def test_calls_do_not_hold_each_other_up() -> None:
    """Twenty calls at once through one model each get their own answer."""

    def answer(body: dict[str, Any]) -> Answer:
        return says("you said ", body["messages"][-1]["content"])

    found: dict[int, str] = {}
    async with openai_server(answer) as server, anyio.create_task_group() as tasks:

        async def one(n: int) -> None:
            found[n] = (await ask(server, ModelRequest((Message.user(f"<{n}>"),)))).message.text

        for n in range(20):
            tasks.start_soon(one, n)
    assert found == {n: f"you said <{n}>" for n in range(20)}
