"""Agents that the tests of the command line talk with."""

from __future__ import annotations

import anyio

from graphagent.agents.function_tool import tool
from graphagent.agents.llm_agent import LLMAgent
from graphagent.agents.model import ModelRequest
from graphagent.errors import ModelError
from graphagent.ledger import TokenUsage
from graphagent.models import ScriptedModel


@tool
async def look(what: str) -> str:
    """Look at something."""
    return f"seen {what}"


@tool(needs_approval=True)
async def drop(what: str) -> str:
    """Drop something."""
    return f"dropped {what}"


@tool
async def wait() -> str:
    """Wait for ever."""
    print("waiting", flush=True)
    await anyio.sleep_forever()
    return "never"


def answer(request: ModelRequest) -> object:
    """Does what the last message says: calls a tool of that name, or fails, or repeats it."""
    last = request.messages[-1]
    if last.role == "tool":
        return f"it says: {last.text}"
    name, _, what = last.text.partition(" ")
    if name in ("look", "drop"):
        return {"content": "let me see", "tool_calls": [{"name": name, "arguments": {"what": what}}]}
    if name == "wait":
        return {"tool_calls": [{"name": name, "arguments": {}}]}
    if name == "fail":
        return ModelError("no route to the model")
    users = sum(message.role == "user" for message in request.messages)
    return f"{last.text} ({users})"


def bob() -> LLMAgent:
    """An agent with tools and a sub-agent."""
    tim = LLMAgent("tim", ScriptedModel(lambda request: "tim here", pieces=4))
    return LLMAgent("bob", ScriptedModel(answer, pieces=4), tools=[look, drop, wait], sub_agents=[tim])


helper = bob()
number = 3


def broken() -> LLMAgent:
    """Makes no agent."""
    raise RuntimeError("no key")


def dear() -> LLMAgent:
    """An agent whose calls cost money."""
    usage = TokenUsage(input_tokens=1200, output_tokens=30, cached_tokens=200, cost=0.0015)
    return LLMAgent("dear", ScriptedModel(lambda request: "done", usage=usage))


def cheap() -> LLMAgent:
    """An agent whose price nobody knows."""
    return LLMAgent("cheap", ScriptedModel(lambda request: "done", usage=TokenUsage(input_tokens=5, output_tokens=1)))
