"""Public fault reports about going back in time (kind `fork`): resumes from older checkpoints, forks, edits.

A nested chat agent is a child graph with a message history.
"""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.graphs import Trail, flow, says

from graphagent import Command, Executor, Message, MessagesState, NodeContext, StateGraph, add, append
from graphagent.errors import AnswerError, CheckpointNotFound

pytestmark = pytest.mark.anyio


# -- C099 --------------------------------------------------------------------------------------------


async def test_c099_the_newest_checkpoint_is_that_of_the_new_branch(store: Any, engine: Any, lineage: str) -> None:
    """After a run from the middle, the lineage stands at the new branch's end; the old branch stays listed."""

    async def second(state: Trail) -> dict[str, Any]:
        return {"log": ["second"], "n": state.n + 1}

    executor = Executor(flow("START -> first -> second -> END", second=second).compile(), store, engine)
    await executor.run({}, lineage=lineage)
    old = await executor.history(lineage)
    middle = next(header for header in old if header.nodes == ("first",))
    again = await executor.resume(lineage, checkpoint=middle.id)
    assert again.unwrap().log == ["first", "second"]
    now = await executor.history(lineage)
    assert [h.id for h in now[-len(old) :]] == [h.id for h in old]
    assert again.checkpoint == now[0].id
    assert [h.source for h in now[: -len(old)]] == ["end", "step", "fork"]
    assert now[2].parent_id == middle.id
    assert (await executor.run({"log": ["new turn"]}, lineage=lineage)).unwrap().log == [
        "first", "second", "new turn", "first", "second"
    ]  # fmt: skip
    assert (await executor.state(lineage, old[0].id)).log == ["first", "second"]


async def test_c099_every_checkpoint_can_be_gone_on_from(store: Any, engine: Any, lineage: str) -> None:
    """Going on from each checkpoint in turn gives the same state, whatever branches were written meanwhile."""
    executor = Executor(flow("START -> a -> b -> c -> END").compile(), store, engine)
    await executor.run({"log": ["in"]}, lineage=lineage)
    for header in await executor.history(lineage):
        result = await executor.resume(lineage, checkpoint=header.id)
        assert result.unwrap().log == ["in", "a", "b", "c"], header.id


async def test_c099_an_unknown_checkpoint_changes_nothing(store: Any, engine: Any, lineage: str) -> None:
    """A checkpoint that isn't there is a typed error that lists known ones, and nothing is written."""
    executor = Executor(flow("START -> a -> END").compile(), store, engine)
    await executor.run({}, lineage=lineage)
    before = await executor.history(lineage)
    with pytest.raises(CheckpointNotFound, match=lineage):
        await executor.resume(lineage, checkpoint=f"{lineage}:99")
    with pytest.raises(CheckpointNotFound, match="not a checkpoint of lineage"):
        await executor.resume(lineage, checkpoint="another:1")
    assert await executor.history(lineage) == before


# -- C100 --------------------------------------------------------------------------------------------


def asking() -> StateGraph:
    """Two steps, a question, a last step."""

    async def ask(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        return {"log": [f"ask {await ctx.interrupt('q', 'which?', str)}"]}

    return flow("START -> a -> b -> ask -> last -> END", ask=ask)


async def test_c100_an_answer_that_names_its_checkpoint(store: Any, engine: Any, lineage: str) -> None:
    """An answer together with the id of the interrupt's checkpoint goes on at the question, not at the start."""
    executor = Executor(asking().compile(), store, engine)
    asked = await executor.run({}, lineage=lineage)
    assert asked.status == "interrupted"
    result = await executor.resume(lineage, {"q": "x"}, checkpoint=asked.checkpoint)
    assert result.unwrap().log == ["a", "b", "ask x", "last"]


async def test_c100_an_old_question_answered_otherwise(store: Any, engine: Any, lineage: str) -> None:
    """After the run has ended, the old question's checkpoint takes another answer; the first branch stays as it was."""
    executor = Executor(asking().compile(), store, engine)
    asked = await executor.run({}, lineage=lineage)
    done = await executor.resume(lineage, {"q": "x"})
    with pytest.raises(AnswerError, match="nothing is pending"):
        await executor.resume(lineage, {"q": "y"})
    other = await executor.resume(lineage, {"q": "y"}, checkpoint=asked.checkpoint)
    assert other.unwrap().log == ["a", "b", "ask y", "last"]
    assert (await executor.state(lineage, done.checkpoint)).log == ["a", "b", "ask x", "last"]


# -- C102 --------------------------------------------------------------------------------------------


class Count(BaseModel):
    count: Annotated[int, add] = 0
    answers: Annotated[list[str], append] = []


async def test_c102_a_child_starts_with_the_state_of_that_moment(store: Any, engine: Any, lineage: str) -> None:
    """Going back to before a child that counts and asks: it sees the count of then, and asks again."""
    seen = []

    async def child_node(state: Count, ctx: NodeContext) -> dict[str, Any]:
        seen.append(state.count)
        return {"count": 1, "answers": [await ctx.interrupt("go", answer_type=str)]}

    async def before(state: Count) -> None:
        pass

    child = StateGraph(Count).add_node("ask", child_node).set_entry_point("ask").set_finish_point("ask").compile()
    graph = StateGraph(Count).add_node("before", before).add_subgraph_node("child", child)
    graph.set_entry_point("before").add_edge("before", "child").set_finish_point("child")
    executor = Executor(graph.compile(), store, engine)
    for turn in ("1", "2"):
        assert (await executor.run({}, lineage=lineage)).status == "interrupted"
        assert (await executor.resume(lineage, {"go": turn})).unwrap().answers == ["1", "2"][: int(turn)]
    first = [h for h in await executor.history(lineage) if h.nodes == ("before",)][-1]
    back = await executor.resume(lineage, checkpoint=first.id)
    assert [i.key for i in back.interrupts] == ["go"]
    assert seen[-1] == 0
    result = await executor.resume(lineage, answer="z")
    assert (result.unwrap().count, result.state.answers) == (1, ["z"])


# -- C103 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_c103_a_fork_with_other_input_has_no_message_twice(
    store: Any, engine: Any, lineage: str, elsewhere: bool
) -> None:
    """A fork after turn 1 with another message has turn 1 once and the new message once, nested agent included."""

    async def reply(state: MessagesState) -> dict[str, Any]:
        return {"messages": [Message.assistant(f"re: {state.messages[-1].text}")]}

    chat = StateGraph(MessagesState, name="chat").add_node("reply", reply)
    chat = chat.set_entry_point("reply").set_finish_point("reply").compile()
    graph = StateGraph(MessagesState).add_subgraph_node("agent", chat)
    executor = Executor(graph.set_entry_point("agent").set_finish_point("agent").compile(), store, engine)
    for text in ("one", "two"):
        await executor.run({"messages": [Message.user(text)]}, lineage=lineage)
    after_one = [h for h in await executor.history(lineage) if h.source == "end"][-1]
    new = f"{lineage}-fork" if elsewhere else None
    forked = await executor.fork(lineage, after_one.id, new_lineage=new)
    assert forked.source == "fork"
    result = await executor.run({"messages": [Message.user("other")]}, lineage=new or lineage)
    assert [m.text for m in result.unwrap().messages] == ["one", "re: one", "other", "re: other"]
    if new:
        assert [m.text for m in (await executor.state(lineage)).messages] == ["one", "re: one", "two", "re: two"]


async def test_c103_a_fork_outlives_its_source(store: Any, engine: Any, lineage: str) -> None:
    """A fork in a lineage of its own holds everything: it loads and goes on after its source was deleted."""
    executor = Executor(asking().compile(), store, engine)
    asked = await executor.run({"log": ["in"]}, lineage=lineage)
    new = f"{lineage}-fork"
    await executor.fork(lineage, asked.checkpoint, new_lineage=new)
    await executor.delete(lineage)
    assert [i.key for i in await executor.interrupts(new)] == ["q"]
    assert (await executor.resume(new, {"q": "x"})).unwrap().log == ["in", "a", "b", "ask x", "last"]


@pytest.mark.parametrize("keep", [False, True])
async def test_c103_a_fork_repeats_effects_or_keeps_them(store: Any, engine: Any, lineage: str, keep: bool) -> None:
    """An effect of the open step is done again in a fork, unless `keep_effects` says that it counts there too."""
    done = []

    async def act(state: Trail, ctx: NodeContext) -> dict[str, Any]:
        await ctx.step("pay", lambda: done.append("paid"))
        return {"log": [await ctx.interrupt("ok", answer_type=str)]}

    executor = Executor(flow("START -> act -> END", act=act).compile(), store, engine)
    asked = await executor.run({}, lineage=lineage)
    await executor.fork(lineage, asked.checkpoint, new_lineage=f"{lineage}-f", keep_effects=keep)
    assert (await executor.resume(f"{lineage}-f", {"ok": "yes"})).unwrap().log == ["yes"]
    assert len(done) == (1 if keep else 2)


# -- C105 --------------------------------------------------------------------------------------------


def ways(kind: str) -> StateGraph:
    """`choose` goes to `low` or `high` by the value of `n`, by a jump or by a route; a fixed edge leads on."""

    async def jump(state: Trail) -> Command:
        return Command(goto="high" if state.n > 5 else "low")

    graph = StateGraph(Trail).add_node("first", says("first")).set_entry_point("first").add_edge("first", "choose")
    if kind == "jump":
        graph.add_node("choose", jump, destinations=["low", "high"])
    else:
        graph.add_node("choose", says("choose"))
        graph.add_conditional_edges("choose", lambda s: "high" if s.n > 5 else "low", ["low", "high"])
    graph.add_node("low", says("low")).add_node("high", says("high"))
    return graph.set_finish_point("low").set_finish_point("high")


@pytest.mark.parametrize("kind", ["jump", "route"])
async def test_c105_an_edit_before_the_decision_counts(store: Any, engine: Any, lineage: str, kind: str) -> None:
    """A value edited while the run stands before the node that decides by it leads the other way, for both kinds."""
    executor = Executor(ways(kind).interrupt_before_nodes("choose").compile(), store, engine)
    assert (await executor.run({}, lineage=lineage)).status == "interrupted"
    await executor.edit(lineage, None, {"n": 9})
    assert (await executor.resume(lineage)).unwrap().log[-1] == "high"


@pytest.mark.parametrize("kind", ["jump", "route"])
async def test_c105_an_edit_after_the_decision_changes_no_way(store: Any, engine: Any, lineage: str, kind: str) -> None:
    """Where the decision was made already a plain edit keeps what runs next, for jumps and for routes alike."""
    executor = Executor(ways(kind).interrupt_after_nodes("choose").compile(), store, engine)
    assert (await executor.run({}, lineage=lineage)).status == "interrupted"
    await executor.edit(lineage, None, {"n": 9})
    result = await executor.resume(lineage)
    assert (result.unwrap().log[-1], result.state.n) == ("low", 9)


async def test_c105_an_edit_as_a_node_decides_anew(store: Any, engine: Any, lineage: str) -> None:
    """`as_node` stands for the node's own result: it isn't run, and its route is judged on the edited state."""
    executor = Executor(ways("route").interrupt_before_nodes("choose").compile(), store, engine)
    await executor.run({}, lineage=lineage)
    await executor.edit(lineage, None, {"n": 9, "log": ["by hand"]}, as_node="choose")
    assert (await executor.resume(lineage)).unwrap().log == ["first", "by hand", "high"]
