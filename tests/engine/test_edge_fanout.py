"""Fan-out by Send: edge cases 19 to 24 of the graph specification, on every store and both engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import anyio
import pytest
from pydantic import BaseModel
from support.graphs import says

from graphagent import Executor, NodeContext, Send, StateGraph, append
from graphagent.errors import UndeclaredField

pytestmark = pytest.mark.anyio


class Orders(BaseModel):
    """`item` is what a worker gets, `results` what the workers make, `shared` is the same for all."""

    item: str = "none"
    shared: str = "g"
    results: Annotated[list[str], append] = []
    log: Annotated[list[str], append] = []


async def work(state: Orders) -> dict[str, Any]:
    """A worker that tells what it saw."""
    return {"results": [f"{state.item}/{state.shared}"]}


def split_to(sends: Sequence[Send], worker: Any = work) -> StateGraph:
    """split -> worker (by Sends); both may end the run."""

    async def split(state: Orders) -> Sequence[Send]:
        return sends

    builder = StateGraph(Orders).add_node("split", split, destinations=["worker"]).add_node("worker", worker)
    return builder.set_entry_point("split")


async def test_e19_two_sends_with_overlays(store: Any, engine: Any, lineage: str) -> None:
    """Each worker sees its own overlay on top of the state; both results arrive, the overlays don't reach the state."""
    sends = [Send("worker", {"item": "one"}), Send("worker", {"item": "two"})]
    result = await Executor(split_to(sends).compile(), store, engine).run({"shared": "s"}, lineage=lineage)
    state = result.unwrap()
    assert (state.results, state.item) == (["one/s", "two/s"], "none")


async def test_e19_an_overlay_is_checked(store: Any, engine: Any, lineage: str) -> None:
    """An overlay may hold declared fields only; the error names the nearest one and who sent it."""
    result = await Executor(split_to([Send("worker", {"itm": "x"})]).compile(), store, engine).run(lineage=lineage)
    assert isinstance(result.error, UndeclaredField)
    for part in ("'split' sends to 'worker'", "'itm'", "did you mean 'item'?"):
        assert part in result.reason


async def test_e20_an_empty_fan_out(store: Any, engine: Any, lineage: str) -> None:
    """[] replaces the out-edges by nothing: no worker runs, and the run ends as it would after any last node."""
    result = await Executor(split_to([]).compile(), store, engine).run(lineage=lineage)
    assert (result.status, result.unwrap().results) == ("completed", [])

    ending = split_to([]).set_finish_point("split", "worker").compile()
    result = await Executor(ending, store, engine).run(lineage=lineage + "-end")
    assert (result.status, result.reason.split(":")[0]) == ("stalled", "end_not_reached")


async def test_e21_a_send_without_overlay(store: Any, engine: Any, lineage: str) -> None:
    """A worker without overlay sees the plain state."""
    result = await Executor(split_to([Send("worker")]).compile(), store, engine).run(lineage=lineage)
    assert result.unwrap().results == ["none/g"]


async def test_e22_activations_of_a_fan_out_have_ids_of_their_own(store: Any, engine: Any, lineage: str) -> None:
    """Five Sends to one node are five activations with five ids and branches, the same on every run."""
    seen: list[list[str]] = []

    async def worker(state: Orders, ctx: NodeContext) -> None:
        seen[-1].append(f"{ctx.activation.id} {ctx.activation.branch} {ctx.activation.index}")

    graph = split_to([Send("worker", {"item": str(i)}) for i in range(5)], worker).compile()
    for turn in range(2):
        seen.append([])
        (await Executor(graph, store, engine).run(lineage=f"{lineage}-{turn}")).unwrap()
    assert len(set(seen[0])) == 5
    assert [line.split()[1] for line in sorted(seen[0])] == [f"worker[{i}]" for i in range(5)]
    assert sorted(seen[0]) == sorted(seen[1])


def fan_and_branch(worker: Any) -> StateGraph:
    """start leads to split (which sends to two workers) and to side -> tail."""

    async def split(state: Orders) -> list[Send]:
        return [Send("worker", {"item": str(i)}) for i in range(2)]

    builder = StateGraph(Orders).add_node("start", says("start"))
    builder.add_node("tail", says("tail")).add_node("side", says("side"))
    builder.add_node("split", split, destinations=["worker"]).add_node("worker", worker)
    builder.set_entry_point("start").add_edge("start", "side").add_edge("start", "split").add_edge("side", "tail")
    return builder


async def test_e23_workers_and_a_static_branch_share_a_step(store: Any, lineage: str) -> None:
    """Workers run in the very step in which the static branch goes on; the merge follows graph order."""

    async def worker(state: Orders) -> dict[str, Any]:
        return {"log": [f"worker {state.item}"]}

    result = await Executor(fan_and_branch(worker).compile(), store).run(lineage=lineage)
    assert result.steps == 3
    assert result.unwrap().log == ["start", "side", "tail", "worker 0", "worker 1"]


async def test_e24_workers_survive_a_kill(open_store: Any, anyio_backend: str, engine: Any, lineage: str) -> None:
    """A run that dies right after the splitter's step resumes with every worker and its overlay.

    The death is a cancellation of the task that runs it, from which the engine writes nothing; the store is opened
    anew. A killed process is in the kill tests.
    """
    alive = anyio.Event()
    blocked = True

    async def worker(state: Orders) -> dict[str, Any]:
        if blocked:
            alive.set()
            await anyio.sleep_forever()
        return {"results": [state.item]}

    graph = split_to([Send("worker", {"item": str(i)}) for i in range(3)], worker).compile()
    async with open_store() as store, anyio.create_task_group() as group:

        async def doomed() -> None:
            await Executor(graph, store, engine).run(lineage=lineage)

        group.start_soon(doomed)
        await alive.wait()
        group.cancel_scope.cancel()
    blocked = False
    async with open_store() as store:
        result = await Executor(graph, store, engine).resume(lineage)
        assert result.unwrap().results == ["0", "1", "2"]


async def test_e24_finished_workers_are_not_run_again(open_store: Any, anyio_backend: str, lineage: str) -> None:
    """Of three workers two end before the run dies: only the third runs again, the results keep graph order.

    In supersteps only: the eager engine has one activation of a node in flight, so its workers run one by one.
    """
    runs: list[str] = []
    blocked = True
    others = anyio.Event()

    async def worker(state: Orders) -> dict[str, Any]:
        runs.append(state.item)
        if blocked and state.item == "1":
            others.set()
            await anyio.sleep_forever()
        return {"results": [state.item]}

    graph = split_to([Send("worker", {"item": str(i)}) for i in range(3)], worker).compile()
    async with open_store() as store, anyio.create_task_group() as group:

        async def doomed() -> None:
            await Executor(graph, store).run(lineage=lineage)

        group.start_soon(doomed)
        await others.wait()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    blocked = False
    async with open_store() as store:
        result = await Executor(graph, store).resume(lineage)
        assert result.unwrap().results == ["0", "1", "2"]
        assert sorted(runs) == ["0", "1", "1", "2"]
