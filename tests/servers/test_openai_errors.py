"""What the OpenAI-compatible server refuses, and how: the API's own shape and status, never a stack trace."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI
from support.serving import ANN, EVE, Server, served

TOOL_MESSAGE = {"role": "tool", "content": "x"}
CALLS = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "mine", "arguments": "{}"}}]}
SCHEMA = {"type": "json_schema", "json_schema": {"schema": {"required": 5}}}


def said(role: str, content: Any, **more: Any) -> list[dict[str, Any]]:
    """One message."""
    return [{"role": role, "content": content, **more}]


REFUSED: list[tuple[str, dict[str, Any], int, str | None]] = [
    ("no messages, services case 58", {"messages": []}, 400, "messages"),
    ("messages that are no list", {"messages": "hi"}, 400, "messages"),
    ("the assistant speaks last, services case 58", {"messages": said("assistant", "x")}, 400, "messages.0.role"),
    ("a system message last", {"messages": said("system", "x")}, 400, "messages.0.role"),
    ("an unknown role", {"messages": said("robot", "x")}, 400, "messages.0.role"),
    ("a tool message without its call, services case 73", {"messages": [TOOL_MESSAGE]}, 400, "messages.0.tool_call_id"),
    ("a result that nobody waits for", {"messages": said("tool", "x", tool_call_id="c9")}, 400, "messages"),
    ("a result for another call", {"messages": [CALLS, {**TOOL_MESSAGE, "tool_call_id": "c2"}]}, 400, "messages"),
    ("one call answered twice", {"messages": [CALLS, *[{**TOOL_MESSAGE, "tool_call_id": "c1"}] * 2]}, 400, "messages"),
    ("a picture as a result", {"messages": said("tool", [{"type": "image_url", "image_url": {"url": "x"}}],
                                                tool_call_id="c1")}, 400, "messages.0.content.0"),
    ("empty content", {"messages": said("user", "")}, 400, "messages.0.content"),
    ("no content", {"messages": said("user", None)}, 400, "messages.0.content"),
    ("an unknown part", {"messages": said("user", [{"type": "smell"}])}, 400, "messages.0.content.0"),
    ("a part without its payload", {"messages": said("user", [{"type": "text"}])}, 400, "messages.0.content.0"),
    ("content that is a number", {"messages": said("user", 5)}, 400, "messages.0.content"),
    ("arguments that are no JSON", {"messages": [{"role": "assistant", "tool_calls": [
        {"id": "c1", "function": {"name": "mine", "arguments": "{"}}]}, *said("user", "x")]},
        400, "messages.0.tool_calls.0"),
    ("tool calls of a user", {"messages": [{**CALLS, "role": "user", "content": "x"}]}, 400, "messages.0.tool_calls"),
    ("a NUL", {"messages": said("user", "a\0b")}, 400, None),
    ("half of a surrogate pair", {"messages": said("user", "a\ud800b")}, 400, None),
    ("no model", {"model": None}, 400, "model"),
    ("another model", {"model": "gpt-9"}, 404, "model"),
    ("several answers", {"n": 2}, 400, "n"),
    ("a temperature too high", {"temperature": 2.1}, 400, "temperature"),
    ("a temperature as text", {"temperature": "hot"}, 400, "temperature"),
    ("true as a number", {"max_tokens": True}, 400, "max_tokens"),
    ("no tokens", {"max_tokens": 0}, 400, "max_tokens"),
    ("options of a stream without one", {"stream_options": {}}, 400, "stream_options"),
    ("stream as text", {"stream": "yes"}, 400, "stream"),
    ("former functions", {"functions": [{"name": "x"}]}, 400, "functions"),
    ("log probabilities", {"logprobs": True}, 400, "logprobs"),
    ("spoken answers", {"modalities": ["text", "audio"]}, 400, "modalities"),
    ("a tool of another type", {"tools": [{"type": "search"}]}, 400, "tools.0.type"),
    ("a tool without a name", {"tools": [{"function": {}}]}, 400, "tools.0.function.name"),
    ("a bad name", {"tools": [{"function": {"name": "a b"}}]}, 400, "tools.0.function.name"),
    ("two tools with one name", {"tools": [{"function": {"name": "a"}}] * 2}, 400, "tools.1.function.name"),
    ("parameters that are a list", {"tools": [{"function": {"name": "a", "parameters": {"type": "array"}}}]}, 400,
     "tools.0.function.parameters"),
    ("an unknown format", {"response_format": {"type": "xml"}}, 400, "response_format.type"),
    ("a format without its schema", {"response_format": {"type": "json_schema"}}, 400, "response_format.json_schema"),
    ("a schema that is none", {"response_format": SCHEMA}, 400, "response_format.json_schema.schema.required"),
    ("answers without a session", {"answers": {"x": 1}}, 400, "answers"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "status", "param"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_a_request_that_does_not_fit(server: Server, fields: dict[str, Any], status: int, param: str | None) -> None:
    """Each is refused before anything runs, in the API's shape, with the field that is meant."""
    body = {"model": "bob", "messages": said("user", "hi"), **fields}
    raw = json.dumps(body).encode()
    kind = {"content-type": "application/json"}
    answer = httpx.post(f"{server.base}/chat/completions", content=raw, headers=kind, timeout=30)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert error["message"]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"null", "application/json", 400),
        (b'{"model": NaN}', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"a":' * 90 + b"1" + b"}" * 90, "application/json", 400),
        (b"1" * 5_000, "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"{}", "", 415),
        (b" " * 4_000_001, "application/json", 413),
    ],
    ids=["cut", "empty", "list", "null", "nan", "no utf-8", "deep", "deep objects", "number", "text", "none", "large"],
)
def test_a_body_that_is_no_request(server: Server, body: bytes, kind: str, status: int) -> None:
    """A body that can't be read is said to be so, services case 58; a web page's plain text is not taken either."""
    answer = httpx.post(f"{server.base}/chat/completions", content=body, headers={"content-type": kind}, timeout=30)
    assert answer.status_code == status
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/chat/completions", 405),
        ("PATCH", "/v1/chat/completions", 405),
        ("POST", "/v1/models", 405),
        ("POST", "/v1/embeddings", 404),
        ("GET", "/v1/", 404),
    ],
)
def test_other_ways(server: Server, method: str, path: str, status: int) -> None:
    """Other methods and paths below the API are errors in its shape."""
    answer = httpx.request(method, f"{server.url}{path}")
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("fail", 502, "model_error"),
        ("fail rate_limit", 429, "rate_limit_exceeded"),
        ("fail context_length", 400, "context_length_exceeded"),
        ("fail timeout", 504, "model_timeout"),
        ("half", 502, "model_error"),
        ("stop now", 422, "stopped"),
    ],
)
def test_a_run_that_fails(server: Server, text: str, status: int, code: str) -> None:
    """How a run failed is its status and code; what the provider said stays in the log. In a stream it is the last
    event before `[DONE]`, services case 63, and the SDK raises it."""
    answer = server.chat(text)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert "secret-host" not in answer.text
    events = [line for line in server.chat(text, stream=True).text.split("\n\n") if line]
    assert events[-1] == "data: [DONE]"
    assert json.loads(events[-2].removeprefix("data: "))["error"]["code"] == code
    assert sum("error" in one for one in events) == 1
    with OpenAI(base_url=server.base, api_key="x", max_retries=0) as client, pytest.raises(openai.APIError):
        list(client.chat.completions.create(model="bob", messages=[{"role": "user", "content": text}], stream=True))


def test_an_answer_given_twice_dev_case_C202(tmp_path: Path) -> None:
    """A model that is asked again after part of its answer: a stream ends with an error, a whole answer is right."""
    with served(tmp_path, "again") as up:
        assert up.chat("x", model="again").json()["choices"][0]["message"]["content"] == "Hello world"
        events = up.chat("x", model="again", stream=True).text.split("\n\n")
    assert json.loads(events[-3].removeprefix("data: "))["error"]["code"] == "answer_changed"
    assert events[-2:] == ["data: [DONE]", ""]


def test_a_run_that_cannot_begin_services_case_78(tmp_path: Path) -> None:
    """A store that fails is a 500 in the API's shape, which doesn't name the store; readiness says it too."""
    with served(tmp_path, "bob", "--db", "gone.db") as up:
        assert up.chat("hi").status_code == 200
        assert httpx.get(f"{up.url}/readyz").status_code == 200
        with closing(sqlite3.connect(tmp_path / "gone.db")) as database:
            tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
            for name in tables:
                database.execute(f'drop table if exists "{name}"')
            database.commit()
        answer = up.chat("hi", {"X-Session-Id": "s"})
        assert (answer.status_code, answer.json()["error"]["type"]) == (500, "internal_error")
        assert "gone" not in answer.text
        assert up.chat("hi", stream=True).status_code == 500
        assert httpx.get(f"{up.url}/readyz").status_code == 503
        assert httpx.get(f"{up.url}/healthz").status_code == 200


def test_users_are_told_apart(shared_server: Server) -> None:
    """Sessions, questions and calls of one user are not there for another, whatever the body says."""
    named = {"X-Session-Id": "private"}
    first = shared_server.chat("drop it", ANN | named)
    assert first.json()["interrupts"]
    key = first.json()["interrupts"][0]["key"]
    assert shared_server.chat("hello", ANN | named).status_code == 409
    other = shared_server.chat("hello", EVE | named, user="ann", metadata={"user_id": "ann"})
    assert other.json()["choices"][0]["message"]["content"] == "hello (1)"
    taken = shared_server.chat("yes", EVE | {"X-Session-Id": "private-2"}, answers={key: True})
    assert taken.status_code == 400
    mine = {"tools": [{"function": {"name": "mine"}}]}
    asked = shared_server.chat("mine x", ANN | {"X-Session-Id": "calls"}, **mine).json()
    call = asked["choices"][0]["message"]["tool_calls"][0]["id"]
    result = said("tool", "stolen", tool_call_id=call)
    assert shared_server.chat(result, EVE | {"X-Session-Id": "calls"}).json()["error"]["code"] == "unknown_tool_call"
    assert shared_server.chat(result, ANN | {"X-Session-Id": "calls"}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/bob", "/v1/chat/completions", "/v1/anything"])
def test_nobody_gets_in_without_a_key(shared_server: Server, path: str) -> None:
    """Every endpoint of the API wants a user; health does not, and says nothing."""
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic ann-key"}):
        answer = httpx.request("POST" if "chat" in path else "GET", f"{shared_server.url}{path}", headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")
    assert httpx.get(f"{shared_server.url}/healthz").json() == {"status": "alive"}


@pytest.mark.parametrize("session", ["", "x" * 201, "a\tb"])
def test_session_ids_that_are_refused(server: Server, session: str) -> None:
    """An id is short and printable."""
    answer = server.chat("hi", {"X-Session-Id": session})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_session_id")


def test_more_messages_than_allowed(server: Server) -> None:
    """A request with too many messages is refused with the limit."""
    answer = server.chat([{"role": "user", "content": "x"}] * 1001)
    assert (answer.status_code, answer.json()["error"]["param"]) == (413, "messages")
