"""Checkpoints: edge cases 49 to 51, 71, 72 and 75 to 78 of the graph specification."""

from __future__ import annotations

from typing import Any

import pytest
from support.faulty import Faulty
from support.graphs import Trail, flow

from graphagent import Executor, Limits, StateGraph
from graphagent.checkpoint.record import Retention
from graphagent.errors import CheckpointError, CheckpointNotFound, InterruptedRunError, LoadError, SaveError

pytestmark = pytest.mark.anyio


async def test_e49_a_failing_save_fails_the_run(store: Any, engine: Any, lineage: str) -> None:
    """A row that can't be written fails the run; once the store works again it goes on, and what was written is not
    done again. Whichever row it is, and whatever the store raises."""
    graph = flow("START -> a -> b -> c -> END").compile()
    for good, error in enumerate(
        [SaveError("disk full"), OSError("disk full"), SaveError("disk full"), OSError("disk full")]
    ):
        own = f"{lineage}-{good}"
        faulty = Faulty(store, "append", error, good=good)
        executor = Executor(graph, faulty, engine)
        result = await executor.run(lineage=own)
        assert (result.status, type(result.error)) == ("failed", SaveError)
        assert "disk full" in str(result.error)
        assert result.state.log == ["a", "b", "c"][: max(good - 1, 0)]
        faulty.error = None
        assert len(await executor.history(own)) == good
        again = await executor.resume(own) if good else await executor.run(lineage=own)
        assert again.unwrap().log == ["a", "b", "c"]


async def test_e49_a_result_that_cannot_be_kept_fails_the_run(store: Any, engine: Any, lineage: str) -> None:
    """Where the finished activations of a wide step can't be stored, the run fails, and nothing is merged."""
    executor = Executor(
        flow("START -> a, b -> END").compile(), Faulty(store, "put_activations", SaveError("disk full")), engine
    )
    result = await executor.run(lineage=lineage)
    if engine == "eager":  # which keeps nothing beside its rows
        assert result.unwrap().log == ["a", "b"]
    else:
        assert (result.status, type(result.error), result.state.log) == ("failed", SaveError, [])


async def test_e49_a_failing_save_of_a_question_fails_the_run(store: Any, engine: Any, lineage: str) -> None:
    """An interrupt that can't be written is not an interrupt: nobody could answer it after a restart."""

    async def ask(state: Trail, ctx: Any) -> dict[str, Any]:
        return {"log": [await ctx.interrupt("ok?")]}

    faulty = Faulty(store, "append", SaveError("disk full"), good=2)
    executor = Executor(flow("START -> a -> ask -> END", ask=ask).compile(), faulty, engine)
    result = await executor.run(lineage=lineage)
    assert (result.status, result.interrupts) == ("failed", ())
    faulty.error = None
    assert (await executor.resume(lineage)).status == "interrupted"
    assert (await executor.resume(lineage, answer="yes")).unwrap().log == ["a", "yes"]


async def test_e50_a_failing_load_is_an_error(store: Any, engine: Any, lineage: str) -> None:
    """A lineage that can't be read is an error with or without a checkpoint id, never a fresh run over it."""
    graph = flow("START -> a -> END").compile()
    await Executor(graph, store, engine).run(lineage=lineage)
    before = await store.history(lineage)
    executor = Executor(graph, Faulty(store, "load", LoadError("unreadable")), engine)
    for call in (
        executor.run(lineage=lineage),
        executor.resume(lineage),
        executor.resume(lineage, checkpoint=before[-1].id),
    ):
        with pytest.raises(CheckpointError, match="unreadable"):
            await call
    assert await store.history(lineage) == before


async def test_e51_a_missing_checkpoint_is_an_error(store: Any, engine: Any, lineage: str) -> None:
    """Resuming at a checkpoint or in a lineage that isn't there says so and writes nothing."""
    executor = Executor(flow("START -> a -> END").compile(), store, engine)
    for checkpoint in (None, 0, f"{lineage}:0"):
        with pytest.raises(CheckpointNotFound, match=lineage):
            await executor.resume(lineage, checkpoint=checkpoint)
    assert await executor.history(lineage) == []
    await executor.run(lineage=lineage)
    before = await executor.history(lineage)
    for missing in (77, f"{lineage}:77", "elsewhere:0", "nonsense"):
        with pytest.raises(CheckpointNotFound, match=lineage):
            await executor.resume(lineage, checkpoint=missing)
    assert await executor.history(lineage) == before
    assert (await executor.run(lineage=lineage)).ok


async def test_e51_the_lineage_is_free_after_a_refused_resume(store: Any, lineage: str) -> None:
    """A refused resume doesn't keep the lineage held."""
    executor = Executor(flow("START -> a -> END").compile(), store)
    with pytest.raises(CheckpointNotFound):
        await executor.resume(lineage)
    lease = await store.acquire(lineage, "other")
    await store.release(lease)


def joined(answering: Any, mode: Any = "all") -> StateGraph:
    """`slow` asks before its branch ends; both branches meet in `d`."""
    graph = flow("START -> fast, slow", "fast -> f2", "d -> END", slow=answering)
    return graph.add_join_edge(["f2", "slow"], "d", mode=mode)


@pytest.mark.parametrize("mode", ["all", "active", 2])
async def test_e71_join_progress_survives_an_interrupt(store: Any, engine: Any, lineage: str, mode: Any) -> None:
    """A half full join is stored with the question of the other branch; it fires once when the rest has come."""

    async def ask(state: Trail, ctx: Any) -> dict[str, Any]:
        return {"log": [await ctx.interrupt("ok?")]}

    graph = joined(ask, mode).compile()
    stopped = await Executor(graph, store, engine).run(lineage=lineage)
    assert stopped.status == "interrupted"
    result = await Executor(graph, store, engine).resume(lineage, answer="yes")
    assert sorted(result.unwrap().log) == ["d", "f2", "fast", "yes"]


async def test_e71_a_satisfied_join_runs_its_target_once(store: Any, engine: Any, lineage: str) -> None:
    """An interrupt while the target of a full join is about to run, or has run, doesn't run it again."""

    async def ask(state: Trail, ctx: Any) -> dict[str, Any]:
        return {"log": [await ctx.interrupt("ok?")]}

    graph = flow("START -> a, b, ask", "d -> END", ask=ask).add_join_edge(["a", "b"], "d").compile()
    stopped = await Executor(graph, store, engine).run(lineage=lineage)
    assert stopped.status == "interrupted"
    result = await Executor(graph, store, engine).resume(lineage, answer="yes")
    assert sorted(result.unwrap().log) == ["a", "b", "d", "yes"]


async def test_e72_a_resume_takes_no_input(store: Any, engine: Any, lineage: str) -> None:
    """The stored value stands: new input for an unfinished run is refused, and an edit is the way to change it."""
    graph = flow("START -> a -> b -> END", b=says_item).interrupt_before_nodes("b").compile()
    executor = Executor(graph, store, engine)
    stopped = await executor.run({"item": "old"}, lineage=lineage)
    with pytest.raises(InterruptedRunError):
        await executor.run({"item": "new"}, lineage=lineage)
    assert (await executor.resume(lineage)).unwrap().log == ["a", "old"]
    await executor.edit(lineage, stopped.checkpoint, {"item": "new"})
    assert (await executor.resume(lineage)).unwrap().log == ["a", "new"]


async def says_item(state: Trail) -> dict[str, Any]:
    """Writes what it was given to the log."""
    return {"log": [state.item]}


async def test_e75_history_is_newest_first(store: Any, engine: Any, lineage: str) -> None:
    """Headers come newest first; no limit, or 0, means all; an unknown lineage has none."""
    executor = Executor(flow("START -> a -> b -> END").compile(), store, engine)
    await executor.run(lineage=lineage)
    headers = await executor.history(lineage)
    assert [(h.source, h.step, h.nodes) for h in headers] == [
        ("end", 2, ()),
        ("step", 2, ("b",)),
        ("step", 1, ("a",)),
        ("input", 0, ()),
    ]
    assert [h.id for h in headers] == [f"{lineage}:{seq}" for seq in (3, 2, 1, 0)]
    assert [h.parent_id for h in headers] == [f"{lineage}:{seq}" for seq in (2, 1, 0)] + [None]
    assert await executor.history(lineage, limit=0) == headers
    assert await executor.history(lineage, limit=2) == headers[:2]
    assert await executor.history(lineage, limit=99) == headers
    assert await executor.history(f"{lineage}-unknown") == []


async def test_e76_nothing_is_dropped_silently(store: Any, lineage: str) -> None:
    """There is no hidden limit: a run of 130 steps keeps a row for each, one for its input and one for its limit."""
    executor = Executor(counting(), store, limits=Limits(max_steps=130))
    result = await executor.run(lineage=lineage)
    assert result.status == "limit_reached"
    headers = await executor.history(lineage)
    assert [h.seq for h in headers] == list(range(131, -1, -1))
    assert [(await executor.state(lineage, seq)).n for seq in (0, 1, 64, 129, 130)] == [0, 1, 64, 129, 130]


async def test_e76_prune_keeps_what_the_policy_says(store: Any, lineage: str) -> None:
    """`prune` removes the oldest rows of that lineage only; what stays loads as before, and the run can be resumed."""
    executor = Executor(counting(), store, limits=Limits(max_steps=12))
    await executor.run(lineage=lineage)
    await executor.run(lineage=f"{lineage}-other")
    dry = await executor.prune(Retention(keep_last=5), lineage=lineage, dry_run=True)
    assert len(await executor.history(lineage)) == 14
    report = await executor.prune(Retention(keep_last=5), lineage=lineage)
    assert (report.rows, report.lineages) == (dry.rows, dry.lineages) == (9, 1)
    assert [h.seq for h in await executor.history(lineage)] == [13, 12, 11, 10, 9]
    assert len(await executor.history(f"{lineage}-other")) == 14
    states = [await executor.state(lineage, seq) for seq in (9, 13)]
    assert [(state.n, len(state.log)) for state in states] == [(9, 9), (12, 12)]
    assert (await executor.resume(lineage)).state.n == 24


def counting() -> Any:
    """A node that counts its own laps, for ever."""

    async def lap(state: Trail) -> dict[str, Any]:
        return {"n": state.n + 1, "log": [f"lap {state.n}"]}

    return flow("START -> lap -> lap", lap=lap).compile()


async def test_e77_frames_of_children_are_listed_apart(store: Any, engine: Any, lineage: str) -> None:
    """A lineage has a frame for the root and one for each child run; bounds of a listing combine."""
    child = flow("START -> c1 -> c2 -> END").compile()
    graph = flow("START -> a", "b -> END").add_subgraph_node("sub", child).add_edge("a", "sub").add_edge("sub", "b")
    executor = Executor(graph.compile(), store, engine)
    assert (await executor.run(lineage=lineage)).unwrap().log == ["a", "c1", "c2", "b"]
    root, inner = await store.namespaces(lineage)
    assert (root, inner.startswith("sub@")) == ("", True)
    assert [h.nodes for h in await executor.history(lineage, namespace=inner)] == [(), ("c2",), ("c1",), ()]
    assert [h.nodes for h in await executor.history(lineage)] == [(), ("b",), ("sub",), ("a",), ()]
    assert [h.seq for h in await store.history(lineage, inner, before=3, limit=2)] == [2, 1]
    assert [h.seq for h in await store.history(lineage, "", before=1, limit=5)] == [0]
    assert lineage in await store.lineages(prefix=lineage)


async def test_e78_checkpoint_events_only_where_wanted(store: Any, engine: Any, lineage: str) -> None:
    """Writes are told of in modes `checkpoints` and `debug` only, in order and with the id of each row."""
    executor = Executor(flow("START -> a -> b -> END").compile(), store, engine)
    rows = ["input", "step", "step", "end"]
    table: list[tuple[tuple[str, ...], list[str]]] = [
        (("updates",), []),
        (("tasks", "messages", "custom"), []),
        ((), []),
        (("checkpoints",), rows),
        (("debug",), rows),
    ]
    for modes, expected in table:
        own = f"{lineage}-{'-'.join(modes)}"
        async with executor.stream(lineage=own, modes=modes) as events:
            seen = [event async for event in events if event.mode == "checkpoints"]
        assert [event.kind for event in seen] == expected
        assert [event.data["id"] for event in seen] == [f"{own}:{seq}" for seq in range(len(expected))]


async def test_e78_an_interrupt_row_is_told_of_with_its_questions(store: Any, engine: Any, lineage: str) -> None:
    """The event of an interrupt row lists the ids of what is pending."""

    async def ask(state: Trail, ctx: Any) -> dict[str, Any]:
        return {"log": [await ctx.interrupt("ok?")]}

    executor = Executor(flow("START -> ask -> END", ask=ask).compile(), store, engine)
    async with executor.stream(lineage=lineage, modes=["checkpoints"]) as events:
        kinds = {event.kind: event.data["interrupts"] async for event in events}
    assert events.result is not None
    assert kinds == {"input": [], "interrupt": [events.result.interrupts[0].id]}
