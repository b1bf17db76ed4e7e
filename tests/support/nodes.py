"""Nodes and clocks that fail, count and wait as told, and the events of a run."""

from __future__ import annotations

from typing import Any

from graphagent import Executor, RunEvent, RunResult, StateGraph
from support.graphs import Trail, says


class SteppedClock:
    """A clock that only moves when somebody sleeps on it."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


class Flaky:
    """A node that fails the first `failures` times it is called."""

    def __init__(self, failures: int, error: type[Exception] = ConnectionError) -> None:
        self.left = failures
        self.error = error
        self.calls = 0

    async def __call__(self, state: Trail) -> dict[str, Any]:
        self.calls += 1
        if self.left > 0:
            self.left -= 1
            raise self.error(f"failure {self.calls}")
        return {"log": ["flaky"]}


def after_flaky(flaky: Flaky, retry: Any = None) -> StateGraph:
    """flaky -> next -> END, with a retry policy on the first."""
    builder = StateGraph(Trail).add_node("flaky", flaky, retry=retry).add_node("next", says("next"))
    return builder.set_entry_point("flaky").add_edge("flaky", "next").set_finish_point("next")


async def run_with_events(
    executor: Executor, lineage: str, modes: tuple[str, ...] = ("tasks",)
) -> tuple[RunResult, list[RunEvent]]:
    """The result of a run and the events of it."""
    async with executor.stream(lineage=lineage, modes=modes) as stream:
        events = [event async for event in stream]
    assert stream.result is not None
    return stream.result, events


def kinds(events: list[RunEvent], node: str) -> list[str]:
    """What the task events of a node were, in order."""
    return [event.kind for event in events if event.node == node and event.mode == "tasks"]
