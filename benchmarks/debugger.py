"""What a step of the debugger costs, against a step of the engine: `python -m benchmarks.debugger [STEPS] [ROUNDS]`.

A node that counts its laps, on SQLite and in memory. Both are run in turn in one process; the ratio is of CPU time, and
the best of the rounds stands.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from graphagent import Executor, Limits, MemoryCheckpoints, SqlCheckpoints, StateGraph
from graphagent.debug.driver import ExecutorDriver
from graphagent.debug.session import DebugSession

Timed = Callable[[], Awaitable[None]]


class Laps(BaseModel):
    n: int = 0


async def lap(state: Laps) -> dict[str, int]:
    return {"n": state.n + 1}


GRAPH = StateGraph(Laps, name="laps").add_node("lap", lap).set_entry_point("lap").add_edge("lap", "lap").compile()


async def seconds(timed: Timed) -> float:
    began = time.process_time()
    await timed()
    return time.process_time() - began


async def measured(store: Any, steps: int, rounds: int) -> tuple[float, float]:
    """CPU seconds of a step: of the engine, and of the debugger."""
    executor = Executor(GRAPH, store, limits=Limits(max_steps=steps))
    engine, debugger = [], []
    for number in range(rounds):

        async def plain(number: int = number) -> None:
            result = await executor.run({}, lineage=f"plain-{number}")
            assert result.steps == steps

        async def stepped(number: int = number) -> None:
            async with DebugSession(ExecutorDriver(executor, f"stepped-{number}")) as session:
                await session.start({})
                for _ in range(steps - 1):
                    await session.step()

        engine.append(await seconds(plain))
        debugger.append(await seconds(stepped))
    return min(engine) / steps, min(debugger) / steps


async def main(steps: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        for title in ("memory", "sqlite"):
            async with AsyncExitStack() as stack:
                store: Any = MemoryCheckpoints()
                if title == "sqlite":
                    store = await stack.enter_async_context(SqlCheckpoints(f"sqlite:///{Path(name) / 'runs.db'}"))
                engine, debugger = await measured(store, steps, rounds)
            ratio = debugger / engine
            print(f"{title:8} engine {engine * 1e6:7.1f} us  debugger {debugger * 1e6:7.1f} us  {ratio:5.1f}x")


if __name__ == "__main__":
    asyncio.run(main(*[int(one) for one in sys.argv[1:]] + [1000, 5][len(sys.argv) - 1 :]))
