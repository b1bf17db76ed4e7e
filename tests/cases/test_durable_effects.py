"""More of kind `durable`: effects and their ledger, handlers and their lines, across crashes and pauses."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from support.dying import Dying, survives
from support.graphs import says
from support.ordering import Turns
from support.pausing import keys

from graphagent import Executor, NodeCallbacks, NodeContext, RetryPolicy, StateGraph, append
from graphagent.errors import EffectUnknown

pytestmark = pytest.mark.anyio


class Log(BaseModel):
    log: Annotated[list[str], append] = []
    got: Annotated[list[str], append] = []


@pytest.fixture(params=["superstep", "eager"])
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine; the way without debug mode is the same as far as this file goes."""
    return str(request.param)


def tool(posts: list[str], how: str, fate: list[str]) -> StateGraph:
    """A tool that posts to an external ledger; `fate` says what goes wrong after the post, and is used up."""

    async def call(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
        key = ctx.idempotency_key("post")

        def post() -> str:
            posts.append(key)
            if fate:
                raise {"lost": TimeoutError("no response"), "died": asyncio.CancelledError()}[fate.pop()]
            return f"posted {len(posts)}"

        reconcile = (lambda: f"found {posts.count(key)}") if how == "reconcile" else None
        return {"got": [await ctx.step("post", post, reconcile=reconcile, idempotent=how == "idempotent")]}

    retry = RetryPolicy(max_attempts=3, initial=0, jitter=False)
    return StateGraph(Log).add_node("tool", call, retry=retry).set_entry_point("tool").set_finish_point("tool")


OUTCOMES = [("blind", 1, None), ("reconcile", 1, "found 1"), ("idempotent", 2, "posted 2")]


@pytest.mark.parametrize(("how", "count", "got"), OUTCOMES, ids=[row[0] for row in OUTCOMES])
async def test_c071_a_lost_response_is_never_posted_again_blindly(lives: Any, how: str, count: int, got: Any) -> None:
    """The post succeeded and its response was lost: the retry gets the recorded outcome by reconciliation, or repeats
    under the same key where that is said to be harmless, or the effect is surfaced as unknown."""
    posts: list[str] = []
    fate = ["lost"]
    one = lives(lambda: tool(posts, how, fate))
    result = await one.run()
    if got is None:
        assert isinstance(result.error, EffectUnknown)
        assert posts[0] in str(result.error)
        assert "'tool'" in str(result.error)
        assert isinstance((await one.resume()).error, EffectUnknown)
    else:
        assert result.unwrap().got == [got]
    assert len(posts) == count
    assert len(set(posts)) == 1


@pytest.mark.parametrize("point", [1, 2, 3])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["blind", "reconcile", "idempotent"])
async def test_c071_a_worker_that_dies_around_a_post_leaves_a_clear_record(
    open_store: Any, engine: Any, lineage: str, how: str, point: int, when: str
) -> None:
    """The process dies at the claim, at the commit or at the step: on resume the recorded result is reused, or the
    claim alone is surfaced; nothing is posted twice without leave."""
    posts: list[str] = []
    async with open_store() as store:
        dying = Dying(store, point + 1, when)  # the first write is the input
        executor = Executor(tool(posts, how, []).compile(), dying, engine)
        assert not await survives(lambda: executor.run(lineage=lineage))
    had = len(posts)
    async with open_store() as store:
        result = await Executor(tool(posts, how, []).compile(), store, engine).resume(lineage)
    if (point, when) not in ((1, "after"), (2, "before")):  # no claim yet, or a recorded result
        assert (result.status, len(posts)) == ("completed", 1)
    elif how == "blind":
        assert isinstance(result.error, EffectUnknown)
        assert len(posts) == had
    else:
        assert result.unwrap().got == [f"found {had}" if how == "reconcile" else f"posted {had + 1}"]
        assert len(posts) == (had if how == "reconcile" else had + 1)
    assert len(set(posts)) <= 1


@pytest.mark.parametrize("how", ["edge", "after"])
async def test_c072_a_handler_that_ran_does_not_run_again(lives: Any, how: str) -> None:
    """A node fails and its handler writes a line and the state while a sibling waits: the line appears once, however
    often the run is resumed."""

    async def fails(_: Any) -> None:
        one.external.append("x")
        raise ConnectionError("down")

    async def sibling(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
        return {"got": [await ctx.interrupt("a"), await ctx.interrupt("b")]}

    def handle(*_: Any) -> dict[str, list[str]]:
        one.external.append("handled")
        return {"log": ["degraded"]}

    def graph() -> StateGraph:
        built = StateGraph(Log).add_node("x", fails).add_node("y", sibling).set_entry_point("x", "y")
        if how == "edge":
            built.add_node("mend", lambda _: handle(), inline=True).add_error_edge("x", "mend")
        else:
            built.with_node_callbacks(NodeCallbacks(after=handle), node="x")
        return built.add_node("end", says("end")).add_edge("y", "end").set_finish_point("end")

    one = lives(graph)
    result = await one.run()
    for key in ("a", "b"):
        result = await one.resume()
        assert keys(result) == [key]
        result = await one.resume({key: key})
    assert sorted(result.unwrap().log) == ["degraded", "end"]
    assert result.unwrap().got == ["a", "b"]
    assert Counter(one.external) == {"x": 1, "handled": 1}


async def test_c073_effects_called_side_by_side_in_a_node_keep_their_places(lives: Any) -> None:
    """Three calls under one name at once: a re-run gives each call its own recorded result, whatever ended first."""
    order = ["2", "0", "1"]

    def graph() -> StateGraph:
        turns = Turns(order)

        async def call(i: int) -> int:
            async with turns.turn(str(i)):
                one.external.append(str(i))
                return i * 10

        async def node(_: Any, ctx: NodeContext) -> dict[str, list[str]]:
            results = await asyncio.gather(*(ctx.step("call", call, i) for i in range(3)))
            return {"got": [*map(str, results), await ctx.interrupt("q")]}

        return StateGraph(Log).add_node("n", node).set_entry_point("n").set_finish_point("n")

    one = lives(graph)
    await one.run()
    result = await one.resume({"q": "a"})
    assert result.unwrap().got == ["0", "10", "20", "a"]
    assert one.external == order
