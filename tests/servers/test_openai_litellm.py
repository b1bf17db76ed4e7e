"""litellm as a client of our own server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.serving import Server

TOOL = {"type": "function", "function": {"name": "mine", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "required": ["asked"]}}}
TALK = "support.litellm_talk"


def ask(server: Server, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Requests through litellm, one after the other."""
    command = [sys.executable, "-m", TALK]
    given = json.dumps([server.base, requests])
    tests = Path(__file__).parents[1]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, cwd=tests)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def says(text: str, **fields: Any) -> dict[str, Any]:
    """A request with one message."""
    return {"messages": [{"role": "user", "content": text}], **fields}


def test_litellm_as_a_client(server: Server) -> None:
    """Text whole and in pieces, tools, a schema, and refusals as litellm's own errors."""
    whole, stream, called, shaped, refused, long = ask(
        server,
        says("hello"),
        says("hello", stream=True, stream_options={"include_usage": True}),
        says("mine x", tools=[TOOL], result="done"),
        says("schema", response_format=SCHEMA),
        says("hi", temperature=9),
        says("fail context_length"),
    )
    assert (whole["text"], whole["tokens"]) == ("hello (1)", 10)
    assert (stream["text"], stream["tokens"]) == ("hello (1)", 10)
    assert json.loads(shaped["text"])["asked"]["required"] == ["asked"]
    assert (refused["error"], long["error"]) == ("BadRequestError", "ContextWindowExceededError")
    assert called["text"] == "it says: done"
