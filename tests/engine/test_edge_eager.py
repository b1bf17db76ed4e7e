"""The eager engine beside the superstep engine: edge cases 68 to 70 of the graph specification."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.graphs import Trail, flow, says
from support.runs import started

from graphagent import Executor

pytestmark = pytest.mark.anyio


class Ended:
    """Nodes that end when they are told to, and what began and ended in which order."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.begun: dict[str, anyio.Event] = {}
        self.go: dict[str, anyio.Event] = {}

    def node(self, name: str, *, waits: bool = True, fails: bool = False) -> Any:
        """A node that notes when it begins and ends."""
        self.begun[name], self.go[name] = anyio.Event(), anyio.Event()

        async def run(state: Trail) -> dict[str, Any]:
            self.seen.append(f"+{name}")
            self.begun[name].set()
            if waits:
                await self.go[name].wait()
            self.seen.append(f"-{name}")
            if fails:
                raise ValueError(f"{name} broke")
            return {"log": [name]}

        return run


async def test_e68_eager_starts_a_child_before_the_slow_sibling_ends(store: Any, lineage: str) -> None:
    """The fast branch goes on while the slow one runs."""
    nodes = Ended()
    graph = flow(
        "START -> fast, slow",
        "fast -> child -> END",
        "slow -> END",
        fast=nodes.node("fast", waits=False),
        slow=nodes.node("slow"),
        child=nodes.node("child"),
    )
    executor = Executor(graph.compile(), store, "eager")
    async with started(executor, lineage, nodes.begun["child"]) as results:
        assert nodes.seen == ["+fast", "-fast", "+slow", "+child"]
        nodes.go["slow"].set()
        nodes.go["child"].set()
    assert results[0].unwrap().log[0] == "fast"


async def test_e68_a_superstep_waits_for_the_slow_sibling(store: Any, lineage: str) -> None:
    """The next step begins when all of this one have ended."""
    nodes = Ended()
    graph = flow(
        "START -> fast, slow",
        "fast -> child -> END",
        "slow -> END",
        fast=nodes.node("fast", waits=False),
        slow=nodes.node("slow"),
        child=nodes.node("child", waits=False),
    )
    executor = Executor(graph.compile(), store)
    async with started(executor, lineage, nodes.begun["slow"]) as results:
        await anyio.wait_all_tasks_blocked()
        assert nodes.seen == ["+fast", "-fast", "+slow"]
        nodes.go["slow"].set()
    assert results[0].unwrap().log == ["fast", "slow", "child"]


async def test_e69_one_activation_of_a_node_at_a_time(store: Any, lineage: str) -> None:
    """A node that is triggered again while it runs is queued: it runs twice, one after the other."""
    nodes = Ended()
    graph = flow(
        "START -> a, b", "a, b -> c -> END", a=nodes.node("a", waits=False), b=nodes.node("b"), c=nodes.node("c")
    )
    executor = Executor(graph.compile(), store, "eager")
    async with started(executor, lineage, nodes.begun["c"]) as results:
        nodes.go["b"].set()
        await anyio.wait_all_tasks_blocked()
        assert nodes.seen == ["+a", "-a", "+b", "+c", "-b"]
        nodes.go["c"].set()
    assert nodes.seen == ["+a", "-a", "+b", "+c", "-b", "-c", "+c", "-c"]
    assert results[0].unwrap().log == ["a", "b", "c", "c"]


async def test_e69_the_queued_activation_sees_what_the_first_wrote(store: Any, lineage: str) -> None:
    """A queued activation starts when the one before has been merged, and has an identity of its own."""
    ids: list[str] = []

    async def count(state: Trail, ctx: Any) -> dict[str, Any]:
        ids.append(ctx.activation.id)
        await anyio.lowlevel.checkpoint()
        return {"n": state.n + 1}

    graph = flow("START -> a, b", "a, b -> count -> END", a=says("a"), b=says("b"), count=count)
    result = await Executor(graph.compile(), store, "eager").run(lineage=lineage)
    assert (result.unwrap().n, len(set(ids))) == (2, 2)


@pytest.mark.parametrize("engine", ["eager", "superstep"])
async def test_e70_a_failure_lets_the_others_end_and_starts_nothing(store: Any, engine: Any, lineage: str) -> None:
    """After a failure what runs is let end and kept, nothing new starts, and a resume runs only what is missing."""
    nodes = Ended()
    graph = flow(
        "START -> bad, slow",
        "bad -> END",
        "slow -> after -> END",
        bad=nodes.node("bad", fails=True),
        slow=nodes.node("slow"),
        after=nodes.node("after", waits=False),
    )
    executor = Executor(graph.compile(), store, engine)
    async with started(executor, lineage, nodes.begun["slow"]) as results:
        nodes.go["bad"].set()
        await anyio.wait_all_tasks_blocked()
        assert not results, "the run must wait for what still runs"
        nodes.go["slow"].set()
    assert results[0].status == "failed"
    assert "bad broke" in str(results[0].error)
    assert nodes.seen == ["+bad", "+slow", "-bad", "-slow"]
    again = await executor.resume(lineage)
    assert (again.status, nodes.seen.count("+slow"), nodes.seen.count("+bad")) == ("failed", 1, 2)


async def test_e70_two_failures_are_both_told_of(store: Any, engine: Any, lineage: str) -> None:
    """Every activation that failed is in the error, in graph order."""
    nodes = Ended()
    graph = flow("START -> x, y -> END", x=nodes.node("x", fails=True), y=nodes.node("y", fails=True))
    executor = Executor(graph.compile(), store, engine)
    async with started(executor, lineage, nodes.begun["y"]) as results:
        nodes.go["y"].set()
        await anyio.wait_all_tasks_blocked()
        nodes.go["x"].set()
    assert results[0].status == "failed"
    assert isinstance(results[0].error, ExceptionGroup)
    assert ["broke" in str(error) and error.node for error in results[0].error.exceptions] == ["x", "y"]


@pytest.mark.parametrize("stored", [True, False])
async def test_a_join_target_goes_on_while_a_side_branch_ends(store: Any, lineage: str, stored: bool) -> None:
    """A side branch that leads nowhere ends while the target of a join runs: the target ends, once; also unsaved."""
    nodes = Ended()
    graph = flow(
        "START -> split -> a, b, side",
        "target -> END",
        side=nodes.node("side"),
        target=nodes.node("target"),
    ).add_join_edge(["a", "b"], "target")
    executor = Executor(graph.compile(), store if stored else None, "eager")
    async with started(executor, lineage, nodes.begun["target"]) as results:
        nodes.go["side"].set()
        await anyio.wait_all_tasks_blocked()
        nodes.go["target"].set()
    assert results[0].unwrap().log == ["split", "a", "b", "side", "target"]
