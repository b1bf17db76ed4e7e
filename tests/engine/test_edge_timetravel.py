"""Limits over a resume, fork and edit: edge cases 59, 73 and 74 of the graph specification."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from support.graphs import Trail, flow

from graphagent import Executor, Limits, StateGraph, Transient
from graphagent.errors import CheckpointNotFound, StateError, UndeclaredField, UsageError

pytestmark = pytest.mark.anyio


async def test_e59_the_step_limit_counts_one_run(store: Any, engine: Any, lineage: str) -> None:
    """A cycle a <-> b: three steps, then `limit_reached` with state and checkpoint; a resume has a count of its own."""
    graph = flow("START -> a -> b -> a").compile()
    first = await Executor(graph, store, engine, limits=Limits(max_steps=3)).run(lineage=lineage)
    assert (first.status, first.steps, first.state.log) == ("limit_reached", 3, ["a", "b", "a"])
    assert first.reason.startswith("steps: 3 steps are done and 'b' would be next")
    assert first.checkpoint == f"{lineage}:4"
    assert (await store.load(lineage)).row.note == {"limit": first.reason}  # for whoever finds the run later
    second = await Executor(graph, store, engine, limits=Limits(max_steps=5)).resume(lineage)
    assert (second.status, second.steps, second.state.log) == ("limit_reached", 5, ["a", "b"] * 4)
    assert [header.step for header in await store.history(lineage, limit=1)] == [8]


async def test_e59_the_limit_is_not_reached_by_the_last_step(store: Any, engine: Any, lineage: str) -> None:
    """A run that needs exactly as many steps as are allowed completes."""
    executor = Executor(flow("START -> a -> b -> END").compile(), store, engine, limits=Limits(max_steps=2))
    assert (await executor.run(lineage=lineage)).ok


async def test_e73_a_fork_in_the_same_lineage(store: Any, engine: Any, lineage: str) -> None:
    """A fork is a new newest checkpoint whose parent is its source; the source stays, and the frontier is its own."""
    executor = Executor(flow("START -> a -> b -> c -> END").compile(), store, engine)
    await executor.run(lineage=lineage)
    before = await executor.history(lineage)
    source = before[-2]
    assert source.nodes == ("a",)
    fork = await executor.fork(lineage, source.id)
    assert (fork.source, fork.parent_id, fork.seq) == ("fork", source.id, before[0].seq + 1)
    assert await executor.history(lineage) == [fork, *before]
    assert (await executor.state(lineage)).log == (await executor.state(lineage, source.id)).log == ["a"]
    assert (await executor.resume(lineage)).unwrap().log == ["a", "b", "c"]
    assert (await executor.state(lineage, before[0].id)).log == ["a", "b", "c"]


async def test_e73_a_fork_into_a_new_lineage(store: Any, engine: Any, lineage: str) -> None:
    """A fork elsewhere begins a lineage of its own, loads by itself, and leaves the source alone."""
    executor = Executor(flow("START -> a -> b -> END").compile(), store, engine)
    await executor.run({"item": "x"}, lineage=lineage)
    before = await executor.history(lineage)
    fork = await executor.fork(lineage, before[-2].id, new_lineage=f"{lineage}-fork")
    assert (fork.lineage, fork.seq, fork.parent_id) == (f"{lineage}-fork", 0, None)
    await executor.delete(lineage)
    result = await executor.resume(f"{lineage}-fork")
    assert (result.unwrap().log, result.unwrap().item) == (["a", "b"], "x")


async def test_e73_a_fork_takes_questions_along(store: Any, engine: Any, lineage: str) -> None:
    """A fork of a waiting run waits with the same keys; answering it doesn't answer the source."""

    async def ask(state: Trail, ctx: Any) -> dict[str, Any]:
        return {"log": [f"ask={await ctx.interrupt('ok?')}"]}

    calls: list[str] = []

    async def sibling(state: Trail) -> dict[str, Any]:
        calls.append("sibling")
        return {"log": ["sibling"]}

    graph = flow("START -> ask, sibling -> END", ask=ask, sibling=sibling).compile()
    executor = Executor(graph, store, engine)
    await executor.run(lineage=lineage)
    await executor.fork(lineage, new_lineage=f"{lineage}-fork")
    assert [q.key for q in await executor.interrupts(f"{lineage}-fork")] == ["ok?"]
    forked = await executor.resume(f"{lineage}-fork", answer="fork")
    assert sorted(forked.unwrap().log) == ["ask=fork", "sibling"]
    assert [q.key for q in await executor.interrupts(lineage)] == ["ok?"]
    assert sorted((await executor.resume(lineage, answer="source")).unwrap().log) == ["ask=source", "sibling"]
    assert calls == ["sibling"]


async def test_e73_a_fork_of_a_finished_run_has_nothing_left_to_run(store: Any, engine: Any, lineage: str) -> None:
    """A fork of the end is settled: a resume completes at once, a run takes a new turn."""
    executor = Executor(flow("START -> a -> END").compile(), store, engine)
    await executor.run(lineage=lineage)
    await executor.fork(lineage)
    assert ((await executor.resume(lineage)).unwrap().log, (await executor.run(lineage=lineage)).unwrap().log) == (
        ["a"],
        ["a", "a"],
    )


async def test_e73_what_is_not_there_cannot_be_forked_or_edited(store: Any, lineage: str) -> None:
    """An unknown lineage or checkpoint is refused, and nothing is written."""
    executor = Executor(flow("START -> a -> END").compile(), store)
    for checkpoint in (None, 3, f"{lineage}:3"):
        with pytest.raises(CheckpointNotFound):
            await executor.fork(lineage, checkpoint)
        with pytest.raises(CheckpointNotFound):
            await executor.edit(lineage, checkpoint, {"n": 1})
    assert await executor.history(lineage) == []


async def test_e73_resuming_at_an_older_checkpoint_forks(store: Any, engine: Any, lineage: str) -> None:
    """A resume that names an older checkpoint first writes a fork row, and the lineage goes on from there."""
    executor = Executor(flow("START -> a -> b -> END").compile(), store, engine)
    await executor.run(lineage=lineage)
    before = await executor.history(lineage)
    again = await executor.resume(lineage, checkpoint=before[-2].id)
    assert again.unwrap().log == ["a", "b"]
    assert [header.source for header in await executor.history(lineage)] == [
        "end",
        "step",
        "fork",
        "end",
        "step",
        "step",
        "input",
    ]
    assert (await executor.run(lineage=lineage)).unwrap().log == ["a", "b", "a", "b"]


async def test_e74_an_edit_is_seen_by_the_resume(store: Any, engine: Any, lineage: str) -> None:
    """An edit assigns values without merge rules, on top of a checkpoint that stays as it was."""
    executor = Executor(flow("START -> a -> b -> END").interrupt_before_nodes("b").compile(), store, engine)
    stopped = await executor.run({"n": 1}, lineage=lineage)
    assert stopped.checkpoint is not None
    edit = await executor.edit(lineage, stopped.checkpoint, {"log": ["edited"], "n": 5})
    assert (edit.source, edit.parent_id, edit.step) == ("edit", stopped.checkpoint, 1)
    assert (await executor.state(lineage, stopped.checkpoint)).log == ["a"]
    changes = await executor.diff(stopped.checkpoint, edit.id)
    assert {name: (change.before, change.after) for name, change in changes.items()} == {
        "log": (["a"], ["edited"]),
        "n": (1, 5),
    }
    result = await executor.resume(lineage)
    assert (result.unwrap().log, result.unwrap().n) == (["edited", "b"], 5)


class Guarded(BaseModel):
    """One field that is stored and one that is not."""

    n: int = 0
    client: Transient[Any] = None


@pytest.mark.parametrize(
    ("patch", "error", "message"),
    [
        ({"nn": 1}, UndeclaredField, "the edit.*'nn'.*did you mean 'n'"),
        ({"n": "many"}, StateError, "the edit.*'n'"),
        ({"n": 1, "__next__": 1}, UndeclaredField, "__next__"),
    ],
)
async def test_e74_an_edit_of_what_is_not_declared_is_refused(
    store: Any, lineage: str, patch: dict[str, Any], error: type[Exception], message: str
) -> None:
    """Only declared fields can be edited, with values of their type; a refused edit writes nothing."""

    async def node(state: Guarded) -> dict[str, Any]:
        return {"n": state.n + 1}

    graph = StateGraph(Guarded).add_node("a", node).set_entry_point("a").set_finish_point("a").compile()
    executor = Executor(graph, store)
    await executor.run(lineage=lineage)
    before = await executor.history(lineage)
    with pytest.raises(error, match=message):
        await executor.edit(lineage, None, patch)
    assert await executor.history(lineage) == before


async def test_e74_an_edit_as_a_node_goes_through_its_edges(store: Any, engine: Any, lineage: str) -> None:
    """Acting as a node: merge rules apply, the node leaves the frontier, its router fires on the patched state."""
    graph = flow("START -> a -> b", "c, d -> END")
    graph.add_conditional_edges("b", lambda state: "c" if state.n else "d", ["c", "d"])
    executor = Executor(graph.interrupt_before_nodes("b").compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    await executor.edit(lineage, stopped.checkpoint, {"log": ["by hand"], "n": 1}, as_node="b")
    assert (await executor.resume(lineage)).unwrap().log == ["a", "by hand", "c"]
    with pytest.raises(UsageError, match=r"as_node='bb'.*did you mean 'b'"):
        await executor.edit(lineage, None, {}, as_node="bb")


async def test_e74_an_edit_as_a_node_leaves_the_others_waiting(store: Any, engine: Any, lineage: str) -> None:
    """Acting as one of two parallel nodes, the other one stays in the frontier and its question stays open."""

    async def ask(state: Trail, ctx: Any) -> dict[str, Any]:
        return {"log": [f"ask={await ctx.interrupt('ok?')}"]}

    graph = flow("START -> ask, b", "d -> END", ask=ask, b=ask).add_join_edge(["ask", "b"], "d").compile()
    executor = Executor(graph, store, engine)
    stopped = await executor.run(lineage=lineage)
    await executor.edit(lineage, stopped.checkpoint, {"log": ["by hand"]}, as_node="ask")
    assert [q.node for q in await executor.interrupts(lineage)] == ["b"]
    assert (await executor.resume(lineage, answer=1)).unwrap().log == ["by hand", "ask=1", "d"]


async def test_e74_finished_activations_of_an_edited_step_run_again(store: Any, engine: Any, lineage: str) -> None:
    """An edit in the middle of a step lets what had finished in it run again, on the edited state."""

    async def ask(state: Trail, ctx: Any) -> dict[str, Any]:
        return {"log": [f"ask={await ctx.interrupt('ok?')}"]}

    async def sibling(state: Trail) -> dict[str, Any]:
        return {"log": [f"sibling saw {state.item}"]}

    executor = Executor(flow("START -> ask, sibling -> END", ask=ask, sibling=sibling).compile(), store)
    stopped = await executor.run({"item": "old"}, lineage=lineage)
    await executor.edit(lineage, stopped.checkpoint, {"item": "new"})
    assert (await executor.resume(lineage, answer=1)).unwrap().log == ["ask=1", "sibling saw new"]
