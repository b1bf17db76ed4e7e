"""The four policies for a lineage that is held already (C146), in one process and across two.

Also what a second, legitimate writer may do (C151, C153); sessions are built on this and tested with the runner.
"""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.graphs import Trail, flow
from support.runs import started
from support.worker import Log, log_graph, other_process

from graphagent import Executor, NodeContext, RunResult, SqlCheckpoints
from graphagent.engine.conflict import ConflictPolicy
from graphagent.errors import LineageBusy

pytestmark = pytest.mark.anyio


class Turns:
    """A graph of a tool call and a reply; each turn waits at its tool until it may go on."""

    def __init__(self) -> None:
        self.gates: dict[str, anyio.Event] = {}
        self.reached: dict[str, anyio.Event] = {}

    def turn(self, name: str, *, free: bool = False) -> dict[str, str]:
        """The input of a turn."""
        self.gates[name], self.reached[name] = anyio.Event(), anyio.Event()
        if free:
            self.gates[name].set()
        return {"item": name}

    async def tool(self, state: Trail) -> dict[str, Any]:
        self.reached[state.item].set()
        await self.gates[state.item].wait()
        return {"log": [f"tool {state.item}"]}

    async def reply(self, state: Trail) -> dict[str, Any]:
        return {"log": [f"reply {state.item}"]}

    def executor(self, store: Any, engine: Any, policy: ConflictPolicy) -> Executor:
        graph = flow("START -> tool -> reply -> END", tool=self.tool, reply=self.reply).compile()
        return Executor(graph, store, engine, on_conflict=policy)


def said(*turns: str) -> list[str]:
    """The log of turns that were not mixed up."""
    return [f"{what} {turn}" for turn in turns for what in ("tool", "reply")]


@pytest.mark.parametrize("same", [True, False], ids=["one executor", "two executors"])
async def test_c146_reject(store: Any, engine: Any, lineage: str, same: bool) -> None:
    """The second run is refused with the first one's name, which goes on undisturbed; the third message works."""
    turns = Turns()
    first = turns.executor(store, engine, "reject")
    second = first if same else turns.executor(store, engine, "reject")
    turns.turn("a")
    async with started(first, lineage, turns.reached["a"], {"item": "a"}) as results:
        with pytest.raises(LineageBusy, match=f"'{lineage}' is held by run"):
            await second.run(turns.turn("b"), lineage=lineage)
        turns.gates["a"].set()
    assert results[0].unwrap().log == said("a")
    third = await second.run(turns.turn("c", free=True), lineage=lineage)
    assert third.unwrap().log == said("a", "c")


async def both(
    first: Executor, second: Executor, turns: Turns, lineage: str, *, let_go: bool = True
) -> list[RunResult]:
    """The results of turns a and b, where b comes while a is at its tool; `let_go`: a may go on a little later."""
    results: dict[str, RunResult] = {}

    async def run(executor: Executor, name: str) -> None:
        results[name] = await executor.run({"item": name}, lineage=lineage)

    turns.turn("a")
    turns.turn("b", free=True)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run, first, "a")
            await turns.reached["a"].wait()
            group.start_soon(run, second, "b")
            await anyio.sleep(0.02)
            if let_go:
                turns.gates["a"].set()
    return [results["a"], results["b"]]


@pytest.mark.parametrize("same", [True, False], ids=["one executor", "two executors"])
async def test_c146_queue(store: Any, engine: Any, lineage: str, same: bool) -> None:
    """The second run waits until the first has ended, and then is an ordinary next turn; the third message works."""
    turns = Turns()
    first = turns.executor(store, engine, "queue")
    second = first if same else turns.executor(store, engine, "queue")
    a, b = await both(first, second, turns, lineage)
    assert a.unwrap().log == said("a")
    assert b.unwrap().log == said("a", "b")
    assert (await first.run(turns.turn("c", free=True), lineage=lineage)).unwrap().log == said("a", "b", "c")


@pytest.mark.parametrize("same", [True, False], ids=["one executor", "two executors"])
async def test_c146_cancel_previous(store: Any, engine: Any, lineage: str, same: bool) -> None:
    """The first run ends as cancelled and is given up; the second is a turn on what was finished before it."""
    turns = Turns()
    first = turns.executor(store, engine, "cancel_previous")
    second = first if same else turns.executor(store, engine, "cancel_previous")
    await first.run(turns.turn("0", free=True), lineage=lineage)
    a, b = await both(first, second, turns, lineage, let_go=False)
    assert a.status == "cancelled"
    assert b.unwrap().log == said("0", "b")
    assert (await first.run(turns.turn("c", free=True), lineage=lineage)).unwrap().log == said("0", "b", "c")


@pytest.mark.parametrize("same", [True, False], ids=["one executor", "two executors"])
async def test_c146_fork(store: Any, engine: Any, lineage: str, same: bool) -> None:
    """The second run goes on in a lineage of its own, from the last finished turn; both histories are well formed."""
    turns = Turns()
    first = turns.executor(store, engine, "fork")
    second = first if same else turns.executor(store, engine, "fork")
    await first.run(turns.turn("0", free=True), lineage=lineage)
    a, b = await both(first, second, turns, lineage)
    assert (a.lineage, a.unwrap().log) == (lineage, said("0", "a"))
    assert (b.lineage != lineage, b.unwrap().log) == (True, said("0", "b"))
    assert (await first.run(turns.turn("c", free=True), lineage=lineage)).unwrap().log == said("0", "a", "c")
    assert (await first.run(turns.turn("d", free=True), lineage=b.lineage)).unwrap().log == said("0", "b", "d")


async def test_c146_a_queue_of_many(store: Any, engine: Any, lineage: str) -> None:
    """Three runs that meet at once under `queue` all take their turn, whole and one after the other."""
    turns = Turns()
    executor = turns.executor(store, engine, "queue")
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for name in "abc":
                turns.turn(name, free=True)
                group.start_soon(lambda name=name: executor.run({"item": name}, lineage=lineage))
    log = (await executor.state(lineage)).log
    order = [entry.removeprefix("tool ") for entry in log[::2]]
    assert sorted(order) == list("abc")
    assert log == said(*order)


async def test_c146_a_waiting_run_can_be_left(store: Any, engine: Any, lineage: str) -> None:
    """A reader that leaves the stream of a queued run takes it out of the queue; nothing of it runs."""
    turns = Turns()
    executor = turns.executor(store, engine, "queue")
    turns.turn("a")
    async with started(executor, lineage, turns.reached["a"], {"item": "a"}) as results:
        async with executor.stream(turns.turn("b", free=True), lineage=lineage):
            await anyio.lowlevel.checkpoint()
        turns.gates["a"].set()
    assert results[0].unwrap().log == said("a")
    assert not turns.reached["b"].is_set()
    assert (await executor.state(lineage)).log == said("a")


async def test_c146_two_processes(database: str, lineage: str) -> None:
    """Across processes: `reject` refuses, `queue` waits, `cancel_previous` ends the other's run, `fork` leaves it."""

    async def speak(state: Log) -> dict[str, Any]:
        return {"log": ["ours"]}

    graph = log_graph(speak)
    async with SqlCheckpoints(database, lease_ttl=30) as store, other_process(database) as other:

        async def held(name: str) -> str:
            await other.tell(f"hold {lineage}-{name}")
            assert await other.hear() == f"held {lineage}-{name}"
            return f"{lineage}-{name}"

        place = await held("reject")
        with pytest.raises(LineageBusy, match=place):
            await Executor(graph, store).run({}, lineage=place)
        await other.tell(f"go {place}")
        assert await other.hear() == f"over {place} completed theirs"
        assert (await Executor(graph, store).run({}, lineage=place)).unwrap().log == ["theirs", "ours"]

        place, results = await held("queue"), []
        async with anyio.create_task_group() as group:

            async def wait(place: str = place) -> None:
                results.append(await Executor(graph, store, on_conflict="queue").run({}, lineage=place))

            group.start_soon(wait)
            await anyio.sleep(0.02)
            assert not results
            await other.tell(f"go {place}")
            assert await other.hear() == f"over {place} completed theirs"
        assert results[0].unwrap().log == ["theirs", "ours"]

        place = await held("cancel")
        result = await Executor(graph, store, on_conflict="cancel_previous").run({}, lineage=place)
        assert result.unwrap().log == ["ours"]
        assert await other.hear() == f"over {place} cancelled "

        place = await held("fork")
        result = await Executor(graph, store, on_conflict="fork").run({}, lineage=place)
        assert (result.lineage != place, result.unwrap().log) == (True, ["ours"])
        await other.tell(f"go {place}")
        assert await other.hear() == f"over {place} completed theirs"


# -- C151 and C153 -----------------------------------------------------------------------------------


async def test_c151_a_second_writer_is_refused_and_harms_nobody(store: Any, engine: Any, lineage: str) -> None:
    """A node may read its own lineage; writing to it beside the run is refused at once, and the turn completes.

    A node's note goes through its own update: there is no second handle that could get out of date.
    """
    found = []

    async def note(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        found.append((await executor.state(ctx.lineage)).log)
        found.append(len(await executor.history(ctx.lineage)))
        with pytest.raises(LineageBusy):
            await executor.edit(ctx.lineage, None, {"item": "sneaked in"})
        if state.n:
            return {"log": ["note"]}
        other = await executor.run({"n": 1}, lineage=f"{ctx.lineage}-notes")
        return {"log": [f"note after {other.status}"]}

    executor = Executor(flow("START -> first -> note -> last -> END", note=note).compile(), store, engine)
    result = await executor.run({}, lineage=lineage)
    assert result.unwrap().log == ["first", "note after completed", "last"]
    assert found[0] == ["first"]


async def test_c153_a_state_update_and_a_message_together(store: Any, engine: Any, lineage: str) -> None:
    """An update that comes with a message, and what the node writes in the same turn, both survive."""

    async def agent(state: Trail) -> dict[str, Any]:
        return {"log": [f"saw {state.item}"], "n": state.n + 1}

    executor = Executor(flow("START -> agent -> END", agent=agent).compile(), store, engine)
    await executor.run({"log": ["hello"], "item": "old", "n": 1}, lineage=lineage)
    await executor.edit(lineage, None, {"item": "edited between turns"})
    result = (await executor.run({"log": ["again"], "n": 10}, lineage=lineage)).unwrap()
    assert result.log == ["hello", "saw old", "again", "saw edited between turns"]
    assert (result.item, result.n) == ("edited between turns", 11)
