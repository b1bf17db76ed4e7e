"""More of kind `pause`: what an answer may be, and pauses that broad handlers in user code try to swallow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel, Field, PositiveInt, TypeAdapter, create_model
from support.pausing import Lives, keys

from graphagent import MemoryCheckpoints, NodeCallbacks, NodeContext, RetryPolicy, StateGraph, append
from graphagent.errors import AnswerError, UsageError

pytestmark = pytest.mark.anyio


class Log(BaseModel):
    log: Annotated[list[str], append] = []
    reply: Any = None


class Money(BaseModel):
    amount: PositiveInt
    currency: Literal["EUR", "USD"] = "EUR"


@pytest.fixture(params=["superstep", "eager"])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine; the way without debug mode is the same as far as this file goes."""
    return str(request.param)


@pytest.fixture
def memory_lives(engine: Any, lineage: str) -> Callable[[Callable[[], StateGraph]], Lives]:
    """The same in memory, for what no store has a part in."""
    store = MemoryCheckpoints()
    return lambda graph: Lives(lambda: store, graph, engine, lineage)


def asker(answer_type: Any, where: str) -> Callable[[], StateGraph]:
    """A graph that asks for a value of a type: in a node's body, in an interrupt node, or in a child graph."""

    async def body(_: Any, ctx: NodeContext) -> dict[str, Any]:
        return {"reply": await ctx.interrupt("q", "?", answer_type)}

    state = create_model("State", reply=(answer_type, ...))

    def graph() -> StateGraph:
        built = StateGraph(state).set_entry_point("ask").set_finish_point("ask")
        if where == "node":
            return built.add_interrupt_node("ask", prompt="?", answer_type=answer_type, key="q", writes="reply")
        built.add_node("ask", body)
        if where == "body":
            return built
        parent = StateGraph(state).add_subgraph_node("ask", built.compile())
        return parent.set_entry_point("ask").set_finish_point("ask")

    return graph


FALSY = [False, 0, "", {}, [], None, 0.0]


@pytest.mark.parametrize("where", ["body", "node", "child"])
async def test_c216_falsy_answers_arrive_unchanged(lives: Any, where: str) -> None:
    """False, 0, '', {}, [] and None are answers like any other (None is one, too): they reach the node as they are."""
    one = lives(asker(Any, where))
    for answer in FALSY:
        assert keys(await one.run()) == ["q"]
        result = await one.resume(answer=answer)
        assert result.status == "completed"
        assert result.state.reply == answer
        assert type(result.state.reply) is type(answer)


TYPES = [
    (bool, "maybe", False),
    (int, "many", 0),
    (str, 5, ""),
    (list[int], ["x"], []),
    (Literal["yes", "no"], "perhaps", "no"),
    (int | None, "x", None),
    (PositiveInt, -1, 30),
    (Annotated[str, Field(min_length=2, max_length=3)], "long", "abc"),
    (Annotated[float, Field(ge=0, lt=1)], 1, 0.5),
    (Annotated[list[str], Field(min_length=1)], [], ["x"]),
]


@pytest.mark.parametrize(("answer_type", "wrong", "right"), TYPES, ids=lambda value: str(value)[:24])
@pytest.mark.parametrize("where", ["body", "child"])
async def test_c044_a_wrong_answer_is_refused_before_it_is_stored(
    memory_lives: Any, where: str, answer_type: Any, wrong: Any, right: Any
) -> None:
    """An answer that doesn't fit the type, or one of its bounds, is a typed error; nothing is stored, and a right one
    goes through afterwards."""
    one = memory_lives(asker(answer_type, where))
    first = await one.run()
    before = await one.sources()
    with pytest.raises(AnswerError, match="'q'"):
        await one.resume(answer=wrong)
    assert await one.sources() == before
    result = await one.resume({first.interrupts[0].id: right})
    assert result.unwrap().reply == right


ASKED_AGAIN = [
    (Money, {"amount": -1}, {"amount": 5}),
    (Money, {"amount": "x"}, {"amount": 5}),
    (Money, {}, {"amount": 5}),
    (Money, {"amount": 1, "currency": "DM"}, {"amount": 5}),
    (Annotated[str, Field(pattern="^[a-z]+$")], "A", "a"),
    (date, "tomorrow", "2026-08-01"),
]


@pytest.mark.parametrize(("answer_type", "wrong", "right"), ASKED_AGAIN, ids=lambda value: str(value)[:24])
@pytest.mark.parametrize("where", ["body", "node", "child"])
async def test_c044_an_answer_that_only_the_node_can_refuse_is_asked_again(
    memory_lives: Any, where: str, answer_type: Any, wrong: Any, right: Any
) -> None:
    """An answer that the stored schema lets through and the node refuses leaves its question open, with a warning that
    says what is wrong; it is not stored for good, and a right answer goes through afterwards."""
    one = memory_lives(asker(answer_type, where))
    await one.run()
    result = await one.resume(answer=wrong)
    assert (result.status, keys(result)) == ("interrupted", ["q"])
    assert any("'q'" in warning for warning in result.warnings)
    result = await one.resume({"q": right})
    assert result.unwrap().reply == TypeAdapter(answer_type).validate_python(right)


def wrapper(how: str, external: list[str]) -> StateGraph:
    """A tool that asks for approval inside a wrapper which catches what it can, then does something dangerous."""

    async def tool(ctx: NodeContext) -> str:
        if await ctx.interrupt("approve", "delete all?", bool):
            await ctx.step("delete", external.append, "deleted")
            return "done"
        return "declined"

    async def exception(_: Any, ctx: NodeContext) -> dict[str, Any]:
        try:
            return {"reply": await tool(ctx)}
        except Exception:
            return {"reply": "tool failed"}

    async def everything(_: Any, ctx: NodeContext) -> dict[str, Any]:
        try:
            return {"reply": await tool(ctx)}
        except BaseException:
            return {"reply": "tool failed"}

    async def retrying(_: Any, ctx: NodeContext) -> dict[str, Any]:
        for _i in range(3):
            with contextlib.suppress(BaseException):
                return {"reply": await tool(ctx)}
        return {"reply": "tool failed"}

    async def suppressed(_: Any, ctx: NodeContext) -> dict[str, Any]:
        approved = True
        with contextlib.suppress(BaseException):
            approved = await ctx.interrupt("approve", "delete all?", bool)
        if approved:
            await ctx.step("delete", external.append, "deleted")
        return {"reply": "done" if approved else "declined"}

    async def turned(_: Any, ctx: NodeContext) -> dict[str, Any]:
        try:
            return {"reply": await tool(ctx)}
        except BaseException as error:
            raise ValueError("tool failed") from error

    async def in_a_group(_: Any, ctx: NodeContext) -> dict[str, Any]:
        found: list[str] = []

        async def call() -> None:
            found.append(await tool(ctx))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
        return {"reply": found[0]}

    async def gathered(_: Any, ctx: NodeContext) -> dict[str, Any]:
        return {"reply": (await asyncio.gather(tool(ctx)))[0]}

    def threaded(_: Any, ctx: Any) -> dict[str, Any]:
        try:
            if ctx.interrupt("approve", "delete all?", bool):
                ctx.step("delete", external.append, "deleted")
                return {"reply": "done"}
            return {"reply": "declined"}
        except Exception:
            return {"reply": "tool failed"}

    functions = (exception, everything, retrying, suppressed, turned, in_a_group, gathered, threaded)
    nodes = {fn.__name__: fn for fn in functions}
    retry = RetryPolicy(max_attempts=3, initial=0, jitter=False)
    graph = StateGraph(Log).add_node("tool", nodes[how], retry=retry)
    return graph.set_entry_point("tool").set_finish_point("tool")


WRAPPERS = ["exception", "everything", "retrying", "suppressed", "turned", "in_a_group", "gathered", "threaded"]


@pytest.mark.parametrize("how", WRAPPERS)
@pytest.mark.parametrize("approve", [True, False])
async def test_c051_no_wrapper_swallows_a_pause(memory_lives: Any, how: str, approve: bool) -> None:
    """Whatever a tool's wrapper catches, the run pauses with one question, nothing dangerous happens before it is
    answered, and the answer decides (a tool is a node whose action is a ctx.step)."""
    one = memory_lives(lambda: wrapper(how, one.external))
    result = await one.run()
    assert (result.status, keys(result)) == ("interrupted", ["approve"])
    assert one.external == []
    result = await one.resume({"approve": approve})
    assert result.unwrap().reply == ("done" if approve else "declined")
    assert one.external == ["deleted"] * approve


@pytest.mark.parametrize("when", ["before", "after"])
async def test_c051_a_callback_may_ask_too(lives: Any, when: str) -> None:
    """An approval in a node callback pauses the run like one in the node, and beside questions of the node itself."""

    async def approve(ctx: NodeContext, *_: Any) -> Any:
        return None if await ctx.interrupt("approve", "go on?", bool) else {"reply": "declined"}

    async def node(_: Any, ctx: NodeContext) -> dict[str, Any]:
        await ctx.step("line", one.external.append, "line")
        return {"reply": await ctx.interrupt("q")}

    def graph() -> StateGraph:
        built = StateGraph(Log).add_node("n", node).set_entry_point("n").set_finish_point("n")
        return built.with_node_callbacks(NodeCallbacks(**{when: approve}))

    one = lives(graph)
    answers = [("approve", True), ("q", 7)] if when == "before" else [("q", 7), ("approve", True)]
    result = await one.run()
    for key, answer in answers:
        assert keys(result) == [key]
        result = await one.resume({key: answer})
    assert result.unwrap().reply == 7
    assert one.external == ["line"]


async def test_c051_questions_asked_side_by_side_are_pending_together(lives: Any) -> None:
    """A node that asks two people at once has both questions pending, and takes the answers one at a time."""

    async def node(_: Any, ctx: NodeContext) -> dict[str, Any]:
        return {"reply": await asyncio.gather(ctx.interrupt("first"), ctx.interrupt("second"))}

    one = lives(lambda: StateGraph(Log).add_node("n", node).set_entry_point("n").set_finish_point("n"))
    assert keys(await one.run()) == ["first", "second"]
    assert keys(await one.resume({"second": 2})) == ["first"]
    assert (await one.resume({"first": 1})).unwrap().reply == [1, 2]


async def test_c051_a_failure_beside_a_question_is_not_lost(lives: Any) -> None:
    """A node whose task group asks and fails at once pauses; the failure shows when it runs again with its answer, and
    the answer is kept for the run after that."""
    broken = [True]

    async def node(_: Any, ctx: NodeContext) -> dict[str, Any]:
        async def fails() -> None:
            await anyio.lowlevel.checkpoint()
            if broken[0]:
                raise ConnectionError("down")

        async with anyio.create_task_group() as group:
            group.start_soon(fails)
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                await anyio.lowlevel.checkpoint()
                answer = await ctx.interrupt("q")
        return {"reply": answer}

    one = lives(lambda: StateGraph(Log).add_node("n", node).set_entry_point("n").set_finish_point("n"))
    assert keys(await one.run()) == ["q"]
    result = await one.resume({"q": 1})
    assert result.status == "failed"
    assert "ConnectionError" in repr(result.error.__cause__)  # type: ignore[union-attr]
    broken[0] = False
    assert (await one.resume()).unwrap().reply == 1


async def test_c051_a_question_inside_a_recorded_step_does_not_block_the_run(lives: Any) -> None:
    """A tool that is run as a recorded step asks for approval itself: with the answer the step is done, once (or the
    question is refused at the first run, naming the step)."""

    async def node(_: Any, ctx: NodeContext) -> dict[str, Any]:
        async def tool() -> str:
            answer = await ctx.interrupt("approve")
            one.external.append("deleted")
            return str(answer)

        return {"reply": await ctx.step("tool", tool)}

    one = lives(lambda: StateGraph(Log).add_node("n", node).set_entry_point("n").set_finish_point("n"))
    first = await one.run()
    if first.status == "failed":
        assert isinstance(first.error, UsageError)
        assert "'tool'" in str(first.error)
        return
    assert (await one.resume({"approve": "yes"})).unwrap().reply == "yes"
    assert one.external == ["deleted"]
