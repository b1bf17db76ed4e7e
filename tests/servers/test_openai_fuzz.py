"""The chat endpoint under whatever is sent: never a 500, always the API's shape, never anything of another user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.serving import ANN, EVE, Server

SECRET = "the-secret-of-ann"
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
roles = st.sampled_from(["system", "developer", "user", "assistant", "tool", "robot"]) | anything
calls = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["c1", "c2"]) | anything,
        "type": st.just("function") | anything,
        "function": st.fixed_dictionaries(
            {}, optional={"name": st.text(max_size=5) | anything, "arguments": st.sampled_from(["{}", "{"]) | anything}
        ),
    },
)
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image_url", "file", "input_audio"]) | anything},
    optional={"text": st.text(max_size=5) | anything, "image_url": anything, "file": anything},
)
messages = st.fixed_dictionaries(
    {"role": roles},
    optional={
        "content": st.text(max_size=30) | st.lists(parts, max_size=2) | anything,
        "tool_calls": st.lists(calls, max_size=2) | anything,
        "tool_call_id": st.sampled_from(["c1", "c2"]) | anything,
        "name": anything,
    },
)
bodies = st.fixed_dictionaries(
    {"model": st.just("bob"), "messages": st.lists(messages, min_size=1, max_size=4)},
    optional={
        "stream": anything,
        "stream_options": anything,
        "tools": st.lists(st.fixed_dictionaries({"function": st.fixed_dictionaries({"name": st.text(max_size=5)})}))
        | anything,
        "tool_choice": anything,
        "response_format": st.fixed_dictionaries(
            {"type": st.sampled_from(["text", "json_object", "json_schema"])}, optional={"json_schema": anything}
        )
        | anything,
        "temperature": anything,
        "max_tokens": anything,
        "stop": anything,
        "seed": st.integers() | anything,
        "presence_penalty": anything,
        "reasoning_effort": anything,
        "answers": st.dictionaries(st.text(max_size=8), anything, max_size=2) | anything,
        "n": anything,
        "user": st.just("ann") | anything,
        "metadata": anything,
    },
)
sessions = st.none() | st.sampled_from(["secret", "../secret", "ann/secret", "bob/ann/secret"]) | st.text(max_size=8)


@pytest.fixture(scope="module")
def client(shared_server: Server) -> Iterator[httpx.Client]:
    """A client of a server where ann has a session with a secret and a question that is open."""
    with httpx.Client(base_url=shared_server.url, timeout=30) as made:
        for text in (SECRET, "drop it"):
            body = {"model": "bob", "messages": [{"role": "user", "content": text}]}
            made.post("/v1/chat/completions", json=body, headers={**ANN, "X-Session-Id": "secret"}).raise_for_status()
        yield made


def send(client: httpx.Client, raw: bytes, session: str | None) -> httpx.Response:
    """What eve sends."""
    headers: dict[str, Any] = {**EVE, "content-type": "application/json"}
    if session is not None:
        try:
            headers["x-session-id"] = session.strip().encode("latin-1").replace(b"\r", b"").replace(b"\n", b"")
            headers["x-session-id"] = headers["x-session-id"].replace(b"\0", b"")
        except UnicodeEncodeError:
            pass
    return client.post("/v1/chat/completions", content=raw, headers=headers)


def check(answer: httpx.Response) -> None:
    """No fault of the server, the API's shape, nothing of ann's."""
    assert answer.status_code < 500 or answer.json()["error"]["code"] == "output_does_not_fit", answer.text
    assert SECRET not in answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        assert answer.text.endswith("data: [DONE]\n\n")
    elif answer.status_code == 200:
        assert answer.json()["object"] == "chat.completion"
    elif "error" not in answer.text:
        assert answer.text == "Invalid HTTP request received."  # of uvicorn: the header was none
    else:
        assert answer.json()["error"]["type"] == "invalid_request_error"


@FUZZ
@given(body=bodies, session=sessions)
def test_bodies_that_are_nearly_right(client: httpx.Client, body: dict[str, Any], session: str | None) -> None:
    """Any field may have any value."""
    check(send(client, json.dumps(body).encode(), session))


@settings(FUZZ, max_examples=60)
@given(raw=st.binary(max_size=40) | anything.map(lambda value: json.dumps(value).encode()))
def test_bodies_that_are_anything(client: httpx.Client, raw: bytes) -> None:
    """Any bytes, any JSON."""
    check(send(client, raw, None))


@settings(FUZZ, max_examples=60)
@given(
    said=st.text(min_size=1, max_size=20), role=st.sampled_from(["user", "tool"]), session=st.just("secret") | sessions
)
def test_sessions_of_others(client: httpx.Client, said: str, role: str, session: str | None) -> None:
    """Whatever session eve names, it is her own: ann's words and her question are not there."""
    body = {"model": "bob", "messages": [{"role": role, "content": said, "tool_call_id": "call_1_0"}]}
    answer = send(client, json.dumps(body).encode(), session)
    check(answer)
    assert "interrupt" not in answer.text or "drop" in said


def test_the_secret_is_there(client: httpx.Client) -> None:
    """Ann's question is still open after all that: nobody has answered it, or given it up."""
    body = {"model": "bob", "messages": [{"role": "user", "content": "roles"}]}
    answer = client.post("/v1/chat/completions", json=body, headers={**ANN, "X-Session-Id": "secret"})
    assert answer.json()["error"]["code"] == "interrupted"
    body["answers"] = {"approve:drop": True}  # type: ignore[assignment]
    answer = client.post("/v1/chat/completions", json=body, headers={**ANN, "X-Session-Id": "secret"})
    assert answer.json()["choices"][0]["message"]["content"] == "it says: dropped it"
