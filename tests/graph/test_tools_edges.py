"""The prebuilt route from a model node to its tools."""

from typing import Any

import pytest

from graphagent import END, Executor, Message, MessagesState, StateGraph, ToolCall

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("calls", "ran"), [(1, ["model", "tools"]), (0, ["model"])])
async def test_tools_run_only_if_the_last_message_asks(calls: int, ran: list[str]) -> None:
    """A last message with tool calls leads to the tools node, one without to the fallback."""
    seen: list[str] = []

    async def model(state: MessagesState) -> dict[str, Any]:
        seen.append("model")
        tool_calls = tuple(ToolCall(id=f"c{i}", name="look") for i in range(calls))
        return {"messages": [Message.assistant("", tool_calls=tool_calls)]}

    async def tools(state: MessagesState) -> dict[str, Any]:
        seen.append("tools")
        return {"messages": [Message.tool("done", "c0")]}

    graph = StateGraph(MessagesState).add_node("model", model).add_node("tools", tools)
    graph.add_tools_conditional_edges("model", "tools").add_edge("tools", END).set_entry_point("model")
    assert (await Executor(graph.compile()).run()).status == "completed"
    assert seen == ran
