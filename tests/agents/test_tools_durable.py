"""Tool calls and the effect ledger: whatever stops a run, a call that had ended is never run again.

C071 and C073 are public fault reports of the kind `durable`; see tests/cases.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.dying import Dying, survives
from support.tooling import Rounds, asking, call

from graphagent import (
    END,
    Executor,
    MemoryCheckpoints,
    MessagesState,
    NodeContext,
    RetryPolicy,
    RunResult,
    StateGraph,
    ToolCall,
)
from graphagent.agents.function_tool import tool
from graphagent.agents.tool import ToolContext, ToolResult
from graphagent.agents.tool_options import Approval, ToolCallbacks, ToolOptions
from graphagent.agents.tool_runner import run_calls
from graphagent.errors import EffectUnknown, StopAgent, UsageError
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "parallel"])


class World:
    """What tools did outside: one entry a call that got through."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.turns = itertools.cycle([0])

    def tools(self, *names: str, **traits: Any) -> list[Any]:
        return [tool(self._act(name), name=name, **traits) for name in names]

    def _act(self, name: str) -> Callable[[], Any]:
        async def act() -> ToolResult:
            for _ in range(next(self.turns)):
                await anyio.lowlevel.checkpoint()
            self.done[name] += 1
            return ToolResult(f"{name} {self.done[name]}", state_delta={name: self.done[name]})

        return act


def approving(result: RunResult, **answers: Any) -> dict[str, Any]:
    """Answers by interrupt id, from answers by tool."""
    return {item.id: answers[item.prompt["tool"]] for item in result.interrupts if item.prompt["tool"] in answers}


# -- approval ---------------------------------------------------------------------------------------


@BOTH
async def test_nothing_is_done_before_all_questions_are_answered(open_store: Any, lineage: str, parallel: bool) -> None:
    """Two calls need approval: both questions are put together and no call runs, also none without one; answered one
    by one, all run once, in call order."""
    world = World()
    tools = [*world.tools("look"), *world.tools("pay", "ship", needs_approval=True)]
    rounds = Rounds(tools, ToolOptions(parallel=parallel))
    calls = [call("pay"), call("look"), call("ship")]
    async with open_store() as store:
        result = await Executor(rounds.graph, store).run(asking(calls), lineage=lineage)
    assert [(item.key, item.prompt["call_id"]) for item in result.interrupts] == [
        ("approve:pay", "c-pay"),
        ("approve:ship", "c-ship"),
    ]
    async with open_store() as store:
        result = await Executor(rounds.graph, store).resume(lineage, {"approve:ship": True})
        assert [item.key for item in result.interrupts] == ["approve:pay"]
        assert not world.done
        result = await Executor(rounds.graph, store).resume(lineage, {"approve:pay": True})
    assert result.status == "completed"
    assert [m.text for m in rounds.rounds[-1].messages] == ["pay 1", "look 1", "ship 1"]
    assert world.done == Counter(pay=1, look=1, ship=1)


@pytest.mark.parametrize(
    ("answer", "told", "paid"),
    [
        (True, "paid 5", [5]),
        (False, '{"status": "denied", "tool": "pay", "reason": "a person declined this call"}', []),
        ({"approved": False, "reason": "too much"}, '{"status": "denied", "tool": "pay", "reason": "too much"}', []),
        ({"approved": True, "arguments": {"amount": 3}}, "paid 3", [3]),
        ({"approved": True, "arguments": {"amount": "x"}}, "Error: the arguments of tool 'pay' don't fit: ", []),
        (Approval(approved=True), "paid 5", [5]),
    ],
    ids=["yes", "no", "reason", "other arguments", "wrong arguments", "model"],
)
async def test_what_an_approval_may_say(store: Any, lineage: str, answer: Any, told: str, paid: list[int]) -> None:
    """Yes, no, why not, or other arguments, which are checked like those of the model."""
    done: list[int] = []

    def pay(amount: int) -> str:
        """Pay it."""
        done.append(amount)
        return f"paid {amount}"

    rounds = Rounds([tool(pay, needs_approval=True)])
    executor = Executor(rounds.graph, store)
    result = await executor.run(asking([call("pay", amount=5)]), lineage=lineage)
    assert result.interrupts[0].prompt == {
        "tool": "pay",
        "call_id": "c-pay",
        "arguments": {"amount": 5},
        "description": "Pay it.",
    }
    assert (await executor.resume(lineage, answer=answer)).status == "completed"
    assert rounds.rounds[0].messages[0].text.startswith(told)
    assert done == paid


async def test_wrong_arguments_are_not_put_before_a_person(store: Any, lineage: str) -> None:
    """A call that could not run is told to the model; nobody is asked about it."""

    def pay(amount: int) -> str:
        return "paid"

    rounds = Rounds([tool(pay, needs_approval=True)])
    result = await Executor(rounds.graph, store).run(asking([call("pay", amount="x")]), lineage=lineage)
    assert result.status == "completed"
    assert "don't fit" in rounds.rounds[0].messages[0].text


@pytest.mark.parametrize("decision", ["ask", "allow"])
async def test_a_permission_policy_may_ask_a_person(store: Any, lineage: str, decision: Any) -> None:
    """`ask` puts the call, with the arguments that callbacks have made of it, before a person."""
    world = World()

    def before(asked: ToolCall, context: ToolContext) -> ToolCall:
        return asked.model_copy(update={"arguments": {"extra": 1}})

    def anything(**given: Any) -> str:
        world.done["ran"] += 1
        return str(given)

    options = ToolOptions(permission=lambda asked, of: decision, callbacks=(ToolCallbacks(before=before),))
    rounds = Rounds([anything], options)
    executor = Executor(rounds.graph, store)
    result = await executor.run(asking([call("anything")]), lineage=lineage)
    if decision == "ask":
        assert result.interrupts[0].prompt["arguments"] == {"extra": 1}
        assert not world.done
        result = await executor.resume(lineage, answer=True)
    assert result.status == "completed"
    assert rounds.rounds[0].messages[0].text == "{'extra': 1}"


async def test_every_lap_asks_again(store: Any, lineage: str) -> None:
    """An approval counts for one call of one round: the next turn asks anew."""
    world = World()
    rounds = Rounds(world.tools("pay", needs_approval=True))
    executor = Executor(rounds.graph, store)
    for lap in (1, 2):
        result = await executor.run(asking([call("pay")]), lineage=lineage)
        assert result.status == "interrupted"
        assert (await executor.resume(lineage, answer=True)).status == "completed"
        assert world.done == Counter(pay=lap)


# -- tools that ask ---------------------------------------------------------------------------------


@BOTH
async def test_reentrant_tools_ask_side_by_side(open_store: Any, lineage: str, parallel: bool) -> None:
    """Two calls of one tool ask twice each, a third finishes at once. However the answers come, each call gets its
    own, what they did through `ctx.node.step` is done once, and the finished one is not run again."""
    world = World()

    async def book(place: str, ctx) -> str:
        async def reserve() -> str:
            world.done[f"reserve {place}"] += 1
            return f"{place} no. {world.done.total()}"

        seat = await ctx.node.step("reserve", reserve)
        day = await ctx.node.interrupt(f"day for {place}", seat, str)
        meal = await ctx.node.interrupt(f"meal for {place}", None, str)
        return f"{seat}, {day}, {meal}, {ctx.node.idempotency_key('x')[:4]}, {ctx.node.random.random():.3f}"

    rounds = Rounds([tool(book, reentrant=True), *world.tools("look")], ToolOptions(parallel=parallel))
    calls = [call("book", "1", place="a"), call("look"), call("book", "2", place="b")]
    async with open_store() as store:
        result = await Executor(rounds.graph, store).run(asking(calls), lineage=lineage)
    order = ["meal for b", "day for b", "day for a", "meal for a"]
    for _ in range(8):
        if result.status != "interrupted":
            break
        pending = sorted((item.key for item in result.interrupts), key=order.index)
        async with open_store() as store:
            result = await Executor(rounds.graph, store).resume(lineage, {pending[0]: f"<{pending[0]}>"})
    assert result.status == "completed"
    first, looked, second = (m.text for m in rounds.rounds[-1].messages)
    assert first.startswith("a no. ")
    assert "<day for a>, <meal for a>" in first
    assert "<day for b>, <meal for b>" in second
    assert first.rsplit(", ", 2)[1:] != second.rsplit(", ", 2)[1:], "two calls have keys and numbers of their own"
    assert looked == "look 1"
    assert world.done == Counter({"reserve a": 1, "look": 1, "reserve b": 1})


async def test_questions_stand_in_call_order(store: Any, lineage: str) -> None:
    """Whichever of two parallel calls asks first, their questions are listed in call order."""
    asked = anyio.Event()

    async def late(ctx) -> str:
        await asked.wait()
        return str(await ctx.node.interrupt("late", None, str))

    async def early(ctx) -> str:
        asked.set()
        return str(await ctx.node.interrupt("early", None, str))

    tools = [tool(late, reentrant=True), tool(early, reentrant=True)]
    rounds = Rounds(tools, ToolOptions(parallel=True))
    result = await Executor(rounds.graph, store).run(asking([call("late"), call("early")]), lineage=lineage)
    assert [item.key for item in result.interrupts] == ["late", "early"]


async def test_a_tool_that_swallows_its_question_is_interrupted_all_the_same(store: Any, lineage: str) -> None:
    """A wrapper around the question that catches everything, or a task group, does not get around it."""

    async def careless(ctx) -> str:
        try:
            return str(await ctx.node.interrupt("sure", None, bool))
        except BaseException:
            return "swallowed"

    async def grouped(ctx) -> str:
        answers: list[bool] = []

        async def ask() -> None:
            answers.append(await ctx.node.interrupt("really", None, bool))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
        return str(answers[0])

    rounds = Rounds([tool(careless, reentrant=True), tool(grouped, reentrant=True)], ToolOptions(parallel=True))
    executor = Executor(rounds.graph, store)
    result = await executor.run(asking([call("careless"), call("grouped")]), lineage=lineage)
    assert sorted(item.key for item in result.interrupts) == ["really", "sure"]
    assert (await executor.resume(lineage, {"sure": True, "really": False})).status == "completed"
    assert [m.text for m in rounds.rounds[-1].messages] == ["True", "False"]


async def test_a_sync_tool_asks_from_its_thread(store: Any, lineage: str) -> None:
    """In a worker thread the context's methods are plain calls."""

    def choose(ctx) -> str:
        size = ctx.node.step("measure", lambda: 7)
        return f"{ctx.node.interrupt('colour', size, str)} {size}"

    rounds = Rounds([tool(choose, reentrant=True)])
    executor = Executor(rounds.graph, store)
    assert (await executor.run(asking([call("choose")]), lineage=lineage)).interrupts[0].prompt == 7
    assert (await executor.resume(lineage, answer="red")).status == "completed"
    assert rounds.rounds[-1].messages[0].text == "red 7"


async def test_a_tool_that_may_not_ask_fails_the_run(store: Any, lineage: str) -> None:
    """A question out of a tool that is not reentrant is an error that says how to declare it, and not the model's."""

    async def asks(ctx) -> str:
        return str(await ctx.node.interrupt("sure", None, bool))

    result = await Executor(Rounds([asks]).graph, store).run(asking([call("asks")]), lineage=lineage)
    assert result.status == "failed"
    assert isinstance(result.error, UsageError)
    assert "tool 'asks' asks a question" in str(result.error)
    assert "reentrant=True" in str(result.error)


# -- crashes ------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("when", ["before", "after"])
async def test_c071_a_process_that_dies_at_any_write(lineage: str, parallel: bool, when: str) -> None:
    """The process dies before or after each write of a round of three calls, and is started again. A call is never
    carried out twice; one whose outcome is unknown is said to be so, never done again, and the reentrant one is."""
    for at in itertools.count(1):
        world, name = World(), f"{lineage}-{when}-{at}"
        tools = [*world.tools("a", "c"), *world.tools("b", reentrant=True)]
        rounds = Rounds(tools, ToolOptions(parallel=parallel))
        calls = [call("a"), call("b"), call("c")]
        store = MemoryCheckpoints()
        dying = Dying(store, at, when, pauses=(0, 2, 1))

        first = Executor(rounds.graph, dying)
        if await survives(functools.partial(first.run, asking(calls), lineage=name)):
            assert at > 8, "the writes of this round were not all tried"
            return
        if not await store.history(name):
            continue
        result = await Executor(rounds.graph, store).resume(name)
        assert world.done["a"] <= 1
        assert world.done["c"] <= 1
        if result.status == "failed":
            assert isinstance(result.error, EffectUnknown)
            assert result.error.name.split(":")[1] in ("a", "c")
        else:
            assert [m.tool_call_id for m in result.unwrap().messages[1:]] == [
                "c-a",
                "c-b",
                "c-c",
            ]


async def test_a_call_that_raised_is_recorded_like_any_other(store: Any, lineage: str) -> None:
    """The node fails after a call had failed: the next attempt finds that failure, and does not call the tool again."""
    calls_made = 0

    async def refuses() -> str:
        nonlocal calls_made
        calls_made += 1
        raise ValueError("no")

    result = await Executor(failing_once([tool(refuses)]), store).run(asking([call("refuses")]), lineage=lineage)
    assert result.unwrap().messages[-1].text == "Error: tool 'refuses' failed: ValueError: no"
    assert calls_made == 1


def failing_once(tools: list[Any], options: ToolOptions = ToolOptions()) -> CompiledGraph:
    """A node that runs its calls and fails behind them, the first time; its policy runs it again."""
    failing = iter([True, False])

    async def act(state: MessagesState, ctx: NodeContext) -> dict[str, Any]:
        done = await run_calls(state.messages[-1].tool_calls, tools, ctx, options=options)
        if next(failing):
            raise ConnectionError("the node itself")
        return {"messages": list(done.messages)}

    builder = StateGraph(MessagesState).add_node("act", act, retry=RetryPolicy(2, initial=0))
    return builder.set_entry_point("act").add_edge("act", END).compile()


@pytest.mark.parametrize("seed", range(6))
async def test_parallel_calls_keep_their_places_in_the_ledger(lineage: str, seed: int) -> None:
    """Claims and commits of side-by-side calls overlap in every way; the attempt after a failure finds each of them.

    The ledger once forgot what was written while it was being read.
    """
    random_ = random.Random(seed)
    world = World()
    world.turns = itertools.cycle([random_.randrange(4) for _ in range(13)])
    pauses = tuple(random_.randrange(4) for _ in range(17))
    names = [f"t{i}" for i in range(6)]
    tools = world.tools(*names)
    store = Dying(MemoryCheckpoints(), pauses=pauses)
    graph = failing_once(tools, ToolOptions(parallel=True))
    result = await Executor(graph, store).run(asking(map(call, names)), lineage=lineage)
    assert [m.text for m in result.unwrap().messages[1:]] == [f"{name} 1" for name in names]
    assert world.done == Counter(names)


async def test_stop_is_recorded_too(store: Any, lineage: str) -> None:
    """A tool that ended the run ends it again on resume, without being called again."""
    calls_made = 0

    async def stops() -> None:
        nonlocal calls_made
        calls_made += 1
        raise StopAgent("enough")

    executor = Executor(Rounds([stops]).graph, store)
    await executor.run(asking([call("stops")]), lineage=lineage)
    result = await executor.resume(lineage)
    assert isinstance(result.error, StopAgent)
    assert str(result.error) == "enough"
    assert calls_made == 1


async def test_c073_the_recorded_order_is_call_order(lineage: str) -> None:
    """Three parallel calls with random delays, cut off after the second has ended, in 100 runs: what is stored after
    the resume is in call order every time, and no finished call is run again."""
    for seed in range(100):
        world, random_ = World(), random.Random(seed)
        world.turns = itertools.cycle([random_.randrange(6) for _ in range(3)])
        names = ["a", "b", "c"]
        rounds = Rounds(world.tools(*names, reentrant=True), ToolOptions(parallel=True))
        store, name = MemoryCheckpoints(), f"{lineage}-{seed}"
        dying = Dying(store, 6, "after")

        first = Executor(rounds.graph, dying)
        assert not await survives(functools.partial(first.run, asking(map(call, names)), lineage=name))
        result = await Executor(rounds.graph, store).resume(name)
        assert [m.tool_call_id for m in result.unwrap().messages[1:]] == ["c-a", "c-b", "c-c"]
        assert not (await Executor(rounds.graph, store).replay(name)).divergence
        committed = [m.text.split()[1] for m in result.unwrap().messages[1:]]
        assert sum(int(number) for number in committed) == sum(world.done.values())
