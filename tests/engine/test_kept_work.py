"""Nothing that was paid for is lost: what had ended when a run was cancelled is not done again."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.graphs import Trail, flow

from graphagent import Executor, MemoryCheckpoints

pytestmark = pytest.mark.anyio


class SlowCheckpoints(MemoryCheckpoints):
    """A store whose writes have to be waited for: each waits at a gate, if there is one."""

    remote = True

    def __init__(self) -> None:
        super().__init__()
        self.gate: anyio.Event | None = None
        self.waiting = anyio.Event()

    async def _pass(self) -> None:
        if self.gate is not None:
            self.waiting.set()
            await self.gate.wait()

    async def append(self, *args: Any, **options: Any) -> int:
        """The write of rows, behind the gate."""
        await self._pass()
        return await super().append(*args, **options)

    async def put_activations(self, *args: Any) -> None:
        """The write of finished activations, behind the gate."""
        await self._pass()
        await super().put_activations(*args)


@pytest.mark.parametrize("engine", ["superstep", "eager"])
async def test_work_that_ended_before_a_cancellation_is_kept(engine: Any, lineage: str) -> None:
    """Two of three nodes have ended, their results are on the way to the store when the run is cancelled.

    The write is not cut short, and the result that waits behind it is written too: a resume runs the third node only.
    """
    store = SlowCheckpoints()
    runs: list[str] = []
    blocked = True

    def node(name: str) -> Any:
        async def work(state: Trail) -> dict[str, Any]:
            runs.append(name)
            if name == "slow" and blocked:
                await anyio.sleep_forever()
            store.gate = store.gate or anyio.Event()
            return {"log": [name]}

        return work

    names = ("a", "b", "slow")
    graph = flow("START -> a, b, slow -> END", **{name: node(name) for name in names}).compile()
    async with anyio.create_task_group() as group:

        async def doomed() -> None:
            await Executor(graph, store, engine).run(lineage=lineage)

        group.start_soon(doomed)
        await store.waiting.wait()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
        assert store.gate is not None
        with anyio.CancelScope(shield=True):
            await anyio.lowlevel.checkpoint()
            store.gate.set()
    blocked = False
    result = await Executor(graph, store, engine).resume(lineage)
    assert sorted(result.unwrap().log) == ["a", "b", "slow"]
    assert sorted(runs) == ["a", "b", "slow", "slow"]
