"""Agents that the tests of the servers have served, and a hook that knows two users."""

from __future__ import annotations

import json
import os

import anyio
from starlette.requests import Request

from graphagent.agents.function_tool import tool
from graphagent.agents.llm_agent import LLMAgent
from graphagent.agents.model import ModelRequest
from graphagent.errors import ModelError, StopAgent
from graphagent.graph.policies import RetryPolicy
from graphagent.ledger import TokenUsage
from graphagent.models import ScriptedModel
from runner.servers.access import Identity
from runner.servers.client_tools import ClientTools

USAGE = TokenUsage(input_tokens=7, output_tokens=3, cached_tokens=2)


@tool
async def look(what: str) -> str:
    """Look at something."""
    return f"seen {what}"


@tool(needs_approval=True)
async def drop(what: str) -> str:
    """Drop something."""
    return f"dropped {what}"


@tool
async def tick(what: str) -> str:
    """Write a line to a file again and again, for as long as it is let."""
    for _ in range(int(os.environ.get("SERVED_TICKS", "400"))):
        async with await anyio.open_file(what, "a") as file:
            await file.write("tick\n")
        await anyio.sleep(0.05)
    await anyio.Path(f"{what}.end").write_text("end")
    return "ticked"


@tool
async def stop(what: str) -> str:
    """End the run."""
    raise StopAgent(f"no more {what}")


def answer(request: ModelRequest) -> object:
    """Does what the last message says: calls tools, fails, tells what it was asked, or repeats it."""
    last = request.messages[-1]
    if last.role == "tool":
        results = []
        for message in reversed(request.messages):
            if message.role != "tool":
                break
            results.insert(0, message.text)
        return f"it says: {' & '.join(results)}"
    name, _, what = last.text.partition(" ")
    if name in ("look", "drop", "tick", "stop", "mine"):
        return {"content": "let me see", "tool_calls": [{"name": name, "arguments": {"what": what}}]}
    if name == "both":
        names = what.split(",")
        return {"tool_calls": [{"name": one, "arguments": {"what": str(n)}} for n, one in enumerate(names)]}
    if name == "fail":
        return ModelError("no route to secret-host", kind=what or "api_error")
    if name == "half":
        return ["Hello wor", ModelError("cut", kind="stream_error")]
    if name == "config":
        config = request.config
        names = ("temperature", "top_p", "max_tokens", "stop", "seed", "reasoning_effort", "parallel_tool_calls")
        return json.dumps({**{one: getattr(config, one) for one in names}, "extra": dict(config.extra)})
    if name == "tools":
        return json.dumps([one.name for one in request.tools])
    if name == "schema":
        return f"here: {json.dumps({'asked': request.output_schema})} done"
    if name == "roles":
        return " ".join(f"{one.role}:{one.text}" for one in request.messages)
    if name == "long":
        return ["word "] * 400
    users = sum(message.role == "user" for message in request.messages)
    return f"{last.text} ({users})"


def bob() -> LLMAgent:
    """An agent that takes tools of its clients."""
    model = ScriptedModel(answer, pieces=4, usage=USAGE, keep_requests=False)
    return LLMAgent("bob", model, "Be brief.", tools=[look, drop, tick, stop, ClientTools()])


def slow() -> LLMAgent:
    """An agent that takes its time for each piece."""
    return LLMAgent("slow", ScriptedModel(answer, pieces=4, delay=0.02, keep_requests=False))


def shaped() -> LLMAgent:
    """An agent with a schema of its own, which it meets in the second attempt."""
    schema = {"type": "object", "required": ["n"]}
    said = iter(["nothing", '{"n": 1}'] * 50)
    return LLMAgent("shaped", ScriptedModel(lambda request: next(said), pieces=4), output_schema=schema)


def again() -> LLMAgent:
    """An agent whose model is asked again after a stream that broke."""
    said = iter([["Hello wor", ModelError("cut", kind="stream_error", retryable=True)], "Hello world"] * 50)
    retry = RetryPolicy(max_attempts=2, initial=0.01)
    return LLMAgent("again", ScriptedModel(lambda request: next(said)), options={"default_retry": retry})


async def two_users(request: Request) -> Identity | None:
    """Knows `ann-key` and `eve-key`."""
    users = {"Bearer ann-key": "ann", "Bearer eve-key": "eve"}
    user = users.get(request.headers.get("authorization", ""))
    return None if user is None else Identity(user)
