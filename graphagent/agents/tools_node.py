"""The node that runs the tool calls of the last answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphagent.agents.invocation import Invocation
from graphagent.agents.requests import field, open_round
from graphagent.agents.scope import Note, event_by, invocation_of, note
from graphagent.agents.tool_options import DEFAULT_OPTIONS, ToolOptions
from graphagent.agents.tool_runner import ToolRound, run_calls
from graphagent.agents.toolset import ToolLike, gather_tools
from graphagent.agents.transfer import TRANSFER
from graphagent.engine.context import NodeContext
from graphagent.errors import AgentError
from graphagent.graph.kinds import register
from graphagent.graph.names import END
from graphagent.graph.policies import RetryPolicy
from graphagent.graph.results import Command
from graphagent.ledger import Event
from graphagent.messages import Message, ToolCall


class ToolsNode:
    """The function of a tools node; see `StateGraph.add_tools_node` for what it does.

    A round that somebody else has to go on with (an external tool), or that wants no further answer, jumps to END; one
    that hands the conversation over jumps to the node named like the agent.
    """

    def __init__(self, id: str, config: Mapping[str, Any]) -> None:
        self.id = id
        self.tools: tuple[ToolLike, ...] = config["tools"]
        self.declared: frozenset[str] = config["declared"]
        options: ToolOptions = config["options"] or DEFAULT_OPTIONS
        retry: RetryPolicy | None = config["retry"]
        self.options = replace(
            options,
            parallel=options.parallel or config["parallel"],
            max_concurrency=config["max_concurrency"] or options.max_concurrency,
            retry=retry or options.retry,
        )

    async def __call__(self, state: Any, ctx: NodeContext) -> Any:
        """Run the calls that have no result yet. Raises AgentError if there are none, and what `run_calls` raises."""
        invocation = invocation_of(ctx)
        found = open_round(field(state, "messages", ()))
        if found is None:
            raise AgentError(
                f"node '{self.id}' finds no tool calls in 'messages' after the last user message; let it follow a node "
                f"that asks for tools, as add_tools_conditional_edges does"
            )
        calls = [call for call in found.message.tool_calls if call.id not in found.answered]
        tools = await gather_tools(self.tools)
        options = self.options if invocation is None else replace(self.options, on_cancelled=_keeping(invocation, ctx))
        done = await run_calls(calls, tools, ctx, invocation, options=options)
        note(ctx, Note(state_delta=done.state_delta, skip_summarization=done.ends_turn))
        return self._result(done, calls, invocation)

    def _result(self, done: ToolRound, calls: list[ToolCall], invocation: Invocation | None) -> Any:
        update: dict[str, Any] = {"messages": list(done.messages)}
        if done.messages:
            update["last_tool_response"] = done.messages[-1].text
        if done.transfer is not None:
            update["user_input"] = _handed_over(done, calls, invocation)
        update = {name: value for name, value in update.items() if name in self.declared}
        if done.deferred:
            return Command(update=update, goto=END)
        if done.transfer is not None:
            return Command(update=update, goto=done.transfer)
        return Command(update=update, goto=END) if done.ends_turn else update


def _handed_over(done: ToolRound, calls: list[ToolCall], invocation: Invocation | None) -> str:
    """What the agent that takes over is asked: what the model says it shall do, else what was asked in the first
    place."""
    for call in calls:
        mine = call.name == TRANSFER and call.arguments.get("agent_name") == done.transfer
        if mine and (text := call.arguments.get("message")):
            return str(text)
    asked = invocation.message if invocation is not None else None
    return "" if asked is None else asked.text


def _keeping(invocation: Invocation, ctx: NodeContext) -> Any:
    """Stores the results of a round that is cut off, so that no call stands in the session without one."""

    async def keep(done: ToolRound) -> None:
        if invocation.persist is not None and done.messages:
            await invocation.persist(_cut_off(invocation, ctx, done.messages))

    return keep


def _cut_off(invocation: Invocation, ctx: NodeContext, messages: tuple[Message, ...]) -> Event:
    return event_by(
        invocation,
        ctx.activation.branch,
        id=ctx.idempotency_key(f"cancelled {ctx.run_id}"),
        kind="tool_result",
        messages=messages,
        finish_reason="cancelled",
    )


register("tools", ToolsNode)
