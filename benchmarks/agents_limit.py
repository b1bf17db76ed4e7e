"""W9 by hand: a loop that asks the model, calls the tool, and appends to a list."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.contract import TOOL_TURNS, Bench, Case, expect, expect_talk

Talk = list[dict[str, Any]]
Save = Callable[[str, int, dict[str, Any]], None]


async def add(a: int, b: int) -> int:
    return a + b


TOOLS: dict[str, Callable[..., Awaitable[Any]]] = {"add": add}


async def model(messages: Talk) -> dict[str, Any]:
    count = sum(1 for one in messages if one["role"] == "tool")
    if count == TOOL_TURNS:
        return {"role": "assistant", "content": "done", "tool_calls": []}
    call = {"id": f"call_{count}", "name": "add", "arguments": {"a": count, "b": 1}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


async def talk(thread: str, save: Save) -> Talk:
    messages: Talk = [{"role": "user", "content": "go"}]
    save(thread, 0, messages[0])
    while True:
        reply = await model(messages)
        messages.append(reply)
        save(thread, len(messages), reply)
        if not reply["tool_calls"]:
            return messages
        for call in reply["tool_calls"]:
            content = str(await TOOLS[call["name"]](**call["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        save(thread, len(messages), messages[-1])


def agent_loop(size: int, save: Callable[[Any], Save], opened: Callable[[Any], Any] | None = None) -> Case:
    async def run(opened: Any) -> list[Talk]:
        keep = save(opened)
        return await asyncio.gather(*(talk(f"t{number}", keep) for number in range(size)))

    def check(talks: list[Talk]) -> None:
        expect("number of talks", len(talks), size)
        for messages in talks:
            expect_talk([(one["role"], one["content"]) for one in messages])

    around = {} if opened is None else {"opened": opened}
    return Case((2 * TOOL_TURNS + 1) * size, run, check=check, **around)


def unsaved(bench: Bench, size: int) -> Case:
    return agent_loop(size, lambda _: lambda thread, step, delta: None)


def saved(
    size: int, opened: Callable[[Any], Any], save: Callable[[sqlite3.Connection, str, int, dict[str, Any]], None]
) -> Case:
    return agent_loop(size, lambda connection: lambda *row: save(connection, *row), opened)
