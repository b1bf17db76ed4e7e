"""What the ledger keeps of an effect in a store in memory, and when it looks for older ones."""

from __future__ import annotations

from typing import Annotated, Any

import anyio
import pytest
from pydantic import BaseModel

from graphagent import (
    END,
    Executor,
    LLMAgent,
    MemoryCheckpoints,
    Message,
    NodeCallbacks,
    NodeContext,
    RetryPolicy,
    SqlCheckpoints,
    StateGraph,
    append,
    tool,
)
from graphagent.checkpoint.store import is_instant
from graphagent.engine.export import export_lineage
from graphagent.models import ScriptedModel

pytestmark = pytest.mark.anyio


class Log(BaseModel):
    log: Annotated[list[Any], append] = []


def test_a_store_around_another_is_not_instant() -> None:
    """Only the very store that says so never waits: what stands around it, or is derived from it, may."""

    class Around:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    class Derived(MemoryCheckpoints):
        pass

    assert is_instant(MemoryCheckpoints())
    assert not is_instant(Around(MemoryCheckpoints()))
    assert not is_instant(Derived())
    assert not is_instant(None)


def asking_agent(calls: list[int]) -> LLMAgent:
    """An agent that calls two tools; a person has to approve the second."""

    @tool
    async def count(by: int) -> int:
        """Count."""
        calls.append(by)
        return len(calls)

    @tool(needs_approval=True)
    async def send() -> str:
        """Send."""
        return "sent"

    asked = {"tool_calls": [{"name": "count", "arguments": {"by": 1}}]}
    model = ScriptedModel([asked, {"tool_calls": [{"name": "send", "arguments": {}}]}, "done"])
    return LLMAgent("agent", model, tools=[count, send])


async def test_a_lineage_in_memory_is_exported_as_one_in_a_database(tmp_path: Any) -> None:
    """Results that memory keeps as they are come out as plain data, the same that a database has."""
    documents = []
    async with SqlCheckpoints(f"sqlite:///{tmp_path}/x.db") as database:
        for store in (MemoryCheckpoints(), database):
            agent = asking_agent([])
            executor = Executor(agent.graph, store)
            result = await executor.run({"messages": [Message.user("go")]}, lineage="talk")
            assert result.status == "interrupted"
            document = await export_lineage(store, agent.graph, "talk")
            documents.append(_effects(document))
    assert documents[0] == documents[1]
    assert len(documents[0]) == 3


def _effects(document: Any) -> list[Any]:
    """All effect entries of a document, wherever they stand."""
    if isinstance(document, dict):
        own = list(document.get("effects", ()))
        return own + [one for value in document.values() for one in _effects(value)]
    return [one for value in document for one in _effects(value)] if isinstance(document, list) else []


async def test_a_child_that_begins_again_meets_its_effects() -> None:
    """Without a store a child graph has no rows to go on from; at another attempt of its node it begins anew, and what
    it did the first time is not done again."""
    done: list[str] = []

    async def act(state: Log, ctx: NodeContext) -> dict[str, Any]:
        return {"log": [await ctx.step("act", lambda: done.append("act") or "acted")]}

    async def flaky(state: Log) -> None:
        done.append("flaky")
        if len(done) < 3:
            raise OSError("once")

    child = StateGraph(Log).add_node("act", act).add_node("flaky", flaky).set_entry_point("act")
    graph = StateGraph(Log).add_node("before", flaky_free).set_entry_point("before").add_edge("before", "child")
    graph.add_subgraph_node("child", child.add_edge("act", "flaky").add_edge("flaky", END).compile())
    graph.add_edge("child", END)
    result = await Executor(graph.compile(), default_retry=RetryPolicy(max_attempts=2, initial=0)).run({})
    assert result.unwrap().log == ["acted"]
    assert done.count("act") == 1


async def flaky_free(state: Log) -> None:
    """Nothing."""


async def test_a_result_can_be_changed_after_its_step() -> None:
    """The ledger keeps what a step came back with, not what the node made of it afterwards."""

    async def act(state: Log, ctx: NodeContext) -> dict[str, Any]:
        found = await ctx.step("find", make)
        found.append(2)
        await ctx.interrupt("more", "more?", str)
        return {"log": found}

    def make() -> list[int]:
        return [1]

    graph = StateGraph(Log).add_node("act", act).set_entry_point("act").set_finish_point("act").compile()
    executor = Executor(graph)
    result = await executor.run({})
    resumed = await executor.resume(result.lineage, answer="yes")
    assert resumed.unwrap().log == [1, 2]


async def test_callbacks_at_the_end_are_called_in_order_whether_or_not_they_wait() -> None:
    """Sync and async callbacks of an activation's end come in their order; the last may fail the node."""
    order: list[str] = []

    def plain(name: str) -> NodeCallbacks:
        return NodeCallbacks(on_activation_end=lambda ctx, outcome: order.append(name))

    def waiting(name: str) -> NodeCallbacks:
        async def end(ctx: Any, outcome: Any) -> None:
            await anyio.lowlevel.checkpoint()
            order.append(name)

        return NodeCallbacks(on_activation_end=end)

    graph = StateGraph(Log).add_node("a", flaky_free).set_entry_point("a").set_finish_point("a").compile()
    callbacks = [plain("1"), waiting("2"), plain("3"), waiting("4")]
    assert (await Executor(graph, callbacks=callbacks).run({})).ok
    assert order == ["1", "2", "3", "4"]
