"""Runs that a test meets halfway."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from graphagent import Executor, RunResult


@asynccontextmanager
async def started(
    executor: Executor, lineage: str, reached: anyio.Event, given: Any = None
) -> AsyncIterator[list[RunResult]]:
    """A run that has reached a point; its result is in the list after the block, in which five seconds may pass."""
    results: list[RunResult] = []

    async def run() -> None:
        results.append(await executor.run(given or {}, lineage=lineage))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await reached.wait()
            yield results


async def cancelled(executor: Executor, lineage: str, reached: anyio.Event, given: Any = None) -> RunResult:
    """The result of a run that is cancelled when it has reached a point."""
    async with started(executor, lineage, reached, given) as results:
        assert await executor.cancel(lineage)
        assert results, "cancel() returned before the run had ended"
    return results[0]
