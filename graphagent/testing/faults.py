"""Crash, delay or fail a graph of one's own at every write, and see whether anything is lost or done twice.

```python
def make_executor(store):
    return Executor(graph, checkpoints=store)

report = await every_write(make_executor, {"order": 7}, effects=lambda: mailbox.sent, answers={"approve": "yes"})
report.check()
```

This happens inside one process, in milliseconds. `graphagent.testing.kills` kills processes instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import anyio

from graphagent.checkpoint.memory import MemoryCheckpoints
from graphagent.checkpoint.store import CheckpointStore, Lease
from graphagent.engine.executor import Executor
from graphagent.engine.result import RunResult
from graphagent.errors import LineageBusy, SaveError, UsageError, alternatives
from graphagent.graph.view import values_of
from graphagent.ids import fresh_id
from graphagent.testing.lives import finish, unknown_effects
from graphagent.testing.report import Report, Run, Trial, judge
from graphagent.testing.store_proxy import Call, StoreProxy

T = TypeVar("T")
Kind = Literal["crash_before", "crash_after", "fail", "lost", "delay"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""`crash_before`, `crash_after`: the process ends right before or after the write. `fail`: the write isn't made and
raises SaveError. `lost`: it is made, and raises SaveError all the same, as when a reply gets lost. `delay`: it takes
longer."""

MakeExecutor = Callable[[CheckpointStore], Executor]
OpenStore = Callable[[], AbstractAsyncContextManager[CheckpointStore]]


class Crash(BaseException):
    """Stands for the end of the process: no node, callback or `except Exception` may deal with it."""


ENDS_A_LIFE = (Crash, SaveError, LineageBusy)
"""What a process with a fault may end with; the lineage is busy where it could not be given back."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at which write. `at` counts from 1; 0: never. `seconds`: how long a `delay` is."""

    kind: Kind = "crash_before"
    at: int = 0
    seconds: float = 0.01

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"there is no kind of fault '{self.kind}': {alternatives(self.kind, KINDS)}")


class FaultyStore(StoreProxy):
    """A store that counts writes, and meets with a fault at one of them.

    `writes` has what was written, in order: the method's name and where. After a crash every call raises Crash, as a
    process that has ended makes no calls; `bury` then gives back the lineages it held, as any store does that finds
    the owner's process dead.
    """

    def __init__(self, inner: CheckpointStore, at: int = 0, kind: Kind = "crash_before", seconds: float = 0.01) -> None:
        super().__init__(inner)
        self.fault = Fault(kind, at, seconds)
        self.writes: list[str] = []
        self.crashed = False
        self._leases: list[Lease] = []

    async def writing(self, what: str, call: Call[T]) -> T:
        """Count a write and carry it out, unless the fault says otherwise. Raises Crash, SaveError."""
        self._alive()
        self.writes.append(what)
        kind = self.fault.kind if len(self.writes) == self.fault.at else None
        if kind == "crash_before":
            self._crash()
        elif kind == "fail":
            raise SaveError(f"fault at write {self.fault.at} ({what}): it was not made")
        elif kind == "delay":
            await anyio.sleep(self.fault.seconds)
            self._alive()
        result = await call()
        lease = result[0] if isinstance(result, tuple) else result  # `begin` brings what was read as well
        if isinstance(lease, Lease):
            self._leases.append(lease)
        if kind == "crash_after":
            self._crash()
        elif kind == "lost":
            raise SaveError(f"fault at write {self.fault.at} ({what}): it was made, and the reply was lost")
        return result

    async def reading(self, call: Call[T]) -> T:
        """Read, unless the process has ended."""
        self._alive()
        return await call()

    async def bury(self) -> None:
        """Give back what the crashed process held."""
        for lease in self._leases:
            await self.inner.release(lease)
        self._leases.clear()

    def _alive(self) -> None:
        if self.crashed:
            raise Crash("this process has ended")

    def _crash(self) -> None:
        self.crashed = True
        raise Crash(f"fault at write {self.fault.at} ({self.writes[-1]})")


async def count_writes(run: Callable[[CheckpointStore], Awaitable[Any]], store: CheckpointStore | None = None) -> int:
    """How many writes `run(store)` makes."""
    counting = FaultyStore(store or MemoryCheckpoints())
    await run(counting)
    return len(counting.writes)


async def every_write(
    make_executor: MakeExecutor,
    input: Any = None,
    *,
    answers: Mapping[str, Any] | None = None,
    kinds: Sequence[Kind] = ("crash_before", "crash_after"),
    effects: Callable[[], Sequence[str]] = list,
    open_store: OpenStore = MemoryCheckpoints,
    same: Callable[[dict[str, Any]], Any] = dict,
) -> Report:
    """Run a graph once, then once for each of its writes and each kind of fault; resume, and compare.

    `make_executor(store)` makes an executor as a new process would. `answers`: by key, for every question of the
    graph. `effects()` returns the log of what was done to the world outside, one line an effect, in all runs so far;
    how often each line comes in a run is compared. The final state must equal that of the undisturbed run; `same` makes
    states comparable where they may differ, as by the order of completions under the eager engine. A resume that ends
    in EffectUnknown is neither held nor broken: the graph asks for a person there. Raises UsageError if the undisturbed
    run doesn't complete.
    """
    trial = _Trials(make_executor, input, answers or {}, effects, open_store, same)
    expected, writes = await trial.undisturbed()
    faults = [Fault(kind, at) for at in range(1, len(writes) + 1) for kind in kinds]
    return Report(tuple([await trial.with_fault(fault, expected) for fault in faults]))


@dataclass(frozen=True, slots=True)
class _Trials:
    make_executor: MakeExecutor
    input: Any
    answers: Mapping[str, Any]
    effects: Callable[[], Sequence[str]]
    open_store: OpenStore
    same: Callable[[dict[str, Any]], Any]

    async def undisturbed(self) -> tuple[Run, list[str]]:
        """What a run without a fault comes to, and its writes."""
        before = len(self.effects())
        async with self.open_store() as store:
            counting = FaultyStore(store)
            result = await self._life(counting, fresh_id())
        if not result.ok:
            raise UsageError(
                f"the run to compare with must complete, and ended '{result.status}': {result.reason}; mend that first"
            ) from result.error
        return self._run(result, before), counting.writes

    async def with_fault(self, fault: Fault, expected: Run) -> Trial:
        """One run that meets with a fault and is resumed."""
        before, lineage = len(self.effects()), fresh_id()
        async with self.open_store() as store:
            faulty = FaultyStore(store, fault.at, fault.kind, fault.seconds)
            try:
                found = self._run(await self._life(faulty, lineage), before)
                again = found.status != "completed"
            except ENDS_A_LIFE:
                again = True
            except BaseExceptionGroup as group:
                if group.split(ENDS_A_LIFE)[1] is not None:
                    raise
                again = True
            await faulty.bury()
            if again:
                found = self._run(await self._life(store, lineage), before)
        met = len(faulty.writes) >= fault.at
        what = faulty.writes[fault.at - 1] if met else "not reached"
        return judge(f"{fault.kind} at write {fault.at} ({what})", found, expected)

    async def _life(self, store: CheckpointStore, lineage: str) -> RunResult:
        return await finish(self.make_executor(store), lineage, self.input, self.answers)

    def _run(self, result: RunResult, before: int) -> Run:
        state = self.same(dict(values_of(result.state)))
        reason = f"{result.status}: {result.reason}"
        status = "unknown" if unknown_effects(result.error) else result.status
        return Run(status, reason, state, tuple(self.effects()[before:]))


__all__ = ["KINDS", "Crash", "Fault", "FaultyStore", "Kind", "Report", "count_writes", "every_write"]
