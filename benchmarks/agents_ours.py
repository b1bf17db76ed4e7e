"""W9 of graphagent: an LLMAgent by itself, or through a Runner, whose events are all read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.contract import TOOL_TURNS, Bench, Case, expect, expect_talk
from graphagent import LLMAgent, Message, SqlCheckpoints
from graphagent.agents import ModelRequest, tool
from graphagent.ledger import SessionKey
from graphagent.models import Item, ScriptedModel
from runner import Runner
from runner.sessions import SqlSessions

APP, USER = "bench", "user"


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def script(request: ModelRequest) -> Item:
    count = sum(1 for one in request.messages if one.role == "tool")
    return "done" if count == TOOL_TURNS else {"tool_calls": [{"name": "add", "arguments": {"a": count, "b": 1}}]}


def make_agent() -> LLMAgent:
    return LLMAgent("agent", ScriptedModel(script, keep_requests=False), tools=[add])


def check(talks: list[list[Message]], size: int) -> None:
    expect("number of talks", len(talks), size)
    for messages in talks:
        expect_talk([(one.role, one.text) for one in messages])


def by_itself(bench: Bench, size: int, play: Callable[[Any, Any, str | None], Any]) -> Case:
    async def run(agent: LLMAgent) -> list[list[Message]]:
        executor = agent.executor()
        results = await asyncio.gather(*(play(executor, {"messages": [Message.user("go")]}, None) for _ in range(size)))
        return [result.unwrap().messages for result in results]

    return Case((2 * TOOL_TURNS + 1) * size, run, build=make_agent, check=lambda talks: check(talks, size))


@asynccontextmanager
async def in_memory(agent: LLMAgent) -> AsyncIterator[Runner]:
    async with Runner(APP, agent) as runner:
        yield runner


def in_sqlite(bench: Bench) -> Callable[[Any], Any]:
    @asynccontextmanager
    async def opened(agent: LLMAgent) -> AsyncIterator[Runner]:
        url = f"sqlite:///{bench.database()}"
        sessions = SqlSessions(url)
        async with SqlCheckpoints(url, sync="normal") as store:
            async with Runner(APP, agent, sessions=sessions, checkpoints=store) as runner:
                yield runner
            await sessions.aclose()

    return opened


def by_runner(size: int, opened: Callable[[Any], Any]) -> Case:
    async def talk(runner: Runner, session: str) -> list[Message]:
        async for _ in runner.run(USER, session, "go"):
            pass
        kept = await runner.sessions.get(SessionKey(APP, USER, session))
        assert kept is not None
        return [message for event in kept.events for message in event.messages]

    async def run(runner: Runner) -> list[list[Message]]:
        return await asyncio.gather(*(talk(runner, f"s{number}") for number in range(size)))

    steps = (2 * TOOL_TURNS + 1) * size
    return Case(steps, run, build=make_agent, opened=opened, check=lambda talks: check(talks, size))
