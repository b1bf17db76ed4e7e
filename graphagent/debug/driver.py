"""How a debugged run begins and goes on: by an executor, or by whatever stands around one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from graphagent.engine.executor import Executor
from graphagent.engine.limits import Budget
from graphagent.engine.result import RunResult


class Driver(Protocol):
    """What a debugger needs to run one lineage. `namespace`: that of the root frame, `""` or the name of an agent."""

    executor: Executor
    lineage: str
    namespace: str

    async def start(self, input: Any) -> RunResult:
        """A new run, or a new turn of the lineage. Raises what `Executor.run` raises."""
        ...

    async def resume(self, answers: Mapping[str, Any], checkpoint: str | None = None) -> RunResult:
        """Go on from the newest checkpoint or the given one. Raises what `Executor.resume` raises."""
        ...


class ExecutorDriver:
    """Runs by an executor alone. `context` and `budget` are those of every run that it begins."""

    def __init__(
        self,
        executor: Executor,
        lineage: str,
        namespace: str = "",
        *,
        context: Any = None,
        budget: Budget | None = None,
    ) -> None:
        self.executor = executor
        self.lineage = lineage
        self.namespace = namespace
        self.context = context
        self.budget = budget

    async def start(self, input: Any) -> RunResult:
        """A new run or turn on `input`, as `Executor.run` takes it."""
        return await self.executor.run(
            input, lineage=self.lineage, namespace=self.namespace, context=self.context, budget=self.budget
        )

    async def resume(self, answers: Mapping[str, Any], checkpoint: str | None = None) -> RunResult:
        """The run goes on."""
        return await self.executor.resume(
            self.lineage,
            answers,
            checkpoint=checkpoint,
            namespace=self.namespace,
            context=self.context,
            budget=self.budget,
        )

    def of(self, lineage: str) -> ExecutorDriver:
        """The same for another lineage, such as a fork."""
        return ExecutorDriver(self.executor, lineage, self.namespace, context=self.context, budget=self.budget)
