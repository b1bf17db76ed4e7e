"""Helpers for runs that stop and go on, each time in a store that was opened anew."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphagent import Executor, RunResult, StateGraph
from graphagent.graph.compiled import CompiledGraph
from graphagent.unset import UNSET


@dataclass
class Lives:
    """One lineage that goes through several processes: each call opens the store, makes an executor and runs.

    `graph` is called once, before the first life; `external` stands for the world outside, which keeps what was done
    to it.
    """

    open_store: Callable[[], Any]
    graph: Callable[[], StateGraph]
    engine: Any
    lineage: str
    external: list[str] = field(default_factory=list)

    @functools.cached_property
    def compiled(self) -> CompiledGraph:
        """The graph, compiled."""
        return self.graph().compile()

    async def run(self, given: Any = None, **options: Any) -> RunResult:
        """The first run, or a new turn."""
        async with self.open_store() as store:
            executor = Executor(self.compiled, store, self.engine)
            return await executor.run(given, lineage=self.lineage, **options)

    async def resume(self, answers: Mapping[str, Any] | None = None, *, answer: Any = UNSET) -> RunResult:
        """A resume in a new life."""
        async with self.open_store() as store:
            executor = Executor(self.compiled, store, self.engine)
            return await executor.resume(self.lineage, answers, answer=answer)

    async def sources(self) -> list[str]:
        """What the stored rows are, oldest first."""
        async with self.open_store() as store:
            return [header.source for header in reversed(await store.history(self.lineage))]


def keys(result: RunResult) -> list[str]:
    """The keys of what a run waits for, sorted."""
    return sorted(interrupt.key for interrupt in result.interrupts)


def by_key(result: RunResult, values: Mapping[str, Any]) -> dict[str, Any]:
    """Answers by interrupt id, from answers by key."""
    return {item.id: values[item.key] for item in result.interrupts if item.key in values}
