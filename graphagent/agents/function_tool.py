"""Functions as tools: `@tool`."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, TypedDict, Unpack, cast, overload

import anyio.to_thread

from graphagent.agents.arguments import Arguments
from graphagent.agents.model import ToolSpec
from graphagent.agents.pieces import Pieces
from graphagent.agents.tool import ToolContext
from graphagent.engine.context import NodeContext, SyncContext
from graphagent.errors import AgentError, ToolError
from graphagent.graph.policies import RetryPolicy
from graphagent.graph.signature import is_async

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What providers take as the name of a tool."""
DELTA = "tool_delta"
"""Kind of the custom event that brings a piece of a streaming tool: `call_id`, `name`, `delta`."""

Way = Literal["async", "async pieces", "pieces", "thread"]


class ToolTraits(TypedDict, total=False):
    """Options of a tool, all of them optional.

    `name`, `description`: instead of those of the function. `needs_approval`, `external`, `ends_turn`, `reentrant`,
    `retry`, `timeout`: see `graphagent.agents.tool.Tool`.
    """

    name: str
    description: str
    external: bool
    needs_approval: bool
    ends_turn: bool
    reentrant: bool
    retry: RetryPolicy | None
    timeout: float | None


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function that a model can call. A sync one runs in a worker thread. A generator, sync or async, streams: its
    pieces go out as they come, and the result is what they are together (see `Pieces`)."""

    spec: ToolSpec
    fn: Callable[..., Any]
    arguments: Arguments
    _: KW_ONLY
    external: bool = False
    needs_approval: bool = False
    ends_turn: bool = False
    reentrant: bool = False
    retry: RetryPolicy | None = None
    timeout: float | None = None
    way: Way = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "way", _way(self.fn))

    def check(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with arguments, or None."""
        try:
            self.arguments.parsed(arguments)
        except ToolError as error:
            return str(error)
        return None

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """The function's result. Raises ToolError for arguments that don't fit, else what the function raises."""
        parsed = self.arguments.parsed(arguments)
        if self.way == "async":
            return await self.arguments.call(self.fn, parsed, context)
        call = functools.partial(self.arguments.call, self.fn, parsed)
        if self.way == "async pieces":
            return await _streamed(call(context), context)
        threaded = replace(context, node=SyncContext(cast(NodeContext, context.node), threaded=True))
        if self.way == "pieces":
            return await _streamed(_in_thread(call(threaded)), context)
        return await anyio.to_thread.run_sync(call, threaded)


@overload
def tool(fn: Callable[..., Any], /, **traits: Unpack[ToolTraits]) -> FunctionTool:
    """`@tool`, or `tool(fn, name="look")`."""


@overload
def tool(**traits: Unpack[ToolTraits]) -> Callable[[Callable[..., Any]], FunctionTool]:
    """`@tool(needs_approval=True)`."""


def tool(fn: Callable[..., Any] | None = None, /, **traits: Unpack[ToolTraits]) -> Any:
    """Make a tool of a function: `@tool`, `@tool(needs_approval=True)` or `tool(fn, name="look")`.

    Name, description and parameters are read off the function: type hints become the JSON schema, a parameter without
    a default is required, descriptions come from `Annotated[..., Field(description=...)]` or the docstring. A
    parameter that is annotated `ToolContext`, or named `ctx`, gets the context of the call. Raises AgentError.
    """
    if fn is None:
        return functools.partial(tool, **traits)
    options: dict[str, Any] = dict(traits)
    name = options.pop("name", None) or _name(fn)
    if not NAME.fullmatch(name):
        raise AgentError(f"'{name}' is no name for a tool: 1 to 64 letters, digits, '_' and '-'; pass name=...")
    arguments = Arguments(fn, name)
    description = options.pop("description", None)
    spec = ToolSpec(name, arguments.description if description is None else description, arguments.schema)
    return FunctionTool(spec, fn, arguments, **options)


def _name(fn: Callable[..., Any]) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__name__", type(fn).__name__))


def _way(fn: Callable[..., Any]) -> Way:
    """How a function is called, which is read off it once."""
    if _generates(fn, inspect.isasyncgenfunction):
        return "async pieces"
    if is_async(fn):
        return "async"
    return "pieces" if _generates(fn, inspect.isgeneratorfunction) else "thread"


def _generates(fn: Callable[..., Any], judge: Callable[[Any], bool]) -> bool:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return judge(fn) or (not inspect.isroutine(fn) and judge(type(fn).__call__))


async def _streamed(pieces: AsyncGenerator[Any, None], context: ToolContext) -> Any:
    """Send each piece as it comes; what they are together."""
    node = cast(NodeContext, context.node)
    together = Pieces()
    async with aclosing(pieces):
        async for piece in pieces:
            if together.add(piece):
                await node.emit(DELTA, {"call_id": context.call_id, "name": context.name, "delta": piece})
    return together.result


_END = object()


async def _in_thread(pieces: Generator[Any, None, None]) -> AsyncGenerator[Any, None]:
    """A sync generator, each piece made in a worker thread."""
    try:
        while (piece := await anyio.to_thread.run_sync(next, pieces, _END)) is not _END:
            yield piece
    finally:
        pieces.close()
