"""Drives a run from the command line: watches it, answers what it asks, cancels it at Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import anyio
from anyio.abc import TaskStatus

from graphagent import Executor, RunResult
from runner.cli.ask import ask_all, can_ask
from runner.cli.exits import Exit
from runner.cli.output import Output
from runner.cli.progress import Watcher
from runner.cli.values import Answers

_RETRY = 0.01
"""Seconds between attempts to reach a run that is about to begin."""


@dataclass(frozen=True, slots=True)
class Driver:
    """One lineage that is run until it ends or waits for somebody who isn't there."""

    executor: Executor
    lineage: str
    answers: Answers
    output: Output
    watcher: Callable[[], Watcher]

    async def go(self, **begin: Any) -> RunResult:
        """Run or resume, and resume again as long as there are answers.

        `begin`: what `Executor.stream` takes for the first part. `steps` of the result counts all parts. Raises what
        `Executor.run` and `resume` raise.
        """
        result = await self._part(**begin)
        while result.status == "interrupted":
            answers: dict[str, Any] | None = self.answers.take(result.interrupts)
            if not answers and can_ask() and not self.output.as_json:
                answers = ask_all(result.interrupts, self.output)
            elif not answers:
                return result
            if answers is None:
                return result
            before = result.steps
            result = await self._part(resume=True, answers=answers)
            result = replace(result, steps=before + result.steps)
        return result

    async def _part(self, **call: Any) -> RunResult:
        problem: Exception | None = None
        result: RunResult | None = None
        with self.watcher() as watcher:
            async with anyio.create_task_group() as group:
                with suppress(NotImplementedError):  # the event loop of Windows has no such receiver
                    await group.start(self._cancel_at_signal, watcher)
                try:
                    result = await self._watched(watcher, call)
                except Exception as error:  # raised as it is, not in the group's exception group
                    problem = error
                group.cancel_scope.cancel()
        if problem is not None:
            raise problem
        assert result is not None
        return result

    async def _watched(self, watcher: Watcher, call: dict[str, Any]) -> RunResult:
        async with self.executor.stream(lineage=self.lineage, modes=watcher.modes, **call) as events:
            async for event in events:
                watcher.event(event)
        assert events.result is not None
        return events.result

    async def _cancel_at_signal(
        self, watcher: Watcher, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """The first signal cancels the run in an orderly way, the second ends the process."""
        async with anyio.create_task_group() as group:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                task_status.started()
                asked = False
                async for _ in signals:
                    if asked:
                        watcher.close()
                        os._exit(Exit.CANCELLED)  # a thread that doesn't end would hold every other exit up
                    asked = True
                    watcher.note("cancelling; once more ends the process at once")
                    group.start_soon(self._cancel)

    async def _cancel(self) -> None:
        while not await self.executor.cancel(self.lineage):  # noqa: ASYNC110 -- nothing tells of the beginning of a run
            await anyio.sleep(_RETRY)
