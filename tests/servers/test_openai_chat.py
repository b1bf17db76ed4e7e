"""The OpenAI-compatible server by way of the `openai` SDK, sync and async, and of litellm."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel
from support.serving import Server, served

pytestmark = pytest.mark.anyio

MINE = {
    "type": "function",
    "function": {
        "name": "mine",
        "description": "Do something here.",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
    },
}
THINE = {"type": "function", "function": {"name": "thine"}}


class Asked(BaseModel):
    """What the agent of the tests answers to 'schema'."""

    asked: dict[str, Any]


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[OpenAI]:
    """A client of a server of `bob`."""
    with OpenAI(base_url=server.base, api_key="any", max_retries=0, timeout=30) as made:
        yield made


@pytest.fixture
async def later(server: Server) -> AsyncIterator[AsyncOpenAI]:
    """The same, async."""
    async with AsyncOpenAI(base_url=server.base, api_key="any", max_retries=0, timeout=30) as made:
        yield made


def user(text: str) -> dict[str, str]:
    """A message of the person."""
    return {"role": "user", "content": text}


def ask(client: OpenAI, *messages: Any, session: str | None = None, **fields: Any) -> Any:
    """A request; a text is a message of the person."""
    said = [user(one) if isinstance(one, str) else one for one in messages]
    headers = {} if session is None else {"X-Session-Id": session}
    return client.chat.completions.create(model="bob", messages=said, extra_headers=headers, **fields)


def text_of(answer: Any) -> str:
    """The text of an answer."""
    return str(answer.choices[0].message.content)


def test_models_are_listed(client: OpenAI) -> None:
    """The agent is the one model; another name is 404 with the code that clients know."""
    assert [one.id for one in client.models.list()] == ["bob"]
    assert client.models.retrieve("bob").object == "model"
    with pytest.raises(openai.NotFoundError) as raised:
        client.models.retrieve("bib")
    assert raised.value.code == "model_not_found"


def test_text(client: OpenAI) -> None:
    """An answer in one piece, with its end and the tokens of the run."""
    answer = ask(client, "hi")
    assert text_of(answer) == "hi (1)"
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (7, 3, 10)
    assert answer.usage.prompt_tokens_details.cached_tokens == 2


async def test_text_async(later: AsyncOpenAI) -> None:
    """The same through the async client."""
    answer = await later.chat.completions.create(model="bob", messages=[user("hi")])  # type: ignore[list-item]
    assert text_of(answer) == "hi (1)"


def test_stream_services_case_76(client: OpenAI) -> None:
    """Pieces add up to the answer, all chunks have one id, the role comes first, the finish reason once and last."""
    chunks = list(ask(client, "hello there", stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks) == "hello there (1)"
    assert len({one.id for one in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [one.choices[0].finish_reason for one in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert len(chunks) > 4
    assert all(one.usage is None for one in chunks)


def test_stream_with_usage(client: OpenAI) -> None:
    """With `include_usage` a chunk without choices comes last, and has the tokens."""
    *others, last = ask(client, "hi", stream=True, stream_options={"include_usage": True})
    assert (last.choices, last.usage.total_tokens) == ([], 10)
    assert all(one.usage is None for one in others)


async def test_stream_async(later: AsyncOpenAI) -> None:
    """The SDK's own stream helper reads it."""
    async with later.chat.completions.stream(model="bob", messages=[user("hi")]) as stream:  # type: ignore[list-item]
        kinds = [event.type async for event in stream]
        answer = await stream.get_final_completion()
    assert text_of(answer) == "hi (1)"
    assert kinds[-1] == "content.done"


def test_own_tools_of_the_agent_are_not_the_clients(client: OpenAI) -> None:
    """Calls that the agent runs itself are not handed out; the answer is what it says in the end."""
    answer = ask(client, "look here")
    assert text_of(answer) == "it says: seen here"
    assert answer.choices[0].message.tool_calls is None
    assert answer.usage.total_tokens == 20
    chunks = list(ask(client, "look here", stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks) == "let me see\n\nit says: seen here"


@pytest.mark.parametrize("session", [None, "tools-1"])
@pytest.mark.parametrize("stream", [False, True])
def test_tools_round_trip(client: OpenAI, session: str | None, stream: bool) -> None:
    """Calls of the client's tools are handed out, and its results go on with the run, with a session and without."""
    session = session and f"{session}-{stream}"
    first = ask(client, "mine x", tools=[MINE], session=session, stream=stream)
    if stream:
        deltas = [one.choices[0] for one in first]
        [call] = [call for one in deltas for call in one.delta.tool_calls or ()]
        assert deltas[-1].finish_reason == "tool_calls"
    else:
        assert first.choices[0].finish_reason == "tool_calls"
        [call] = first.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("mine", {"what": "x"})
    result = {"role": "tool", "tool_call_id": call.id, "content": "done"}
    function = {"name": "mine", "arguments": call.function.arguments}
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": call.id, "function": function}]}
    before = [] if session else ["mine x", asked]
    assert text_of(ask(client, *before, result, tools=[MINE], session=session)) == "it says: done"
    again = ["again"] if session else ["mine x", asked, result, {"role": "assistant", "content": "ok"}, "again"]
    assert text_of(ask(client, *again, tools=[MINE], session=session)) == "again (2)"


def test_several_results_are_one_run_services_case_65(client: OpenAI) -> None:
    """Two calls of the client's beside one of the agent's: two are handed out, both results make one answer."""
    first = ask(client, "both mine,look,thine", tools=[MINE, THINE], session="several")
    calls = first.choices[0].message.tool_calls
    assert [one.function.name for one in calls] == ["mine", "thine"]
    results = [{"role": "tool", "tool_call_id": one.id, "content": one.function.name} for one in calls]
    answer = ask(client, *reversed(results), tools=[MINE, THINE], session="several")
    assert sorted(text_of(answer).removeprefix("it says: ").split(" & ")) == ["mine", "seen 1", "thine"]


def test_tool_choice_services_case_74(client: OpenAI) -> None:
    """`none` hides the client's tools from the model, `auto` is the rule, `required` is refused."""
    names = json.loads(text_of(ask(client, "tools", tools=[MINE])))
    assert "mine" in names
    assert json.loads(text_of(ask(client, "tools", tools=[MINE], tool_choice="auto"))) == names
    assert "mine" not in json.loads(text_of(ask(client, "tools", tools=[MINE], tool_choice="none")))
    for choice in ("required", {"type": "function", "function": {"name": "mine"}}):
        with pytest.raises(openai.BadRequestError) as raised:
            ask(client, "tools", tools=[MINE], tool_choice=choice)
        assert raised.value.param == "tool_choice"


def test_a_client_cannot_take_the_place_of_the_agents_tools(client: OpenAI) -> None:
    """A tool with the name of one of the agent's is refused before anything runs."""
    with pytest.raises(openai.BadRequestError, match="'look' of its own") as raised:
        ask(client, "hi", tools=[{"type": "function", "function": {"name": "look"}}])
    assert raised.value.param == "tools.0.function.name"


def test_sessions_services_case_77(client: OpenAI) -> None:
    """Without the header each request has a session of its own, whose id comes back; with it the talk goes on."""
    assert text_of(ask(client, "one")) == "one (1)"
    assert text_of(ask(client, "two")) == "two (1)"
    assert text_of(ask(client, "one", session="case-77")) == "one (1)"
    assert text_of(ask(client, "two", session="case-77")) == "two (2)"
    raw = client.chat.completions.with_raw_response.create(model="bob", messages=[user("one")])  # type: ignore[list-item]
    assert text_of(ask(client, "two", session=raw.headers["x-session-id"])) == "two (2)"


def test_history_counts_where_the_session_is_new(client: OpenAI) -> None:
    """Earlier messages are the history of a new session; one that has events knows its own."""
    earlier = ["a", {"role": "assistant", "content": "b"}]
    assert text_of(ask(client, *earlier, "c")) == "c (2)"
    assert text_of(ask(client, *earlier, "c", session="seeded")) == "c (2)"
    assert text_of(ask(client, *earlier, "c", {"role": "assistant", "content": "d"}, "e", session="seeded")) == "e (3)"
    assert text_of(ask(client, {"role": "developer", "content": "Be kind"}, "roles")) == (
        "system:Be brief.\n\nBe kind user:roles"
    )


def test_generation_parameters_services_case_75(client: OpenAI) -> None:
    """Parameters of a request reach the model; what the request doesn't set stays the agent's."""
    fields = {"temperature": 0.5, "top_p": 0.9, "max_completion_tokens": 9, "stop": "x", "seed": 4}
    more = {"presence_penalty": 1, "reasoning_effort": "low", "parallel_tool_calls": False}
    config = json.loads(text_of(ask(client, "config", **fields, **more)))
    assert config == {
        "temperature": 0.5, "top_p": 0.9, "max_tokens": 9, "stop": ["x"], "seed": 4, "reasoning_effort": "low",
        "parallel_tool_calls": False, "extra": {"presence_penalty": 1},
    }  # fmt: skip
    assert json.loads(text_of(ask(client, "config")))["temperature"] is None


def test_parameters_within_the_servers_limits(tmp_path: Path) -> None:
    """A server may bound tokens and name the parameters that clients set; others are refused, and told which."""
    with served(tmp_path, "bob", "--most-tokens", "50", "--parameter", "max_tokens", "--parameter", "seed") as up:
        assert json.loads(up.chat("config").json()["choices"][0]["message"]["content"])["max_tokens"] == 50
        assert up.chat("config", max_tokens=51).json()["error"]["param"] == "max_tokens"
        assert up.chat("config", temperature=0).json()["error"]["code"] == "unsupported_parameter"
        assert up.chat("config", max_tokens=20, seed=1).status_code == 200


def test_structured_output(client: OpenAI) -> None:
    """The client's schema reaches the model, and what comes is JSON alone, in one piece or streamed."""
    parsed = client.chat.completions.parse(model="bob", messages=[user("schema")], response_format=Asked)  # type: ignore[list-item]
    assert parsed.choices[0].message.parsed is not None
    assert parsed.choices[0].message.parsed.asked["required"] == ["asked"]
    with client.chat.completions.stream(model="bob", messages=[user("schema")], response_format=Asked) as stream:  # type: ignore[list-item]
        assert stream.until_done().get_final_completion().choices[0].message.parsed is not None
    wanted = {"type": "json_object"}
    assert json.loads(text_of(ask(client, "schema", response_format=wanted))) == {"asked": {"type": "object"}}


def test_an_answer_that_does_not_fit_its_schema(client: OpenAI) -> None:
    """Text where JSON was asked for is an error of the server's model, not an answer."""
    with pytest.raises(openai.APIStatusError) as raised:
        ask(client, "hello", response_format={"type": "json_object"})
    assert (raised.value.status_code, raised.value.code) == (502, "output_does_not_fit")


def test_agents_that_settle_the_form_themselves(tmp_path: Path) -> None:
    """An agent with a schema of its own refuses another, and its answer comes whole after a second attempt."""
    with served(tmp_path, "shaped") as up, OpenAI(base_url=up.base, api_key="any", max_retries=0) as client:
        with pytest.raises(openai.BadRequestError, match="decides itself"):
            client.chat.completions.create(
                model="shaped", messages=[user("x")], response_format={"type": "json_object"}  # type: ignore[list-item]
            )  # fmt: skip
        pieces = client.chat.completions.create(model="shaped", messages=[user("x")], stream=True)  # type: ignore[list-item]
        assert "".join(one.choices[0].delta.content or "" for one in pieces) == '{"n": 1}'
        with pytest.raises(openai.BadRequestError, match=r"ClientTools\(\)"):
            client.chat.completions.create(model="shaped", messages=[user("x")], tools=[MINE])  # type: ignore[list-item]


def test_questions_to_a_person(client: OpenAI) -> None:
    """A run that asks says so beside its answer; something new is refused until the question is answered."""
    first = ask(client, "drop it", session="asks")
    [question] = first.interrupts
    assert first.choices[0].finish_reason == "stop"
    with pytest.raises(openai.ConflictError) as raised:
        ask(client, "hello", session="asks")
    assert raised.value.code == "interrupted"
    with pytest.raises(openai.BadRequestError) as raised_too:
        ask(client, "yes", session="asks", extra_body={"answers": {"nobody": True}})
    assert raised_too.value.code == "answers_do_not_fit"
    answer = ask(client, "yes", session="asks", extra_body={"answers": {question["key"]: False}})
    assert "denied" in text_of(answer)
