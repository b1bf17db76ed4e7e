"""Breakpoints and the pause button: edge cases 60 to 67 of the graph specification."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.graphs import Trail, flow
from support.runs import started

from graphagent import Executor, RunResult, Send, StateGraph
from graphagent.errors import AnswerError

pytestmark = pytest.mark.anyio


def stops(result: RunResult) -> list[tuple[str, str]]:
    """Kind and node of what a run waits with."""
    assert result.status == "interrupted", result
    return [(question.kind, question.node) for question in result.interrupts]


async def test_e60_a_breakpoint_before_a_node_stops_once(store: Any, engine: Any, lineage: str) -> None:
    """Before b in a -> b -> c: the first run ends after a; the resume runs b and c and doesn't stop again."""
    graph = flow("START -> a -> b -> c -> END").interrupt_before_nodes("b").compile()
    stopped = await Executor(graph, store, engine).run(lineage=lineage)
    assert (stops(stopped), stopped.state.log) == ([("before", "b")], ["a"])
    assert stopped.interrupts[0].prompt == {"phase": "before", "nodes": ["b"], "active": ["b"]}
    assert (await Executor(graph, store, engine).resume(lineage)).unwrap().log == ["a", "b", "c"]


async def test_e60_a_breakpoint_in_a_loop_stops_every_lap(store: Any, engine: Any, lineage: str) -> None:
    """A breakpoint that was passed counts again at the next visit."""
    graph = flow("START -> a").interrupt_before_nodes("a")
    graph.add_conditional_edges("a", lambda state: "a" if len(state.log) < 3 else "__end__", ["a"])
    executor = Executor(graph.compile(), store, engine)
    result = await executor.run(lineage=lineage)
    for laps in range(3):
        assert (stops(result), len(result.state.log)) == ([("before", "a")], laps)
        result = await executor.resume(lineage)
    assert result.unwrap().log == ["a", "a", "a"]


async def test_e60_a_condition_decides(store: Any, engine: Any, lineage: str) -> None:
    """A conditional breakpoint stops where its predicate holds on the state of that moment."""
    graph = StateGraph(Trail).add_node("a", counts, interrupt_before=lambda state: state.n == 2).set_entry_point("a")
    graph.add_conditional_edges("a", lambda state: "a" if state.n < 4 else "__end__", ["a"])
    executor = Executor(graph.compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    assert (stops(stopped), stopped.state.n) == ([("before", "a")], 2)
    assert (await executor.resume(lineage)).unwrap().n == 4


async def counts(state: Trail) -> dict[str, Any]:
    """Adds one."""
    return {"n": state.n + 1}


@pytest.mark.parametrize("when", ["interrupt_before", "interrupt_after"])
async def test_e60_a_failing_condition_fails_the_run(store: Any, engine: Any, lineage: str, when: str) -> None:
    """A predicate that raises ends the run as failed, naming the node; nothing that ran is lost or run again."""
    calls, broken = 0, True

    async def b(state: Trail) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        return {"log": ["b"]}

    def condition(state: Trail) -> bool:
        if broken:
            raise ValueError("no idea")
        return False

    graph = flow("START -> a").add_node("b", b, **{when: condition}).add_edge("a", "b")
    executor = Executor(graph.compile(), store, engine)
    result = await executor.run(lineage=lineage)
    assert (result.status, result.state.log) == ("failed", ["a"])
    assert "breakpoint condition of node 'b' failed: ValueError: no idea" in str(result.error)
    assert (await executor.state(lineage)).log == ["a"]
    broken = False
    assert ((await executor.resume(lineage)).unwrap().log, calls) == (["a", "b"], 1)


async def test_e60_a_node_with_a_breakpoint_that_asks(store: Any, engine: Any, lineage: str) -> None:
    """A breakpoint stops before a node has begun, and not again before the re-run that brings its answer."""

    async def ask(state: Trail, ctx: Any) -> dict[str, Any]:
        return {"log": [f"{await ctx.interrupt('one')}{await ctx.interrupt('two')}"]}

    executor = Executor(flow("START -> ask -> END", ask=ask).interrupt_before_nodes("ask").compile(), store, engine)
    assert stops(await executor.run(lineage=lineage)) == [("before", "ask")]
    assert stops(await executor.resume(lineage)) == [("ask", "ask")]
    assert stops(await executor.resume(lineage, answer=1)) == [("ask", "ask")]
    assert (await executor.resume(lineage, answer=2)).unwrap().log == ["12"]


async def test_e60_a_node_with_a_breakpoint_that_fails(store: Any, engine: Any, lineage: str) -> None:
    """A breakpoint that was passed stays so when the node fails and is run again."""
    broken = True

    async def node(state: Trail) -> dict[str, Any]:
        if broken:
            raise ValueError("not yet")
        return {"log": ["b"]}

    graph = flow("START -> a -> b -> b2 -> END", b=node).interrupt_before_nodes("b", "b2").compile()
    executor = Executor(graph, store, engine)
    assert stops(await executor.run(lineage=lineage)) == [("before", "b")]
    assert (await executor.resume(lineage)).status == "failed"
    broken = False
    assert stops(await executor.resume(lineage)) == [("before", "b2")]
    assert (await executor.resume(lineage)).unwrap().log == ["a", "b", "b2"]


async def test_e60_a_breakpoint_wants_no_answer(store: Any, engine: Any, lineage: str) -> None:
    """A breakpoint is passed by a resume; an answer to it is refused, and changes nothing."""
    executor = Executor(flow("START -> a -> b -> END").interrupt_before_nodes("b").compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    for answers in ({"before:b": 1}, {stopped.interrupts[0].id: 1}):
        with pytest.raises(AnswerError, match="nothing is pending"):
            await executor.resume(lineage, answers)
    assert (await executor.resume(lineage)).unwrap().log == ["a", "b"]


async def test_e61_a_breakpoint_after_a_node_keeps_its_result(store: Any, engine: Any, lineage: str) -> None:
    """After b: the first run has b's result and stops before c; the resume runs c only."""
    graph = flow("START -> a -> b -> c -> END").interrupt_after_nodes("b").compile()
    stopped = await Executor(graph, store, engine).run(lineage=lineage)
    assert (stops(stopped), stopped.state.log) == ([("after", "b")], ["a", "b"])
    assert (await Executor(graph, store, engine).resume(lineage)).unwrap().log == ["a", "b", "c"]


async def test_e62_a_breakpoint_after_the_last_node(store: Any, engine: Any, lineage: str) -> None:
    """After the last node: the run stops with everything done, and the resume completes at once."""
    executor = Executor(flow("START -> a -> b -> END").interrupt_after_nodes("b").compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    assert (stops(stopped), stopped.state.log) == ([("after", "b")], ["a", "b"])
    result = await executor.resume(lineage)
    assert (result.unwrap().log, result.steps) == (["a", "b"], 0)
    assert (await executor.run(lineage=lineage)).status == "interrupted"


async def test_e63_breakpoints_on_chained_nodes_stop_twice(store: Any, engine: Any, lineage: str) -> None:
    """Breakpoints on two chained nodes make two stops, and each node runs once."""
    executor = Executor(flow("START -> a -> b -> c -> END").interrupt_before_nodes("b", "c").compile(), store, engine)
    assert stops(await executor.run(lineage=lineage)) == [("before", "b")]
    assert stops(await executor.resume(lineage)) == [("before", "c")]
    assert (await executor.resume(lineage)).unwrap().log == ["a", "b", "c"]


async def test_e63_before_and_after_one_node(store: Any, engine: Any, lineage: str) -> None:
    """A node with both breakpoints stops before, then after, and runs once."""
    graph = flow("START -> a -> b -> c -> END").interrupt_before_nodes("b").interrupt_after_nodes("b")
    executor = Executor(graph.compile(), store, engine)
    assert stops(await executor.run(lineage=lineage)) == [("before", "b")]
    assert stops(await executor.resume(lineage)) == [("after", "b")]
    assert (await executor.resume(lineage)).unwrap().log == ["a", "b", "c"]


async def test_e64_breakpoints_on_parallel_nodes_stop_once(store: Any, engine: Any, lineage: str) -> None:
    """Breakpoints on two nodes of one frontier make one stop that lists both and all that would run."""
    graph = flow("START -> a -> b, c, d -> END").interrupt_before_nodes("b", "c").compile()
    executor = Executor(graph, store, engine)
    stopped = await executor.run(lineage=lineage)
    assert (stops(stopped), stopped.state.log) == ([("before", "b"), ("before", "c")], ["a"])
    assert stopped.interrupts[0].prompt == {"phase": "before", "nodes": ["b", "c"], "active": ["b", "c", "d"]}
    assert sorted((await executor.resume(lineage)).unwrap().log) == ["a", "b", "c", "d"]


async def test_e64_breakpoints_after_parallel_nodes(store: Any, lineage: str) -> None:
    """After two nodes of one superstep: one stop lists both, and neither runs again."""
    graph = flow("START -> a -> b, c -> d -> END").interrupt_after_nodes("b", "c").compile()
    executor = Executor(graph, store)
    stopped = await executor.run(lineage=lineage)
    assert (stops(stopped), stopped.state.log) == ([("after", "b"), ("after", "c")], ["a", "b", "c"])
    assert (await executor.resume(lineage)).unwrap().log == ["a", "b", "c", "d"]


async def test_e64_a_breakpoint_beside_a_question(store: Any, engine: Any, lineage: str) -> None:
    """A breakpoint on one branch and a question on the other: both are dealt with, nothing runs twice."""

    async def ask(state: Trail, ctx: Any) -> dict[str, Any]:
        return {"log": [f"ask={await ctx.interrupt('ok?')}"]}

    graph = flow("START -> ask, b -> END", ask=ask).interrupt_before_nodes("b").compile()
    executor = Executor(graph, store, engine)
    result = await executor.run(lineage=lineage)
    for _ in range(3):
        pending = [q for q in result.interrupts if q.kind == "ask"]
        result = await executor.resume(lineage, {q.id: "yes" for q in pending})
        if result.ok:
            break
    assert sorted(result.unwrap().log) == ["ask=yes", "b"]


async def test_e64_a_breakpoint_beside_a_running_node(store: Any, engine: Any, lineage: str) -> None:
    """A node that ends after the stop was decided moves the frontier; the breakpoint is passed all the same."""
    begun = anyio.Event()

    async def late(state: Trail) -> dict[str, Any]:
        await begun.wait()
        return {"log": ["late"]}

    async def opens(state: Trail) -> dict[str, Any]:
        begun.set()
        return {"log": ["opens"]}

    graph = flow("START -> late, opens", "opens -> b -> END", "late -> c -> END", late=late, opens=opens)
    executor = Executor(graph.interrupt_before_nodes("b").compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    assert (stops(stopped), sorted(stopped.state.log)) == ([("before", "b")], ["late", "opens"])
    assert sorted((await executor.resume(lineage)).unwrap().log) == ["b", "c", "late", "opens"]


class Gate:
    """A node that says when it has begun and waits to be let go."""

    def __init__(self) -> None:
        self.begun, self.go = anyio.Event(), anyio.Event()
        self.calls = 0

    async def __call__(self, state: Trail) -> dict[str, Any]:
        self.calls += 1
        self.begun.set()
        await self.go.wait()
        return {"log": [f"gate saw {','.join(state.log)}"]}


async def pause_during(executor: Executor, lineage: str, gate: Gate, given: Any = None) -> RunResult:
    """The result of a run that is asked to pause while the gate is closed, and whose gate is opened then."""
    async with started(executor, lineage, gate.begun, given) as results, anyio.create_task_group() as group:
        group.start_soon(executor.pause, lineage)
        await anyio.wait_all_tasks_blocked()
        gate.go.set()
    return results[0]


async def test_e65_a_pause_lets_the_running_node_finish(store: Any, engine: Any, lineage: str) -> None:
    """Paused during a: a's result is kept, b hasn't begun, and the resume runs b only."""
    gate = Gate()
    executor = Executor(flow("START -> a -> b -> END", a=gate).compile(), store, engine)
    stopped = await pause_during(executor, lineage, gate)
    assert (stops(stopped), stopped.state.log) == ([("pause", "")], ["gate saw "])
    assert stopped.interrupts[0].prompt == {"forced": False}
    result = await Executor(executor.graph, store, engine).resume(lineage)
    assert (result.unwrap().log, gate.calls) == (["gate saw ", "b"], 1)


async def test_e65_a_pause_after_the_last_step_has_no_effect(store: Any, engine: Any, lineage: str) -> None:
    """A pause that comes while the last node runs lets the run complete; one without a run says so."""
    gate = Gate()
    executor = Executor(flow("START -> a -> END", a=gate).compile(), store, engine)
    assert (await pause_during(executor, lineage, gate)).ok
    assert await executor.pause(lineage) is False


async def test_e66_a_pause_keeps_a_planned_fan_out(store: Any, engine: Any, lineage: str) -> None:
    """Paused while the splitter runs: both Sends to one worker are kept with their overlays."""
    gate = Gate()

    async def split(state: Trail) -> list[Send]:
        await gate(state)
        return [Send("b", {"item": "x"}), Send("b", {"item": "y"})]

    async def worker(state: Trail) -> dict[str, Any]:
        return {"log": [f"{state.item}/{state.n}"]}

    graph = StateGraph(Trail).add_node("split", split, destinations=["b"]).add_node("b", worker)
    executor = Executor(graph.set_entry_point("split").set_finish_point("b").compile(), store, engine)
    stopped = await pause_during(executor, lineage, gate, {"n": 7})
    assert stops(stopped) == [("pause", "")]
    result = await Executor(executor.graph, store, engine).resume(lineage)
    assert (result.unwrap().log, result.unwrap().item) == (["x/7", "y/7"], "")


async def test_e66_a_breakpoint_keeps_a_planned_fan_out(store: Any, engine: Any, lineage: str) -> None:
    """A breakpoint before the worker stops once for both Sends, each under its own id, and keeps their overlays."""

    async def split(state: Trail) -> list[Send]:
        return [Send("b", {"item": "x"}), Send("b", {"item": "y"})]

    async def worker(state: Trail) -> dict[str, Any]:
        return {"log": [f"{state.item}/{state.n}"]}

    graph = StateGraph(Trail).add_node("split", split, destinations=["b"]).add_node("b", worker)
    graph.set_entry_point("split").set_finish_point("b").interrupt_before_nodes("b")
    executor = Executor(graph.compile(), store, engine)
    stopped = await executor.run({"n": 7}, lineage=lineage)
    assert stops(stopped) == [("before", "b"), ("before", "b")]
    assert len({q.id for q in stopped.interrupts}) == 2
    result = await Executor(executor.graph, store, engine).resume(lineage)
    assert (result.unwrap().log, result.unwrap().item) == (["x/7", "y/7"], "")


@pytest.mark.parametrize("timeout", [0, 0.02])
async def test_e67_a_forced_pause_runs_the_node_again(store: Any, engine: Any, lineage: str, timeout: float) -> None:
    """A pause whose time is up cancels the node that blocks; on resume it runs again from the same state."""
    gate = Gate()
    executor = Executor(flow("START -> a -> gate -> b -> END", gate=gate).compile(), store, engine)
    async with started(executor, lineage, gate.begun) as results:
        assert await executor.pause(lineage, timeout=timeout)
    assert (stops(results[0]), results[0].state.log) == ([("pause", "")], ["a"])
    assert results[0].interrupts[0].prompt == {"forced": True}
    gate.go.set()
    result = await Executor(executor.graph, store, engine).resume(lineage)
    assert (result.unwrap().log, gate.calls) == (["a", "gate saw a", "b"], 2)


async def test_e67_what_had_finished_beside_it_is_kept(store: Any, engine: Any, lineage: str) -> None:
    """Of two branches the finished one isn't run again, and the other starts again from its original input."""
    gate, fast = Gate(), 0

    async def quick(state: Trail) -> dict[str, Any]:
        nonlocal fast
        fast += 1
        return {"log": ["quick"]}

    graph = flow("START -> gate, quick", "d -> END", gate=gate, quick=quick).add_join_edge(["gate", "quick"], "d")
    executor = Executor(graph.compile(), store, engine)
    async with started(executor, lineage, gate.begun) as results:
        await anyio.wait_all_tasks_blocked()
        assert await executor.pause(lineage, timeout=0)
    assert stops(results[0]) == [("pause", "")]
    gate.go.set()
    result = await Executor(executor.graph, store, engine).resume(lineage)
    assert (gate.calls, fast, len(result.unwrap().log), result.unwrap().log[-1]) == (2, 1, 3, "d")
    assert "gate saw " in result.unwrap().log


async def test_e67_an_edit_during_the_pause_is_seen(store: Any, engine: Any, lineage: str) -> None:
    """The node that runs again sees an edit, since the edit asked for it."""
    gate = Gate()
    executor = Executor(flow("START -> gate -> END", gate=gate).compile(), store, engine)
    async with started(executor, lineage, gate.begun) as results:
        await executor.pause(lineage, timeout=0)
    await executor.edit(lineage, results[0].checkpoint, {"log": ["edited"]})
    gate.go.set()
    assert (await executor.resume(lineage)).unwrap().log == ["edited", "gate saw edited"]
