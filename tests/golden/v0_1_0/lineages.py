"""How the golden runs of release 0.1.0 were written, and what is done with each of them later.

Run by `tests/tools/make_golden.py`, each lineage in a process of its own, since some of these processes die on purpose.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal

import anyio

from graphagent import Executor, Limits
from graphagent.checkpoint.record import Retention

Act = Callable[[Executor, str, Any], Awaitable[Any]]
ORDER = {"order_id": "o-7"}
YES = {"approve": "yes"}


@dataclass(frozen=True)
class Golden:
    """A lineage. `graph`: the name of the graph that wrote it. `act(executor, lineage, world)` writes it.

    `world`: what its nodes meet (see `World`). `then`: how it goes on, `{"answers": ...}` by a resume with these
    answers, `{"input": ...}` by a new turn; None if it is only looked at.
    """

    graph: str
    act: Act
    then: Mapping[str, Any] | None
    world: Mapping[str, Any] = field(default_factory=dict)
    engine: Literal["superstep", "eager"] = "superstep"
    durability: Literal["step", "exit"] = "step"
    max_steps: int = 1000


def run(**given: Any) -> Act:
    """One run."""
    return lambda executor, lineage, world: executor.run(given, lineage=lineage, context=world)


def run_and_answer(given: Mapping[str, Any], answers: Mapping[str, Any]) -> Act:
    """One run that is answered once."""

    async def act(executor: Executor, lineage: str, world: Any) -> None:
        await executor.run(given, lineage=lineage, context=world)
        await executor.resume(lineage, answers, context=world)

    return act


async def _two_turns(executor: Executor, lineage: str, world: Any) -> None:
    await run_and_answer(ORDER, YES)(executor, lineage, world)
    await executor.run({"total": 100, "log": ["again"]}, lineage=lineage, context=world)
    await executor.resume(lineage, {"approve": "no"}, context=world)


async def _cancelled(executor: Executor, lineage: str, world: Any) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: executor.run(ORDER, lineage=lineage, context=world))
        await world.reached.wait()
        await executor.cancel(lineage)


async def _forked(executor: Executor, lineage: str, world: Any) -> None:
    await executor.fork("finished", _asked(await executor.history("finished")), new_lineage=lineage)


async def _edited(executor: Executor, lineage: str, world: Any) -> None:
    await executor.run(ORDER, lineage=lineage, context=world)
    await executor.edit(lineage, None, {"total": 50, "log": ["rewritten"]})


async def _edited_as_node(executor: Executor, lineage: str, world: Any) -> None:
    await executor.run(ORDER, lineage=lineage, context=world)
    await executor.edit(lineage, None, {"approved": "yes"}, as_node="approve")


async def _went_back(executor: Executor, lineage: str, world: Any) -> None:
    await run_and_answer(ORDER, {"approve": "no"})(executor, lineage, world)
    await executor.resume(lineage, checkpoint=_asked(await executor.history(lineage)), context=world)


async def _pruned(executor: Executor, lineage: str, world: Any) -> None:
    await run_and_answer(ORDER, YES)(executor, lineage, world)
    await executor.pin(lineage, 1)
    await executor.prune(Retention(keep_last=2), lineage=lineage)


def _asked(history: list[Any]) -> str:
    """The row in which the question is still open; the next one holds the answer."""
    return str([header.id for header in history if header.source == "interrupt"][-1])


VERDICT = {"verdict": "fine"}

LINEAGES: dict[str, Golden] = {
    "finished": Golden("order", run_and_answer(ORDER, YES), {"input": {"total": 5}}),
    "two turns": Golden("order", _two_turns, {"input": {"log": ["third"]}}),
    "question": Golden("order", run(**ORDER), {"answers": YES}),
    "question, eager": Golden("order", run(**ORDER), {"answers": {"approve": "no"}}, engine="eager"),
    "question, saved at exit": Golden("order", run(**ORDER), {"answers": YES}, durability="exit"),
    "failed": Golden("order", run(**ORDER), {}, {"fails": frozenset({"price"})}),
    "failed twice": Golden("order", run(**ORDER), {}, {"fails": frozenset({"price", "stock"})}),
    "failed, eager": Golden("order", run(**ORDER), {}, {"fails": frozenset({"price"})}, engine="eager"),
    "died in a step": Golden("order", run(**ORDER), {}, {"dies": "price"}),
    "died in a step, eager": Golden("order", run(**ORDER), {}, {"dies": "price"}, engine="eager"),
    "cancelled": Golden("order", _cancelled, {}, {"waits": "price"}),
    "limit": Golden("order", run(**ORDER), {}, max_steps=2),
    "effect claimed": Golden("order", run_and_answer(ORDER, YES), {}, {"dies": "charge"}),
    "effect committed": Golden("order", run_and_answer(ORDER, YES), {}, {"dies": "pay"}),
    "effect claimed, may be repeated": Golden("order", run_and_answer(ORDER, YES), {}, {"dies": "mail"}),
    "forked": Golden("order", _forked, {"answers": {"approve": "no"}}),
    "edited": Golden("order", _edited, {"answers": YES}),
    "edited as node": Golden("order", _edited_as_node, {}),
    "went back": Golden("order", _went_back, {"answers": YES}),
    "pruned": Golden("order", _pruned, {"input": {"total": 1}}),
    "child": Golden("parent", run(text="raw"), {"answers": VERDICT}),
    "child, eager": Golden("parent", run(text="raw"), {"answers": VERDICT}, engine="eager"),
    "child died": Golden("parent", run_and_answer({"text": "raw"}, VERDICT), {}, {"dies": "polish"}),
    "grandchild": Golden("grandparent", run(text="raw"), {"answers": VERDICT}),
    "children": Golden("twins", run(), {"answers": {"$0": "good", "$1": "bad"}}),
    "children, one answered": Golden("twins", run(), {"answers": {"$1": "bad"}}),
    "fan died": Golden("fan", run(), {}, {"dies": "measure 3"}),
    "fan died, eager": Golden("fan", run(), {}, {"dies": "measure 3"}, engine="eager"),
    "fan asked": Golden("fan", run(asks=2), {"answers": {"size": 99}}),
    "fan failed": Golden("fan", run(), {}, {"fails": frozenset({"measure 1", "measure 4"})}),
    "map died": Golden("mapped", run(items=[7, 8]), {}, {"dies": "measure 8"}),
    "joins half full": Golden("joins", run(), {}, {"dies": "middle"}),
    "joins half full, eager": Golden("joins", run(), {}, {"dies": "middle"}, engine="eager"),
    "joins full": Golden("joins", run(), {}, {"fails": frozenset({"both"})}),
    "long": Golden("loop", run(), {}, max_steps=150),
    "values": Golden("values", run(), {"answers": {"ask": "on"}}),
    "breakpoint after": Golden("paused", run(), {}),
    "breakpoint before": Golden("paused", run_and_answer({}, {}), {}),
    "typed dict": Golden("notes", run(), {"answers": {"answer": "x"}}),
    "dataclass": Golden("record", run(), {"answers": {"answer": "y"}}),
}
"""The lineages by name. An answer to `$0` is for the first open question, by its id: keys may be open twice."""


async def write(name: str, store: Any, graph: ModuleType) -> None:
    """Write a lineage into a store, with the graphs of that module."""
    golden = LINEAGES[name]
    executor = Executor(
        graph.GRAPHS[golden.graph],
        store,
        golden.engine,
        durability=golden.durability,
        limits=Limits(max_steps=golden.max_steps),
    )
    await golden.act(executor, name, graph.World(**golden.world))
