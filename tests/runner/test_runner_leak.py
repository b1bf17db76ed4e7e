"""Public fault report C154 through the Runner: what runs leave behind in the memory of the process."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from typing import Any

import pytest
from support.run_agents import APP, USER, all_of, outcome

from graphagent import MemoryCheckpoints
from graphagent.agents.function_tool import tool
from graphagent.agents.llm_agent import LLMAgent
from graphagent.agents.model import ModelRequest
from graphagent.models import ScriptedModel
from runner import Runner

pytestmark = pytest.mark.anyio


async def test_c154_memory_is_flat() -> None:
    """After a warm-up, runs in sessions that are deleted leave no memory, task or thread behind."""

    def answers(request: ModelRequest) -> Any:
        called = request.messages[-1].role == "tool"
        return "done" if called else {"tool_calls": [{"name": "look", "arguments": {}}]}

    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    agent = LLMAgent("bob", ScriptedModel(answers, pieces=2, keep_requests=False), tools=[look])
    checkpoints = MemoryCheckpoints()
    async with Runner(APP, agent, checkpoints=checkpoints) as runner:

        async def blocks_after(first: int, last: int) -> int:
            for number in range(first, last):
                assert outcome(await all_of(runner, session=f"s{number}")) == "completed"
                await runner.delete_session(USER, f"s{number}")
            gc.collect()
            return sys.getallocatedblocks()

        await blocks_after(0, 30)
        warm = await blocks_after(30, 40)
        tasks, threads = len(asyncio.all_tasks()), threading.active_count()
        after = await blocks_after(40, 100)
        assert after - warm < 300, f"{(after - warm) / 60} blocks a run"
        assert len(asyncio.all_tasks()) == tasks
        assert threading.active_count() <= threads  # idle threads of earlier tests may have ended meanwhile
        assert await checkpoints.lineages() == []
