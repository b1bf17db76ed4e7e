"""Public fault reports about pauses (kind `pause`): answers that come one by one, loops that ask, odd resumes.

Every resume happens in a store that was opened anew, by an executor of its own.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.graphs import says
from support.pausing import keys

from graphagent import END, NodeContext, StateGraph, append
from graphagent.errors import AnswerError, CheckpointNotFound, InterruptedRunError, UsageError

pytestmark = pytest.mark.anyio


class Log(BaseModel):
    log: Annotated[list[str], append] = []
    text: str = ""
    reply: Any = None


def two_and_one() -> StateGraph:
    """Two parallel nodes: n2 asks twice, n3 once."""

    async def n2(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
        return {"log": [f"n2 {await ctx.interrupt('a')} {await ctx.interrupt('b')}"]}

    async def n3(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
        return {"log": [f"n3 {await ctx.interrupt('c')}"]}

    graph = StateGraph(Log).add_node("n2", n2).add_node("n3", n3)
    return graph.set_entry_point("n2", "n3").set_finish_point("n2", "n3")


@pytest.mark.parametrize("order", ["abc", "acb", "cab"])
async def test_c043_an_answered_pause_never_comes_back(lives: Any, order: str) -> None:
    """Answered one at a time in any order, three pauses take three answers, and none is pending again."""
    one = lives(two_and_one)
    result = await one.run()
    pending = {"a", "c"}
    for key in order:
        assert set(keys(result)) == pending
        result = await one.resume({key: key.upper()})
        pending = (pending - {key}) | ({"b"} if key == "a" else set())
    assert sorted(result.unwrap().log) == ["n2 A B", "n3 C"]


async def test_c043_a_resume_without_answers_changes_nothing(lives: Any) -> None:
    """Resuming without an answer raises no pause again and answers none: the same ids stay pending."""
    one = lives(two_and_one)
    first = await one.run()
    await one.resume({"a": 1})
    for _ in range(2):
        again = await one.resume()
        assert (again.status, keys(again)) == ("interrupted", ["b", "c"])
    assert {item.id for item in again.interrupts} & {item.id for item in first.interrupts} == {
        item.id for item in first.interrupts if item.key == "c"
    }
    assert (await one.resume({"b": 2, "c": 3})).status == "completed"


def asks_for_an_age(external: list[str], kind: str) -> StateGraph:
    """A reminder and a question, until the answer is a positive integer: a loop in a node, or of the graph."""

    def valid(answer: Any) -> bool:
        return isinstance(answer, int) and answer > 0

    async def loop(_: Any, ctx: NodeContext) -> dict[str, Any]:
        while True:
            await ctx.step("remind", external.append, "line")
            answer = await ctx.interrupt("age", "your age?")
            if valid(answer):
                return {"reply": answer}

    def threaded(_: Any, ctx: Any) -> dict[str, Any]:
        while True:
            ctx.step("remind", external.append, "line")
            answer = ctx.interrupt("age", "your age?")
            if valid(answer):
                return {"reply": answer}

    async def remind(_: Any) -> None:
        external.append("line")

    graph = StateGraph(Log)
    if kind != "graph":
        graph.add_node("ask", loop if kind == "async" else threaded)
        return graph.set_entry_point("ask").set_finish_point("ask")
    graph.add_node("remind", remind).add_interrupt_node("ask", prompt="your age?", key="age", writes="reply")
    graph.add_edge("remind", "ask").set_entry_point("remind")
    return graph.add_conditional_edges("ask", lambda s: END if valid(s.reply) else "remind", ["remind"])


@pytest.mark.parametrize("kind", ["async", "sync", "graph"])
async def test_c044_a_validation_loop_repeats_no_side_effect(lives: Any, kind: str) -> None:
    """Answers 'x', -1, 30: three questions and three reminders in all, whether the loop is in the node or in the graph
    (an effect inside a node that asks goes through the ledger)."""
    one = lives(lambda: asks_for_an_age(one.external, kind))
    result = await one.run()
    ids = []
    for answer in ("x", -1, 30):
        assert keys(result) == ["age"]
        ids += [item.id for item in result.interrupts]
        result = await one.resume(answer=answer)
    assert result.unwrap().reply == 30
    assert len(set(ids)) == 3
    assert one.external == ["line"] * 3


async def test_c044_replayed_code_that_asks_otherwise_is_told_so(lives: Any) -> None:
    """A node that asks in another order when it is replayed fails with both keys instead of taking a wrong answer."""
    order = ["first", "second"]

    async def asks(_: Any, ctx: NodeContext) -> dict[str, Any]:
        return {"reply": [await ctx.interrupt(key) for key in order]}

    one = lives(lambda: StateGraph(Log).add_node("a", asks).set_entry_point("a").set_finish_point("a"))
    await one.run()
    order.reverse()
    result = await one.resume({"first": 1})
    assert isinstance(result.error, UsageError)
    assert "'first'" in str(result.error)
    assert "'second'" in str(result.error)
    order.reverse()
    result = await one.resume()
    assert keys(result) == ["second"]
    assert (await one.resume({"second": 2})).unwrap().reply == [1, 2]


async def test_c046_an_answer_to_nothing_is_refused_whole(lives: Any) -> None:
    """An unknown id is an error that lists the pending ones; valid answers beside it are not taken, nothing runs."""
    one = lives(two_and_one)
    first = await one.run()
    before = await one.sources()
    for answers in ({"nope": 1}, {"a": 1, "nope": 2}, {first.interrupts[0].id + "x": 1}, {"b": 1}):
        with pytest.raises(AnswerError) as caught:
            await one.resume(answers)
        assert {item.key for item in caught.value.pending} == {"a", "c"}
        for item in first.interrupts:
            assert item.id in str(caught.value)
    assert await one.sources() == before
    assert keys(await one.resume()) == ["a", "c"]


async def test_c046_an_answer_that_was_given_already_is_refused(lives: Any) -> None:
    """Answering a pause a second time is an error, not a second run of what follows; so is an answer twice in one."""
    one = lives(two_and_one)
    first = await one.run()
    with pytest.raises(AnswerError, match="twice"):
        await one.resume({"a": 1, next(item.id for item in first.interrupts if item.key == "a"): 1})
    await one.resume({"a": 1})
    with pytest.raises(AnswerError, match="'a'"):
        await one.resume({"a": 2})
    await one.resume({"b": 1, "c": 1})
    with pytest.raises(AnswerError, match="ended"):
        await one.resume({"c": 1})


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_c050_a_node_with_two_pauses_does_its_effect_once(lives: Any, kind: str) -> None:
    """A node with two pauses runs three times from its first line, as documented; its recorded effect happens once."""
    runs: list[str] = []

    def graph() -> StateGraph:
        async def node(_: Any, ctx: NodeContext) -> dict[str, Any]:
            runs.append("run")
            await ctx.step("line", one.external.append, "line")
            return {"reply": [await ctx.interrupt("p1"), await ctx.interrupt("p2")]}

        def threaded(_: Any, ctx: Any) -> dict[str, Any]:
            runs.append("run")
            ctx.step("line", one.external.append, "line")
            return {"reply": [ctx.interrupt("p1"), ctx.interrupt("p2")]}

        built = StateGraph(Log).add_node("n", node if kind == "async" else threaded)
        return built.set_entry_point("n").set_finish_point("n")

    one = lives(graph)
    assert keys(await one.run()) == ["p1"]
    assert keys(await one.resume({"p1": 1})) == ["p2"]
    assert (await one.resume({"p2": 2})).unwrap().reply == [1, 2]
    assert (runs, one.external) == (["run"] * 3, ["line"])


def review(external: list[str], kind: str) -> StateGraph:
    """Draft, review by a person, and back to the draft on 'revise'."""

    async def draft(state: Log) -> dict[str, Any]:
        external.append(f"draft after {state.reply}")
        return {"text": f"draft {len(external)}", "log": ["draft"]}

    async def ask(state: Log, ctx: NodeContext) -> dict[str, Any]:
        return {"reply": await ctx.interrupt("verdict", state.text)}

    graph = StateGraph(Log).add_node("draft", draft).add_edge("draft", "review").set_entry_point("draft")
    if kind == "node":
        graph.add_interrupt_node("review", prompt=lambda state: state.text, key="verdict", writes="reply")
    else:
        graph.add_node("review", ask)
    return graph.add_conditional_edges("review", lambda s: "draft" if s.reply == "revise" else END, ["draft"])


@pytest.mark.parametrize("kind", ["node", "body"])
async def test_c063_a_loop_back_through_a_pause_asks_again(lives: Any, kind: str) -> None:
    """'revise' twice and then 'ok': the draft runs three times with fresh input, and every lap asks anew."""
    one = lives(lambda: review(one.external, kind))
    result = await one.run()
    prompts = []
    for answer in ("revise", "revise", "ok"):
        assert result.status == "interrupted"
        prompts.append(result.interrupts[0].prompt)
        result = await one.resume({"verdict": answer})
    assert result.unwrap().log == ["draft"] * 3
    assert prompts == ["draft 1", "draft 2", "draft 3"]
    assert one.external == ["draft after None", "draft after revise", "draft after revise"]


async def test_c065_a_resume_of_what_is_gone_is_an_error_and_no_restart(lives: Any) -> None:
    """After a clean-up the answer has nothing to go to: the resume says so and runs nothing, whatever it carries."""
    one = lives(lambda: review(one.external, "node"))
    await one.run()
    async with one.open_store() as store:
        await store.delete(one.lineage)
    with pytest.raises(CheckpointNotFound, match=one.lineage):
        await one.resume({"verdict": "ok"})
    with pytest.raises(CheckpointNotFound, match="nothing was run"):
        await one.resume()
    assert one.external == ["draft after None"]
    assert await one.sources() == []


async def test_c065_new_input_never_overwrites_a_pause(lives: Any) -> None:
    """A request with new state on a paused lineage is refused with the pending key; the checkpoint stays as it was."""
    one = lives(lambda: review(one.external, "node"))
    first = await one.run()
    before = await one.sources()
    with pytest.raises(InterruptedRunError, match="'verdict'"):
        await one.run({"text": "from the client"})
    assert await one.sources() == before
    result = await one.resume({first.interrupts[0].id: "ok"})
    assert (result.unwrap().text, result.unwrap().log) == ("draft 1", ["draft"])


async def test_c065_abandon_gives_a_pause_up_and_its_answer_finds_nothing(lives: Any) -> None:
    """With abandon=True a new turn starts from the kept state, and the old id is no longer pending."""
    one = lives(lambda: review(one.external, "node"))
    first = await one.run()
    second = await one.run({"log": ["new"]}, abandon=True)
    assert second.state.log == ["draft", "new", "draft"]
    assert second.interrupts[0].id != first.interrupts[0].id
    with pytest.raises(AnswerError, match="verdict"):
        await one.resume({first.interrupts[0].id: "ok"})
    assert (await one.resume({second.interrupts[0].id: "ok"})).status == "completed"


@pytest.mark.parametrize("answer", ["", "seven", None, {"call": "c1", "text": ""}])
async def test_c066_a_resume_goes_on_behind_the_pause(lives: Any, answer: Any) -> None:
    """An answer, an empty text too, continues behind the picker; the start node has run once (a UI bridge is a caller
    that resumes by id)."""

    def graph() -> StateGraph:
        built = StateGraph(Log).add_node("start", says("start")).add_node("after", says("after"))
        built.add_interrupt_node("pick", prompt={"choose": [1, 2]}, writes="reply")
        for here, following in itertools.pairwise(["start", "pick", "after"]):
            built.add_edge(here, following)
        return built.set_entry_point("start").set_finish_point("after")

    one = lives(graph)
    first = await one.run()
    assert first.interrupts[0].prompt == {"choose": [1, 2]}
    result = await one.resume({first.interrupts[0].id: answer})
    assert (result.unwrap().reply, result.unwrap().log) == (answer, ["start", "after"])
    assert result.steps == 2
