"""The tools node in a graph: spec/graph, edge cases 87 and 88, with the deviation of 87."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from graphagent import END, Executor, Message, MessagesState, RunResult, StateGraph, ToolCall, tool
from graphagent.agents import ToolContext
from graphagent.graph.compiled import CompiledGraph

pytestmark = pytest.mark.anyio


def graph(*tools: Any, parallel: bool) -> CompiledGraph:
    """A tools node alone."""
    builder = StateGraph(MessagesState).add_tools_node("tools", tools, parallel=parallel)
    return builder.set_entry_point("tools").add_edge("tools", END).compile()


def asking(*names: str) -> dict[str, Any]:
    """A model asked for these tools."""
    calls = tuple(ToolCall(id=f"c{place}", name=name) for place, name in enumerate(names))
    return {"messages": [Message.user("go"), Message.assistant(tool_calls=calls)]}


def results(result: RunResult) -> list[tuple[str | None, str]]:
    """The results in the state."""
    return [(m.tool_call_id, m.text) for m in result.unwrap().messages if m.role == "tool"]


@pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "parallel"])
async def test_e087_results_stand_in_call_order(parallel: bool) -> None:
    """Whatever ends first; a tool that fails and one that isn't there are results, and cancel no other."""

    @tool
    async def slow() -> str:
        """Slow."""
        await anyio.sleep(0.02)
        return "slow"

    @tool
    async def broken() -> str:
        """Broken."""
        raise RuntimeError("no")

    result = await Executor(graph(slow, broken, parallel=parallel)).run(asking("slow", "broken", "lost", "slow"))
    first, second, third, fourth = results(result)
    assert (first, fourth) == (("c0", "slow"), ("c3", "slow"))
    assert second == ("c1", "Error: tool 'broken' failed: RuntimeError: no")
    assert third[0] == "c2"
    assert "tool not found: 'lost'" in third[1]


async def test_e087_a_user_message_after_the_call_is_an_error() -> None:
    """A person who spoke after the call asked for something else: nothing is run, and the error says what to do."""

    @tool
    async def look() -> str:
        """Look."""
        raise AssertionError("it ran")

    asked = asking("look")
    result = await Executor(graph(look, parallel=False)).run({"messages": [*asked["messages"], Message.user("stop")]})
    assert result.status == "failed"
    assert "no tool calls in 'messages' after the last user message" in str(result.error)


@pytest.mark.parametrize("parallel", [False, True], ids=["in turn", "parallel"])
async def test_e088_a_call_before_a_question_is_not_run_again(store: Any, lineage: str, parallel: bool) -> None:
    """The second call asks a person: on resume the first one, and the third if it ran, keep their results."""
    done: list[str] = []

    @tool
    async def look() -> str:
        """Look."""
        done.append("look")
        return f"look {len(done)}"

    @tool(reentrant=True)
    async def ask(ctx: ToolContext) -> str:
        """Ask."""
        answer = await ctx.node.interrupt("sure", "Sure?", str)
        done.append("ask")
        return f"said {answer}"

    executor = Executor(graph(look, ask, parallel=parallel), store)
    result = await executor.run(asking("look", "ask"), lineage=lineage)
    assert [question.key for question in result.interrupts] == ["sure"]
    result = await executor.resume(lineage, {"sure": "yes"})
    assert results(result) == [("c0", "look 1"), ("c1", "said yes")]
    assert done == ["look", "ask"]
