"""Public fault reports about pauses inside child graphs and fan-outs (kind `pause`), at any depth, several at once.

A sub-agent is a child graph, its tool a node with `ctx.step` and `ctx.interrupt`. Every resume happens in a store that
was opened anew, by an executor of its own.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.graphs import says
from support.pausing import by_key, keys

from graphagent import END, Executor, NodeContext, Send, StateGraph, append, merge
from graphagent.errors import AnswerError

pytestmark = pytest.mark.anyio


class Log(BaseModel):
    log: Annotated[list[str], append] = []
    item: str = ""
    reply: str = ""


class Notes(Log):
    notes: Annotated[dict[str, list[str]], merge] = {}


def asks(external: list[str], key: str, times: int = 1) -> Callable[..., Any]:
    """A node that records an effect under its own name, asks, and logs the answer; `times` over."""

    async def node(state: Log, ctx: NodeContext) -> dict[str, list[str]]:
        external.append(f"runs {key}{state.item}")
        answers = []
        for i in range(times):
            await ctx.step("line", external.append, f"line {key}{state.item}{i}")
            answers.append(await ctx.interrupt(key if times == 1 else f"{key}{i}", state.item))
        return {"log": [f"{key}{state.item}={','.join(answers)}"]}

    return node


def chain(graph: StateGraph, *names: str) -> StateGraph:
    """Plain edges from name to name, the first an entry and the last a finish point."""
    for here, following in itertools.pairwise(names):
        graph.add_edge(here, following)
    return graph.set_entry_point(names[0]).set_finish_point(names[-1])


def wrapped(child: StateGraph, depth: int) -> StateGraph:
    """A graph that runs `child` as its child's child's ... child, with a node before and one behind at every level."""
    for _ in range(depth):
        parent = StateGraph(Log).add_node("before", says("before")).add_subgraph_node("child", child.compile())
        child = chain(parent.add_node("behind", says("behind")), "before", "child", "behind")
    return child


def left_and_right(external: list[str]) -> StateGraph:
    """Two parallel nodes that both ask."""
    graph = StateGraph(Log).add_node("left", asks(external, "left")).add_node("right", asks(external, "right"))
    return graph.set_entry_point("left", "right").set_finish_point("left", "right")


@pytest.mark.parametrize("depth", [1, 3])
async def test_c045_a_bare_answer_to_several_questions_is_refused(lives: Any, depth: int) -> None:
    """Two nodes of a child ask; one bare value is refused with both ids and changes nothing; by id it works."""
    one = lives(lambda: wrapped(left_and_right(one.external), depth))
    first = await one.run()
    before = await one.sources()
    with pytest.raises(AnswerError) as caught:
        await one.resume(answer=1)
    for item in first.interrupts:
        assert item.id in str(caught.value)
        assert "child@" in item.path
    assert await one.sources() == before
    result = await one.resume({item.id: item.key for item in first.interrupts})
    log = result.unwrap().log
    assert sorted(log[depth : depth + 2]) == ["left=left", "right=right"]
    assert log[:depth] + log[depth + 2 :] == ["before"] * depth + ["behind"] * depth


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("order", [("left", "right"), ("right", "left")])
async def test_c045_several_questions_of_a_child_are_answered_one_by_one(lives: Any, depth: int, order: Any) -> None:
    """Partial answers in either order: the answered node of the child has ended for good, the other keeps waiting."""
    one = lives(lambda: wrapped(left_and_right(one.external), depth))
    await one.run()
    result = await one.resume({order[0]: "x"})
    assert (result.status, keys(result)) == ("interrupted", [order[1]])
    result = await one.resume(answer="y")
    assert result.status == "completed"
    assert Counter(one.external) == {"runs left": 2, "runs right": 2, "line left0": 1, "line right0": 1}


@pytest.mark.parametrize("depth", [0, 3])
@pytest.mark.parametrize("times", [1, 2])
async def test_c048_a_recorded_step_is_not_repeated_in_a_child(lives: Any, depth: int, times: int) -> None:
    """A step that was recorded before a pause happens once, standalone and as a child at any depth."""
    one = lives(lambda: wrapped(chain(StateGraph(Log).add_node("n", asks(one.external, "q", times)), "n"), depth))
    result = await one.run()
    for _ in range(times):
        assert len(result.interrupts) == 1
        result = await one.resume(answer="a")
    assert result.status == "completed"
    assert Counter(one.external) == {"runs q": times + 1, **{f"line q{i}": 1 for i in range(times)}}
    assert result.state.log.count("before") == depth


def two_children(external: list[str], depth: int) -> StateGraph:
    """Two child graphs in parallel branches that both ask, the second twice."""
    graph = StateGraph(Log).set_entry_point("one", "two").add_node("end", says("end")).set_finish_point("end")
    for name, times in (("one", 1), ("two", 2)):
        child = chain(StateGraph(Log).add_node("ask", asks(external, name, times)), "ask")
        graph.add_subgraph_node(name, wrapped(child, depth).compile())
    return graph.add_join_edge(["one", "two"], "end")


ORDERS = [["two0", "one", "two1"], ["two0", "two1", "one"], [("one", "two0"), "two1"]]


@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("order", ORDERS, ids=str)
async def test_c052_children_in_parallel_take_their_own_answers(lives: Any, depth: int, order: list[Any]) -> None:
    """Answers of parallel children, in one call or one by one in any order, reach the child that asked; none is lost
    and none is asked for again."""
    one = lives(lambda: two_children(one.external, depth))
    result = await one.run()
    for step in order:
        wanted = [step] if isinstance(step, str) else list(step)
        assert set(wanted) <= set(keys(result))
        result = await one.resume({key: f"for {key}" for key in wanted})
    log = result.unwrap().log
    assert "one=for one" in log
    assert "two=for two0,for two1" in log
    assert log[-1] == "end"
    assert Counter(one.external) == {
        "runs one": 2,
        "runs two": 3,
        "line one0": 1,
        "line two0": 1,
        "line two1": 1,
    }


def delegated(external: list[str], kind: str) -> StateGraph:
    """A root that delegates to a sub-agent with two long-running tools, one after the other."""
    agent = StateGraph(Log, name="agent").add_node("think", says("think")).add_node("answer", says("answer"))
    for name in ("tool1", "tool2"):
        if kind == "node":
            agent.add_interrupt_node(name, prompt=name, key=name, writes="reply", answer_type=str)
        else:
            agent.add_node(name, asks(external, name))
    for here, following in itertools.pairwise(["think", "tool1", "again", "tool2", "answer"]):
        agent.add_edge(here, following)
    agent.add_node("again", says("again")).set_entry_point("think").set_finish_point("answer")
    root = StateGraph(Log).add_node("root", says("root")).add_subgraph_node("agent", agent.compile())
    return chain(root.add_node("close", says("close")), "root", "agent", "close")


@pytest.mark.parametrize("kind", ["node", "body"])
async def test_c056_two_pauses_of_a_sub_agent_in_a_row_can_both_be_resumed(lives: Any, kind: str) -> None:
    """Both resumes go on inside the child graph, and one that can do nothing is an error (a long-running tool is an
    interrupt)."""
    one = lives(lambda: delegated(one.external, kind))
    assert keys(await one.run()) == ["tool1"]
    second = await one.resume({"tool1": "r1"})
    assert (second.status, keys(second)) == ("interrupted", ["tool2"])
    with pytest.raises(AnswerError, match="'tool1'"):
        await one.resume({"tool1": "r1"})
    third = await one.resume({"tool2": "r2"})
    said = [line for line in third.unwrap().log if "=" not in line]
    assert said == ["root", "think", "again", "answer", "close"]
    with pytest.raises(AnswerError, match="ended"):
        await one.resume({"tool2": "r2"})


async def test_c057_an_approved_tool_runs_in_the_agent_that_asked(lives: Any) -> None:
    """After the approval the tool of the child runs, once; the root is not asked to run it and nothing ran twice."""
    one = lives(lambda: delegated(one.external, "body"))
    first = await one.run()
    assert first.interrupts[0].node == "tool1"
    assert first.interrupts[0].path.startswith("agent@")
    await one.resume({"tool1": "yes"})
    result = await one.resume({"tool2": "yes"})
    assert result.unwrap().log == ["root", "think", "tool1=yes", "again", "tool2=yes", "answer", "close"]
    lines = [line for line in one.external if line.startswith("line")]
    assert lines == ["line tool10", "line tool20"]


def fan_out(external: list[str], kind: str) -> StateGraph:
    """Three workers that ask: nodes, or child graphs of a node before and one behind the one that asks."""

    async def send(_: Any) -> list[Send]:
        return [Send("worker", {"item": name}) for name in "abc"]

    graph = StateGraph(Log).add_node("send", send, destinations=["worker"]).add_node("end", says("end"))
    if kind == "node":
        graph.add_node("worker", asks(external, "q"))
    else:
        child = wrapped(chain(StateGraph(Log, outputs=["log"]).add_node("ask", asks(external, "q")), "ask"), 1)
        graph.add_subgraph_node("worker", child.compile())
    return graph.add_edge("worker", "end").set_entry_point("send").set_finish_point("end")


@pytest.mark.parametrize("kind", ["node", "child"])
@pytest.mark.parametrize("order", ["abc", "cab", "bca"])
async def test_c045_workers_of_a_fan_out_are_answered_in_any_order(lives: Any, kind: str, order: str) -> None:
    """Three members of one fan-out ask under one key: by key is ambiguous, by id each takes its own, and the result is
    in fan-out order with one arrival behind the group."""
    one = lives(lambda: fan_out(one.external, kind))
    if one.engine == "eager":
        pytest.skip("eager: one activation of a node is in flight, so they ask one after the other")
    result = await one.run()
    with pytest.raises(AnswerError, match="3 pending"):
        await one.resume({"q": "x"})
    assert [item.prompt for item in result.interrupts] == ["a", "b", "c"]
    ids = {item.prompt: item.id for item in result.interrupts}
    assert len(set(ids.values())) == 3
    for count, name in enumerate(order):
        result = await one.resume({ids[name]: name.upper()})
        assert len(result.interrupts) == 2 - count
    log = [line for line in result.unwrap().log if line not in ("before", "behind")]
    assert log == ["qa=A", "qb=B", "qc=C", "end"]
    assert Counter(one.external) == {f"runs q{name}": 2 for name in "abc"} | {f"line q{name}0": 1 for name in "abc"}


@pytest.mark.parametrize("kind", ["node", "child"])
async def test_c045_workers_of_a_fan_out_may_be_answered_as_they_ask(lives: Any, kind: str) -> None:
    """Members of one fan-out that are answered one by one, in the order in which they are pending, end once each."""
    one = lives(lambda: fan_out(one.external, kind))
    result = await one.run()
    for name in "abc":
        item = result.interrupts[0]
        assert item.prompt == name
        result = await one.resume({item.id: name.upper()})
    log = [line for line in result.unwrap().log if line not in ("before", "behind")]
    assert log == ["qa=A", "qb=B", "qc=C", "end"]
    assert {line: n for line, n in Counter(one.external).items() if line.startswith("line")} == {
        f"line q{name}0": 1 for name in "abc"
    }


def deep(external: list[str]) -> StateGraph:
    """Two children per level, three levels deep, each leaf a pair of nodes that ask: eight questions, some twice."""

    def level(path: str) -> StateGraph:
        graph = StateGraph(Log, name=f"g{path}")
        if len(path) == 2:
            graph.add_node("l", asks(external, f"{path}l")).add_node("r", asks(external, f"{path}r", 2))
        else:
            for side in "lr":
                graph.add_subgraph_node(side, level(path + side).compile())
        return graph.set_entry_point("l", "r").set_finish_point("l", "r")

    return level("")


@pytest.mark.parametrize("seed", range(2))
async def test_c052_questions_of_a_tree_of_children_are_answered_in_any_order(lives: Any, seed: int) -> None:
    """Eight leaves three levels down ask twelve questions; random batches of answers, each in a re-opened store, end
    the run with every answer where it belongs and every effect done once."""
    chance = random.Random(seed)
    one = lives(lambda: deep(one.external))
    result = await one.run()
    answered: list[str] = []
    for _ in range(30):
        if result.status != "interrupted":
            break
        some = [item for item in result.interrupts if chance.random() < 0.4] or [result.interrupts[-1]]
        assert not {item.id for item in some} & set(answered)
        answered += [item.id for item in some]
        result = await one.resume({item.id: item.key for item in some})
    leaves = [f"{a}{b}" for a in "lr" for b in "lr"]
    wanted = [text for leaf in leaves for text in (f"{leaf}l={leaf}l", f"{leaf}r={leaf}r0,{leaf}r1")]
    assert sorted(result.unwrap().log) == sorted(wanted)
    assert len(answered) == 12
    counted = Counter(line for line in one.external if line.startswith("line"))
    assert set(counted.values()) == {1}
    assert len(counted) == 12


async def test_c063_a_child_in_a_loop_asks_again_in_every_lap(lives: Any) -> None:
    """A child graph that is run once a lap asks anew each time: an answer of one lap never serves the next."""

    def graph() -> StateGraph:
        child = chain(StateGraph(Log).add_interrupt_node("ask", prompt="?", key="q", writes="reply"), "ask")
        built = StateGraph(Log).add_node("tick", says("tick")).add_subgraph_node("child", child.compile())
        built.add_edge("tick", "child").set_entry_point("tick")
        return built.add_conditional_edges("child", lambda s: END if s.reply == "stop" else "tick", ["tick"])

    one = lives(graph)
    result = await one.run()
    ids = []
    for answer in ("go", "go", "stop"):
        assert keys(result) == ["q"]
        ids.append(result.interrupts[0].id)
        result = await one.resume(by_key(result, {"q": answer}))
    assert result.unwrap().log == ["tick"] * 3
    assert len(set(ids)) == 3


async def test_c052_a_child_beside_a_failure_keeps_its_question(lives: Any) -> None:
    """A child that asks beside a node that fails: the failure is the outcome, and after the mend the question is
    pending once, with the child's recorded work not repeated."""
    broken = [True]

    async def fails(_: Any) -> dict[str, list[str]]:
        if broken[0]:
            raise ConnectionError("down")
        return {"log": ["mended"]}

    def graph() -> StateGraph:
        child = wrapped(chain(StateGraph(Log).add_node("ask", asks(one.external, "q")), "ask"), 1)
        built = StateGraph(Log).add_subgraph_node("child", child.compile()).add_node("x", fails)
        return built.set_entry_point("child", "x").set_finish_point("child", "x")

    one = lives(graph)
    assert (await one.run()).status == "failed"
    broken[0] = False
    result = await one.resume()
    assert keys(result) == ["q"]
    result = await one.resume({"q": "a"})
    assert sorted(result.unwrap().log) == ["before", "behind", "mended", "q=a"]
    assert one.external.count("line q0") == 1


async def test_c024_a_child_that_goes_on_writes_only_what_it_changed(lives: Any) -> None:
    """A sibling changes fields while a child waits for an answer: what the child leaves alone is not written back."""

    async def sibling(_: Any) -> dict[str, Any]:
        return {"item": "changed", "log": ["sibling"], "notes": {"shared": ["new"]}}

    def graph() -> StateGraph:
        child = chain(StateGraph(Notes).add_node("ask", asks(one.external, "q")), "ask")
        built = StateGraph(Notes).add_subgraph_node("child", child.compile()).add_node("sibling", sibling)
        return built.set_entry_point("child", "sibling").set_finish_point("child", "sibling")

    one = lives(graph)
    assert keys(await one.run({"notes": {"shared": ["old"]}, "log": ["start"]})) == ["q"]
    state = (await one.resume({"q": "a"})).unwrap()
    assert (state.item, state.notes) == ("changed", {"shared": ["new"]})
    assert sorted(state.log) == ["q=a", "sibling", "start"]


@pytest.mark.parametrize("depth", [1, 2])
async def test_c024_an_edit_beside_a_waiting_child_is_not_undone_by_it(lives: Any, depth: int) -> None:
    """A person edits the parent while a child waits: the child's end doesn't write the old values back over it."""
    one = lives(lambda: wrapped(chain(StateGraph(Log).add_node("ask", asks(one.external, "q")), "ask"), depth))
    assert keys(await one.run()) == ["q"]
    async with one.open_store() as store:
        executor = Executor(one.compiled, store, one.engine)
        await executor.edit(one.lineage, None, {"reply": "edited", "log": ["edited"]})
        assert [item.key for item in await executor.interrupts(one.lineage)] == ["q"]
    state = (await one.resume({"q": "a"})).unwrap()
    assert state.reply == "edited"
    assert state.log == ["edited", *["before"] * (depth - 1), "q=a", *["behind"] * depth]


@pytest.mark.parametrize("first", ["left", "right"])
async def test_c045_a_fork_of_a_half_answered_child_keeps_its_answers(lives: Any, first: str) -> None:
    """A run forked when one of two questions of a child was answered waits for the other one only, in both lineages,
    and the answered node is not run again."""
    one = lives(lambda: wrapped(left_and_right(one.external), 2))
    await one.run()
    await one.resume({first: "x"})
    second = {"left": "right", "right": "left"}[first]
    async with one.open_store() as store:
        await Executor(one.compiled, store, one.engine).fork(one.lineage, new_lineage=f"{one.lineage}-fork")
    for name in (one.lineage, f"{one.lineage}-fork"):
        async with one.open_store() as store:
            executor = Executor(one.compiled, store, one.engine)
            assert [item.key for item in await executor.interrupts(name)] == [second]
            result = await executor.resume(name, {second: "y"})
        assert sorted(result.unwrap().log) == sorted([*["before", "behind"] * 2, f"{first}=x", f"{second}=y"])
    assert Counter(one.external)[f"runs {first}"] == 2


async def test_c043_resumes_that_bring_nothing_do_not_grow_a_waiting_child(lives: Any) -> None:
    """Resumes without an answer, and answers to others, leave a child that waits as it is: no row is added to it."""
    one = lives(lambda: two_children(one.external, 0))
    first = await one.run()
    path = next(item.path for item in first.interrupts if item.key == "two0")
    await one.resume({"two0": "x"})

    async def rows() -> int:
        async with one.open_store() as store:
            return len(await store.history(one.lineage, path))

    before = await rows()
    for _ in range(3):
        await one.resume()
    await one.resume({"one": "x"})
    assert await rows() == before
