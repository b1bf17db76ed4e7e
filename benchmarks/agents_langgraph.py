"""W9 of LangGraph: its prebuilt agent, with a chat model that answers by a script."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.prebuilt import create_react_agent

from benchmarks.contract import TOOL_TURNS, Bench, Case, expect, expect_talk

ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Script(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        count = sum(1 for one in messages if one.type == "tool")
        if count == TOOL_TURNS:
            reply = AIMessage("done")
        else:
            call = {"name": "add", "args": {"a": count, "b": 1}, "id": f"call_{count}"}
            reply = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        return self._generate(messages)


class Prebuilt:
    """What `opened` of other workloads compiles with the saver of its kind."""

    def compile(self, checkpointer: Any = None) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it has moved to another package, whose agent runs on it
            return create_react_agent(Script(), [add], checkpointer=checkpointer)


def agent_loop(size: int, config: Callable[[str], Any], **around: Any) -> Case:
    async def run(agent: Any) -> Any:
        start = {"messages": [("user", "go")]}
        return await asyncio.gather(*(agent.ainvoke(start, config(f"t{number}")) for number in range(size)))

    def check(states: list[Any]) -> None:
        expect("number of talks", len(states), size)
        for state in states:
            expect_talk([(ROLES[one.type], one.content) for one in state["messages"]])

    return Case((2 * TOOL_TURNS + 1) * size, run, check=check, **around)


def unsaved(bench: Bench, size: int, config: Callable[[str], Any]) -> Case:
    return agent_loop(size, config, build=lambda: Prebuilt().compile())


def saved(size: int, config: Callable[[str], Any], opened: Callable[[Any], Any]) -> Case:
    return agent_loop(size, config, build=Prebuilt, opened=opened)
