"""An agent for the pages: it answers in pieces, asks before it drops something, and leaves a file."""

from __future__ import annotations

import os

import anyio
from starlette.requests import Request

from graphagent.agents import ToolContext
from graphagent.agents.function_tool import tool
from graphagent.agents.llm_agent import LLMAgent
from graphagent.agents.model import ModelRequest
from graphagent.models import ScriptedModel
from runner.servers.access import Identity


@tool(needs_approval=True)
async def drop(what: str, context: ToolContext) -> str:
    """Drop something, and note it down."""
    assert context.invocation is not None
    assert context.invocation.session is not None
    assert context.invocation.services.artifacts is not None
    data = f"dropped {what}".encode()
    await context.invocation.services.artifacts.save(
        context.invocation.session.key, "note.html", data, mime_type="text/html"
    )
    return f"dropped {what}"


@tool
async def hold() -> str:
    """Wait until a file is there."""
    while not await anyio.Path(os.environ["GATE"]).exists():  # noqa: ASYNC110 (another process makes it)
        await anyio.sleep(0.02)
    return "let go"


def answer(request: ModelRequest) -> object:
    """Calls tools on demand, and repeats anything else."""
    last = request.messages[-1]
    if last.role == "tool":
        results = [message.text for message in request.messages if message.role == "tool"]
        return f"it says: {results[-1]}"
    word, _, rest = last.text.partition(" ")
    if word == "drop":
        return {"tool_calls": [{"name": "drop", "arguments": {"what": one}} for one in rest.split(",")]}
    if word == "hold":
        return {"tool_calls": [{"name": "hold", "arguments": {}}]}
    return f"You said: {last.text}"


def bob() -> LLMAgent:
    """The agent."""
    return LLMAgent("bob", ScriptedModel(answer, pieces=4, keep_requests=False), tools=[drop, hold])


async def by_cookie(request: Request) -> Identity | None:
    """Knows whoever says who they are in a cookie."""
    name = request.cookies.get("who")
    return None if name is None else Identity(name)
