"""What plugins do at calls of models and tools, as callbacks of the nodes that make the calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from graphagent.agents.invocation import Hooks
from graphagent.agents.model import ModelRequest, Reply
from graphagent.agents.model_options import ModelCallbacks
from graphagent.agents.scope import invocation_of
from graphagent.agents.tool import ToolContext, ToolResult
from graphagent.agents.tool_options import ToolCallbacks
from graphagent.engine.context import NodeContext
from graphagent.errors import ModelError
from graphagent.messages import ToolCall

P = TypeVar("P")
Call = Callable[..., Awaitable[Any]]
"""A hook of a plugin: takes the acting agent's invocation first."""

MODEL = ("before_model", "after_model", "on_model_error")
TOOL = ("before_tool", "after_tool", "on_tool_error")


def overrides(plugin: object, base: type, name: str) -> bool:
    """Whether a plugin has a hook of its own, by its class or set on itself."""
    return getattr(getattr(plugin, name), "__func__", None) is not getattr(base, name)


def hooks_of(plugins: Iterable[P], base: type, calling: Callable[[P, str], Call]) -> Hooks:
    """The callbacks of the plugins, in their order. `base`: where hooks that do nothing are; `calling`: how a hook is
    called."""
    model: list[ModelCallbacks] = []
    tool: list[ToolCallbacks] = []
    for plugin in plugins:
        own = {name: calling(plugin, name) for name in (*MODEL, *TOOL) if overrides(plugin, base, name)}
        if own.keys() & set(MODEL):
            model.append(_around_model(*(own.get(name) for name in MODEL)))
        if own.keys() & set(TOOL):
            tool.append(_around_tool(*(own.get(name) for name in TOOL)))
    return Hooks(tuple(model), tuple(tool))


def _around_model(before: Call | None, after: Call | None, on_error: Call | None) -> ModelCallbacks:
    async def asked(request: ModelRequest, ctx: NodeContext) -> Any:
        return await before(invocation_of(ctx), request, ctx) if before is not None else None

    async def answered(reply: Reply, ctx: NodeContext) -> Any:
        return await after(invocation_of(ctx), reply, ctx) if after is not None else None

    async def failed(error: ModelError, request: ModelRequest, ctx: NodeContext) -> Any:
        return await on_error(invocation_of(ctx), request, error, ctx) if on_error is not None else None

    return ModelCallbacks(before and asked, after and answered, on_error and failed)


def _around_tool(before: Call | None, after: Call | None, on_error: Call | None) -> ToolCallbacks:
    async def asked(call: ToolCall, context: ToolContext) -> Any:
        return await before(context.invocation, call, context) if before is not None else None

    async def done(call: ToolCall, context: ToolContext, result: ToolResult) -> Any:
        return await after(context.invocation, call, context, result) if after is not None else None

    async def failed(call: ToolCall, context: ToolContext, error: Exception) -> Any:
        return await on_error(context.invocation, call, context, error) if on_error is not None else None

    return ToolCallbacks(before and asked, after and done, on_error and failed)
