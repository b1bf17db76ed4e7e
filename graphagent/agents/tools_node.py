"""The node that runs the tool calls of the last answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphagent.agents.invocation import Invocation
from graphagent.agents.requests import field, first_asked, open_round
from graphagent.agents.scope import Note, event_by, invocation_of, note, scope_of
from graphagent.agents.tool_options import DEFAULT_OPTIONS, ToolOptions
from graphagent.agents.tool_runner import ToolRound, run_calls
from graphagent.agents.toolset import NodeTools, ToolLike
from graphagent.agents.transfer import TransferTool
from graphagent.engine.context import NodeContext
from graphagent.errors import AgentError
from graphagent.graph.kinds import register
from graphagent.graph.names import END
from graphagent.graph.policies import RetryPolicy
from graphagent.graph.results import Command
from graphagent.ledger import Event
from graphagent.messages import Message


class ToolsNode:
    """The function of a tools node; see `StateGraph.add_tools_node` for what it does.

    A round that somebody else has to go on with (an external tool), or that wants no further answer, jumps to END; one
    that hands the conversation over jumps to the node named like the agent.
    """

    def __init__(self, id: str, config: Mapping[str, Any]) -> None:
        self.id = id
        self.tools: tuple[ToolLike, ...] = config["tools"]
        self._gathered = NodeTools(self.tools)
        self.declared: frozenset[str] = config["declared"]
        moving = (tool for tool in self.tools if isinstance(tool, TransferTool))
        self.elsewhere = frozenset(name for tool in moving for name in tool.elsewhere)
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
        tools = await self._gathered.now()
        options = self.options if invocation is None else replace(self.options, on_cancelled=_keeping(invocation, ctx))
        done = await run_calls(calls, tools, ctx, invocation, options=options)
        if scope_of(ctx) is not None:
            note(ctx, Note(state_delta=done.state_delta, skip_summarization=done.ends_turn))
        return self._result(done, invocation)

    def _result(self, done: ToolRound, invocation: Invocation | None) -> Any:
        update: dict[str, Any] = {"messages": list(done.messages)}
        if done.messages:
            update["last_tool_response"] = done.messages[-1].text
        goto = END if done.deferred or done.ends_turn else None
        if done.handed is not None and done.handed.agent in self.elsewhere:
            update["metadata"] = done.handed.left()
            goto = END
        elif done.handed is not None:
            update["user_input"] = done.handed.asked or first_asked(invocation)
            goto = done.handed.agent
        update = {name: value for name, value in update.items() if name in self.declared}
        return update if goto is None else Command(update=update, goto=goto)


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
