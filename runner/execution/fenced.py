"""A reply that is nothing but code, run, for models that write code in place of calling a tool. Opt-in.

Source: spec/services, 4.7. The reply becomes a call of a tool, so what holds for any call holds for it: approval,
limits of rounds, callbacks, and that a call whose outcome is unknown is never repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from graphagent.agents.function_tool import FunctionTool, tool
from graphagent.agents.model import Reply
from graphagent.agents.model_options import ModelCallbacks
from graphagent.agents.scope import invocation_of
from graphagent.agents.tool import Asking, Tool, ToolContext, ToolResult
from graphagent.engine.context import NodeContext
from graphagent.errors import ToolError
from graphagent.execution import KIB, CodeExecutor, ExecutionLimits
from graphagent.messages import Message, ToolCall
from runner.execution.blocks import CodeBlock, only_block, run_blocks
from runner.execution.exec_arguments import shown
from runner.execution.keys import workspace_key

NAME = "run_code"
_SHOWN = 16 * KIB
_DEFAULT_LIMITS = ExecutionLimits()


class FencedReplies:
    """`LLMAgent(..., tools=[fenced], callbacks=[fenced.callbacks])` with `fenced = FencedReplies()`.

    A reply that is one fenced block of python or bash, and nothing else, is run in the workspace of the session, and
    the model is told what it said; prose with a block in it is an answer. The model may also call the tool `run_code`
    itself. `executor`: where code runs, None takes `Runner(executor=...)`; `limits`: of each block;
    `needs_approval`: a person is asked before each. Without a session or an executor nothing is offered or run.
    """

    name = ""

    def __init__(
        self,
        executor: CodeExecutor | None = None,
        *,
        limits: ExecutionLimits = _DEFAULT_LIMITS,
        needs_approval: bool = False,
    ) -> None:
        self._executor = executor
        self._tool = _code_tool(self, limits, needs_approval)

    @property
    def callbacks(self) -> ModelCallbacks:
        """What turns such a reply into a call."""
        return ModelCallbacks(after=self._after)

    async def tools(self) -> Sequence[Tool]:
        """The tool."""
        return (self._tool,)

    async def offered(self, asking: Asking) -> Sequence[Tool]:
        """The tool, if the run has a session and something to run code with, and no output schema is to be met."""
        invocation = asking.invocation
        if asking.structured or invocation is None or invocation.session is None:
            return ()
        return () if (self._executor or invocation.services.executor) is None else (self._tool,)

    def overview(self, names: Collection[str]) -> str:
        """Nothing: the tool says itself what it is for."""
        return ""

    async def aclose(self) -> None:
        """Nothing is open; an executor is closed by who made it."""

    def _after(self, reply: Reply, ctx: NodeContext) -> Reply | None:
        invocation = invocation_of(ctx)
        block = only_block(reply.message.text)
        if block is None or reply.message.tool_calls or reply.invalid or reply.finish_reason != "stop":
            return None
        if invocation is None or invocation.session is None:
            return None
        visible = invocation.options.tool_filter
        if (self._executor or invocation.services.executor) is None or (visible is not None and not visible(NAME)):
            return None
        call = ToolCall(id=f"code_{ctx.idempotency_key(NAME)[:24]}", name=NAME, arguments=block._asdict())
        message = Message.assistant("", tool_calls=(call,), id=reply.message.id, reasoning=reply.message.reasoning)
        return replace(reply, message=message, finish_reason="tool_calls")

    async def run(self, block: CodeBlock, limits: ExecutionLimits, ctx: ToolContext) -> ToolResult:
        """Run a block in the session's workspace. Raises ToolError where there is none."""
        invocation = ctx.invocation
        if invocation is None or invocation.session is None:
            raise ToolError(f"'{ctx.name}' was called outside of a run in a session; there is no workspace")
        executor = self._executor or invocation.services.executor
        if executor is None:
            raise ToolError(f"'{ctx.name}' has nothing to run code with")
        done = await run_blocks(await executor.open(workspace_key(invocation.session.key)), [block], limits)
        output, _ = shown(done.output.encode(), _SHOWN)
        said = "Code execution failed:" if done.failed else "Code execution result:"
        files = [one.path for one in done.files.files]
        return ToolResult(f"{said}\n{output}" + (f"\nFiles in out/: {', '.join(files)}" if files else ""))


def _code_tool(replies: FencedReplies, limits: ExecutionLimits, needs_approval: bool) -> FunctionTool:
    async def run_code(
        language: Literal["python", "bash"],
        code: Annotated[str, Field(description="A whole program. What it prints is the result.")],
        ctx: ToolContext,
    ) -> Any:
        """Run code in the workspace. Put files that are to be kept into out/."""
        return await replies.run(CodeBlock(language, code), limits, ctx)

    return tool(run_code, name=NAME, needs_approval=needs_approval)
