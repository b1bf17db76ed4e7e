"""Interrupts: edge cases 52 to 58 of the graph specification."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.graphs import Trail, flow

from graphagent import END, Executor
from graphagent.errors import AnswerError, CheckpointNotFound, InterruptedRunError, RunInterrupted

pytestmark = pytest.mark.anyio


def asks(*keys: str, calls: list[str] | None = None, **options: Any) -> Any:
    """A node that asks under each key in turn and writes the answers; it notes in `calls` when it begins."""

    async def node(state: Trail, ctx: Any) -> dict[str, Any]:
        if calls is not None:
            calls.append("/".join(keys))
        return {"log": [f"{key}={await ctx.interrupt(key, f'{key}, please', **options)}" for key in keys]}

    return node


async def test_e52_a_resumed_node_runs_again_from_its_first_line(store: Any, engine: Any, lineage: str) -> None:
    """The node that asked is run again with the answer, those before it are not, and what follows runs once."""
    calls: list[str] = []
    graph = flow("START -> a -> ask -> b -> END", ask=asks("ok?", calls=calls)).compile()
    stopped = await Executor(graph, store, engine).run(lineage=lineage)
    assert (stopped.status, stopped.state.log, calls) == ("interrupted", ["a"], ["ok?"])
    (question,) = stopped.interrupts
    assert (question.key, question.node, question.prompt, question.kind) == ("ok?", "ask", "ok?, please", "ask")
    with pytest.raises(RunInterrupted, match=r"ok\?"):
        stopped.unwrap()
    result = await Executor(graph, store, engine).resume(lineage, {"ok?": "yes"})
    assert (result.unwrap().log, calls) == (["a", "ok?=yes", "b"], ["ok?", "ok?"])
    assert result.steps == 2


@pytest.mark.parametrize("answer", [False, 0, "", [], {}, None])
async def test_e52_a_falsy_answer_is_an_answer(store: Any, lineage: str, answer: Any) -> None:
    """False, zero, an empty text, list or map and None answer a question like anything else."""
    graph = flow("START -> ask -> END", ask=asks("x")).compile()
    executor = Executor(graph, store)
    await executor.run(lineage=lineage)
    assert (await executor.resume(lineage, answer=answer)).unwrap().log == [f"x={answer}"]


async def test_e52_a_resume_without_answer_asks_again(store: Any, engine: Any, lineage: str) -> None:
    """Resuming with nothing to say leaves the question pending under its id and runs nothing."""
    calls: list[str] = []
    executor = Executor(flow("START -> ask -> END", ask=asks("x", calls=calls)).compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    again = await executor.resume(lineage)
    assert (again.status, again.interrupts, calls) == ("interrupted", stopped.interrupts, ["x"])
    assert list(stopped.interrupts) == await executor.interrupts(lineage)
    assert (await executor.resume(lineage, answer=1)).unwrap().log == ["x=1"]


async def test_e53_two_questions_of_a_node_are_asked_one_after_the_other(store: Any, engine: Any, lineage: str) -> None:
    """The second resume only wants the second answer; the first is remembered, over a restart too."""
    calls: list[str] = []
    graph = flow("START -> ask -> END", ask=asks("first", "second", calls=calls)).compile()
    stopped = await Executor(graph, store, engine).run(lineage=lineage)
    assert [q.key for q in stopped.interrupts] == ["first"]
    stopped = await Executor(graph, store, engine).resume(lineage, answer=1)
    assert [q.key for q in stopped.interrupts] == ["second"]
    result = await Executor(graph, store, engine).resume(lineage, answer=2)
    assert (result.unwrap().log, len(calls)) == (["first=1", "second=2"], 3)


async def test_e54_an_answer_to_what_was_not_asked_yet_is_refused(store: Any, engine: Any, lineage: str) -> None:
    """A map with the answer to a question the node has not reached is refused as a whole, naming what is pending."""
    calls: list[str] = []
    executor = Executor(flow("START -> ask -> END", ask=asks("first", "second", calls=calls)).compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    with pytest.raises(AnswerError, match=r"no interrupt 'second' is pending.*'first'") as caught:
        await executor.resume(lineage, {"first": 1, "second": 2})
    assert [q.key for q in caught.value.pending] == ["first"]
    assert (await executor.interrupts(lineage), calls) == (list(stopped.interrupts), ["first/second"])


async def test_e54_questions_asked_side_by_side_are_answered_in_one_resume(
    store: Any, engine: Any, lineage: str
) -> None:
    """A node that asks two questions in a task group has both pending at once; one map answers both."""

    async def both(state: Trail, ctx: Any) -> dict[str, Any]:
        answers: dict[str, Any] = {}

        async def ask(key: str) -> None:
            answers[key] = await ctx.interrupt(key)

        async with anyio.create_task_group() as group:
            group.start_soon(ask, "first")
            group.start_soon(ask, "second")
        return {"log": [f"{key}={answers[key]}" for key in sorted(answers)]}

    executor = Executor(flow("START -> both -> END", both=both).compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    assert stopped.status == "interrupted", stopped
    assert [q.key for q in stopped.interrupts] == ["first", "second"]
    result = await executor.resume(lineage, {"first": 1, "second": 2})
    assert result.unwrap().log == ["first=1", "second=2"]
    assert await executor.interrupts(lineage) == []


async def test_e55_a_bare_answer_is_for_the_only_question(store: Any, engine: Any, lineage: str) -> None:
    """A bare answer goes to the one pending question; the next one asks again instead of taking the same value."""
    graph = flow("START -> one -> two -> END", one=asks("one"), two=asks("two")).compile()
    executor = Executor(graph, store, engine)
    await executor.run(lineage=lineage)
    stopped = await executor.resume(lineage, answer="mine")
    assert (stopped.state.log, [q.key for q in stopped.interrupts]) == (["one=mine"], ["two"])
    assert (await executor.resume(lineage, answer="yours")).unwrap().log == ["one=mine", "two=yours"]


async def test_e55_a_bare_answer_to_several_or_none_is_refused(store: Any, engine: Any, lineage: str) -> None:
    """With two questions pending a bare answer is ambiguous, after the end it is pointless: both are errors."""
    executor = Executor(flow("START -> one, two -> END", one=asks("one"), two=asks("two")).compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    with pytest.raises(AnswerError, match="exactly one pending") as caught:
        await executor.resume(lineage, answer="x")
    assert {q.id for q in caught.value.pending} == {q.id for q in stopped.interrupts}
    assert await executor.interrupts(lineage) == list(stopped.interrupts)
    assert (await executor.resume(lineage, {"one": 1, "two": 2})).ok
    with pytest.raises(AnswerError, match="has ended"):
        await executor.resume(lineage, answer="x")


async def test_e56_all_questions_of_a_step_are_pending(store: Any, engine: Any, lineage: str) -> None:
    """Three branches that ask in one step are all pending; they can be answered one by one, in any order."""
    calls: list[str] = []
    nodes = {name: asks(name, calls=calls) for name in ("x", "y", "z")}
    graph = flow("START -> x, y, z, w", "d -> END", **nodes).add_join_edge(["x", "y", "z", "w"], "d").compile()
    stopped = await Executor(graph, store, engine).run(lineage=lineage)
    assert [q.key for q in stopped.interrupts] == ["x", "y", "z"]
    for key, left in (("y", ["x", "z"]), ("z", ["x"])):
        stopped = await Executor(graph, store, engine).resume(lineage, {key: key.upper()})
        assert (stopped.status, [q.key for q in stopped.interrupts]) == ("interrupted", left)
    result = await Executor(graph, store, engine).resume(lineage, {"x": "X"})
    assert sorted(result.unwrap().log) == ["d", "w", "x=X", "y=Y", "z=Z"]
    assert result.unwrap().log[-1] == "d"
    assert sorted(calls) == ["x", "x", "y", "y", "z", "z"]


async def test_e56_what_had_finished_beside_a_question_is_not_run_again(store: Any, engine: Any, lineage: str) -> None:
    """Siblings of the node that asks run once, before and after the answer."""
    calls: list[str] = []

    async def sibling(state: Trail) -> dict[str, Any]:
        calls.append("sibling")
        return {"log": ["sibling"]}

    graph = flow("START -> ask, sibling", "d -> END", ask=asks("x"), sibling=sibling)
    executor = Executor(graph.add_join_edge(["ask", "sibling"], "d").compile(), store, engine)
    await executor.run(lineage=lineage)
    result = await executor.resume(lineage, answer=1)
    assert (sorted(result.unwrap().log), calls) == (["d", "sibling", "x=1"], ["sibling"])


async def test_e56_new_questions_join_those_that_wait(store: Any, engine: Any, lineage: str) -> None:
    """A node whose question is answered runs at once; what it asks next is pending beside the older questions."""
    graph = flow("START -> p, q -> END", p=asks("p1", "p2"), q=asks("q1")).compile()
    executor = Executor(graph, store, engine)
    await executor.run(lineage=lineage)
    stopped = await executor.resume(lineage, {"p1": 1})
    assert sorted(q.key for q in stopped.interrupts) == ["p2", "q1"]
    assert (await executor.resume(lineage, {"p2": 2, "q1": 3})).unwrap().log == ["p1=1", "p2=2", "q1=3"]


async def test_e56_equal_keys_are_told_apart_by_id(store: Any, engine: Any, lineage: str) -> None:
    """Two branches may use one key: answering by key is then ambiguous, by id it works."""
    executor = Executor(flow("START -> one, two -> END", one=asks("ok?"), two=asks("ok?")).compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    ids = {q.node: q.id for q in stopped.interrupts}
    assert len(set(ids.values())) == 2
    with pytest.raises(AnswerError, match="answer by id"):
        await executor.resume(lineage, {"ok?": 1})
    result = await executor.resume(lineage, {ids["one"]: 1, ids["two"]: 2})
    assert result.unwrap().log == ["ok?=1", "ok?=2"]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"nope": 1}, "no interrupt 'nope' is pending"),
        ({"n": "many"}, "integer"),
        ({"n": 1, "nope": 1}, "no interrupt 'nope'"),
    ],
)
async def test_e56_answers_are_checked_as_a_whole(
    store: Any, lineage: str, answers: dict[str, Any], message: str
) -> None:
    """An unknown key or a value of the wrong type is refused before anything is stored or run."""
    calls: list[str] = []
    executor = Executor(flow("START -> ask -> END", ask=asks("n", calls=calls, answer_type=int)).compile(), store)
    await executor.run(lineage=lineage)
    before = await executor.history(lineage)
    with pytest.raises(AnswerError, match=message):
        await executor.resume(lineage, answers)
    assert (await executor.history(lineage), calls) == (before, ["n"])
    assert (await executor.resume(lineage, {"n": 7})).unwrap().log == ["n=7"]


async def test_e57_every_lap_asks_again(store: Any, engine: Any, lineage: str) -> None:
    """A node in a loop asks under the same key at every visit, and each answer is used once."""
    graph = flow("START -> ask", ask=asks("more?"))
    graph.add_conditional_edges("ask", lambda state: "ask" if state.log[-1] == "more?=yes" else END, ["ask"])
    executor = Executor(graph.compile(), store, engine)
    stopped = await executor.run(lineage=lineage)
    ids = []
    for answer in ("yes", "yes", "no"):
        assert stopped.status == "interrupted"
        ids.append(stopped.interrupts[0].id)
        stopped = await executor.resume(lineage, answer=answer)
    assert stopped.unwrap().log == ["more?=yes", "more?=yes", "more?=no"]
    assert len(set(ids)) == 3


async def test_e57_every_lap_has_its_own_effects(store: Any, engine: Any, lineage: str) -> None:
    """A node that loops carries out its recorded effect once a lap, and never again when a lap is resumed."""
    sent: list[int] = []

    async def lap(state: Trail, ctx: Any) -> dict[str, Any]:
        await ctx.step("send", sent.append, state.n)
        await ctx.interrupt("go on?")
        return {"n": state.n + 1}

    graph = flow("START -> lap", lap=lap)
    graph.add_conditional_edges("lap", lambda state: "lap" if state.n < 3 else END, ["lap"])
    executor = Executor(graph.compile(), store, engine)
    await executor.run(lineage=lineage)
    for _ in range(3):
        result = await executor.resume(lineage, answer="yes")
    assert (result.unwrap().n, sent) == (3, [0, 1, 2])


async def test_e57_a_new_turn_asks_again(store: Any, engine: Any, lineage: str) -> None:
    """The next turn of a finished lineage asks anew, under another id."""
    executor = Executor(flow("START -> ask -> END", ask=asks("x")).compile(), store, engine)
    first = await executor.run(lineage=lineage)
    await executor.resume(lineage, answer=1)
    second = await executor.run(lineage=lineage)
    assert second.interrupts[0].id != first.interrupts[0].id
    assert (await executor.resume(lineage, answer=2)).unwrap().log == ["x=1", "x=2"]


async def test_e58_without_a_store_a_run_can_be_resumed_where_it_was_made(engine: Any, lineage: str) -> None:
    """An executor without a store stops at a question, has no checkpoint to name, and resumes it itself only."""
    graph = flow("START -> a -> ask -> b -> END", ask=asks("ok?")).compile()
    executor = Executor(graph, engine=engine)
    for given in (lineage, None):
        stopped = await executor.run(lineage=given)
        assert (stopped.status, stopped.checkpoint, stopped.state.log) == ("interrupted", None, ["a"])
        with pytest.raises(CheckpointNotFound, match="has no store"):
            await Executor(graph, engine=engine).resume(stopped.lineage, answer="yes")
        result = await executor.resume(stopped.lineage, answer="yes")
        assert (result.unwrap().log, result.checkpoint) == (["a", "ok?=yes", "b"], None)
        with pytest.raises(CheckpointNotFound):
            await executor.resume(stopped.lineage)


async def test_e58_new_input_for_a_waiting_run_is_refused(store: Any, engine: Any, lineage: str) -> None:
    """`run` on a lineage that waits names the question; with `abandon` it starts a new turn from the state."""
    executor = Executor(flow("START -> a -> ask -> END", ask=asks("ok?")).compile(), store, engine)
    await executor.run(lineage=lineage)
    with pytest.raises(InterruptedRunError, match="'ok\\?'"):
        await executor.run({"item": "new"}, lineage=lineage)
    stopped = await executor.run({"item": "new"}, lineage=lineage, abandon=True)
    assert (stopped.status, stopped.state.log, stopped.state.item) == ("interrupted", ["a", "a"], "new")
    assert (await executor.resume(lineage, answer="yes")).unwrap().log == ["a", "a", "ok?=yes"]
