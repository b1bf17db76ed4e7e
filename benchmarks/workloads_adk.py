"""google-adk: its LlmAgent and Runner, run in the venv that peers.sh makes. It has agent workloads only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.genai import types

from benchmarks.contract import TOOL_TURNS, Bench, Case, expect, expect_talk

APP, USER = "bench", "user"


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Script(BaseLlm):
    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        count = sum(1 for content in llm_request.contents for one in content.parts if one.function_response)
        part = types.Part(text="done")
        if count < TOOL_TURNS:
            call = types.FunctionCall(name="add", args={"a": count, "b": 1}, id=f"call_{count}")
            part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def make_agent() -> LlmAgent:
    return LlmAgent(name="agent", model=Script(model="script"), tools=[add])


def said(content: Any) -> tuple[str, str]:
    """Role and text of a content, as the other peers have them."""
    part = content.parts[0]
    if part.function_response is not None:
        return "tool", str(part.function_response.response["result"])
    return ("user" if content.role == "user" else "assistant"), part.text or ""


@asynccontextmanager
async def in_memory(agent: LlmAgent) -> AsyncIterator[Runner]:
    yield Runner(app_name=APP, agent=agent, session_service=InMemorySessionService())


def in_sqlite(bench: Bench) -> Callable[[Any], Any]:
    @asynccontextmanager
    async def opened(agent: LlmAgent) -> AsyncIterator[Runner]:
        service = DatabaseSessionService(f"sqlite+aiosqlite:///{bench.database()}")
        yield Runner(app_name=APP, agent=agent, session_service=service)
        await service.close()

    return opened


def agent_loop(size: int, opened: Callable[[Any], Any]) -> Case:
    async def talk(runner: Runner, session: str) -> list[Any]:
        await runner.session_service.create_session(app_name=APP, user_id=USER, session_id=session)
        asked = types.Content(role="user", parts=[types.Part(text="go")])
        events = runner.run_async(user_id=USER, session_id=session, new_message=asked)
        return [asked, *[event.content async for event in events]]

    async def run(runner: Runner) -> list[list[Any]]:
        return await asyncio.gather(*(talk(runner, f"s{number}") for number in range(size)))

    def check(talks: list[list[Any]]) -> None:
        expect("number of talks", len(talks), size)
        for contents in talks:
            expect_talk([said(one) for one in contents])

    return Case((2 * TOOL_TURNS + 1) * size, run, build=make_agent, opened=opened, check=check)


WORKLOADS: dict[str, Callable[[Bench, int], Case]] = {
    "W9": lambda bench, size: agent_loop(size, in_memory),
    "W9m": lambda bench, size: agent_loop(size, in_memory),
    "W9s": lambda bench, size: agent_loop(size, in_sqlite(bench)),
}
