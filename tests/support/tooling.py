"""A graph of one node that runs tool calls, and the rounds that came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphagent import END, Executor, Message, MessagesState, NodeContext, RunResult, StateGraph, ToolCall
from graphagent.agents.tool_options import DEFAULT_OPTIONS, ToolOptions
from graphagent.agents.tool_runner import ToolRound, run_calls
from graphagent.agents.toolset import gather_tools
from graphagent.graph.compiled import CompiledGraph


def call(name: str, /, id: str | None = None, **arguments: Any) -> ToolCall:
    """A model's request; the id is made of the name unless given."""
    return ToolCall(id=id or f"c-{name}", name=name, arguments=arguments)


@dataclass
class Rounds:
    """`graph`: one node `tools` that runs the calls of the last message; `rounds`: what came of each run to its end."""

    tools: Sequence[Any]
    options: ToolOptions = DEFAULT_OPTIONS
    rounds: list[ToolRound] = field(default_factory=list)

    @property
    def graph(self) -> CompiledGraph:
        return self.builder().compile()

    def builder(self, **node: Any) -> StateGraph:
        async def act(state: MessagesState, ctx: NodeContext) -> dict[str, Any]:
            asked = state.messages[-1].tool_calls
            done = await run_calls(asked, await gather_tools(self.tools), ctx, ctx.context, options=self.options)
            self.rounds.append(done)
            return {"messages": list(done.messages)}

        return StateGraph(MessagesState).add_node("tools", act, **node).set_entry_point("tools").add_edge("tools", END)

    async def run(self, *calls: ToolCall, **options: Any) -> RunResult:
        """A run without a store."""
        return await Executor(self.graph).run(asking(calls), **options)


def asking(calls: Iterable[ToolCall]) -> dict[str, Any]:
    """The input of a run: a model asks for these."""
    return {"messages": [Message.assistant(tool_calls=tuple(calls))]}


async def ran(tools: Sequence[Any], *calls: ToolCall, options: ToolOptions = DEFAULT_OPTIONS) -> ToolRound:
    """What one round comes to."""
    rounds = Rounds(tools, options)
    (await rounds.run(*calls)).unwrap()
    return rounds.rounds[0]


async def texts(tools: Sequence[Any], *calls: ToolCall, options: ToolOptions = DEFAULT_OPTIONS) -> list[str]:
    """The results that the model sees, in order."""
    return [message.text for message in (await ran(tools, *calls, options=options)).messages]
