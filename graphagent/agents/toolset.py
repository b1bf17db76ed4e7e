"""Tools of an agent, put together from single tools, functions, and sets of tools."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, cast

from graphagent.agents.function_tool import tool
from graphagent.agents.model import ToolSpec
from graphagent.agents.tool import Asking, OfferingToolSet, Tool, ToolContext, ToolSet
from graphagent.errors import AgentError

ToolLike = Tool | ToolSet | Callable[..., Any]
"""What an agent's list of tools may hold; a function is made a tool as `@tool` does."""


class ToolList:
    """A set of tools that doesn't change."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]], *, name: str = "") -> None:
        self.name = name
        self._tools = tuple(_single(item) for item in tools)

    async def tools(self) -> Sequence[Tool]:
        """The tools."""
        return self._tools

    async def aclose(self) -> None:
        """Nothing is open."""


class FilteredTools:
    """Those tools of a set whose own names (before any prefix) fit one of the patterns `include`, if there are any, and
    none of `exclude`. Patterns are those of file names: `read_*`."""

    def __init__(self, source: ToolSet, *, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        self._source = source
        self._include = tuple(include)
        self._exclude = tuple(exclude)

    @property
    def name(self) -> str:
        """The name of the set."""
        return self._source.name

    async def tools(self) -> Sequence[Tool]:
        """The tools that fit."""
        return [one for one in await self._source.tools() if self._fits(one.spec.name)]

    async def offered(self, asking: Asking) -> Sequence[Tool]:
        """Those that fit, of what the set behind offers in a request."""
        return [one for one in await _of_set(self._source, asking) if self._fits(one.spec.name)]

    def overview(self, names: Collection[str]) -> str:
        """What the set behind says of the tools that are there."""
        return self._source.overview(names) if isinstance(self._source, OfferingToolSet) else ""

    async def aclose(self) -> None:
        """Close the set behind."""
        await self._source.aclose()

    def _fits(self, name: str) -> bool:
        included = not self._include or any(fnmatchcase(name, pattern) for pattern in self._include)
        return included and not any(fnmatchcase(name, pattern) for pattern in self._exclude)


@dataclass(frozen=True)
class PrefixedTool:
    """A tool under a longer name; all else is that of the tool behind."""

    source: Tool
    spec: ToolSpec

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the tool behind."""
        return await self.source.call(arguments, context)


async def gather_tools(
    items: Iterable[ToolLike], *, visible: Callable[[str], bool] | None = None, asking: Asking | None = None
) -> tuple[Tool, ...]:
    """The tools as they are now, those of named sets under `<set>_<tool>`; `visible` says by name which a model may
    see, `asking` for which request they are (None: all that may ever be called). Raises AgentError if two have one
    name, and what a set raises that can't list its tools."""
    found: dict[str, Tool] = {}
    for item in items:
        for one in await _several(item, asking):
            name = one.spec.name
            if name in found:
                raise AgentError(
                    f"two tools are called '{name}'; pass another name to one of them, or give its tool set a name"
                )
            found[name] = one
    return _visible(tuple(found.values()), visible)


def _visible(tools: tuple[Tool, ...], visible: Callable[[str], bool] | None) -> tuple[Tool, ...]:
    return tools if visible is None else tuple(one for one in tools if visible(one.spec.name))


class NodeTools:
    """The tools of a node. What can't change, a list without sets, is put together once."""

    def __init__(self, items: Iterable[ToolLike]) -> None:
        self._items = tuple(items)
        self._found: tuple[Tool, ...] | None = None
        self._telling = tuple(item for item in self._items if isinstance(item, OfferingToolSet))

    def overview(self, tools: Sequence[Tool]) -> str:
        """What the sets say of those of their tools that are in a request, for its instruction."""
        if not self._telling or not tools:
            return ""
        names = {one.spec.name for one in tools}
        return "\n\n".join(text for item in self._telling if (text := item.overview(names)))

    async def now(self, visible: Callable[[str], bool] | None = None, asking: Asking | None = None) -> tuple[Tool, ...]:
        """What `gather_tools` gives, or raises."""
        found = self._found
        if found is None:
            found = await gather_tools(self._items, asking=asking)
            if not any(hasattr(item, "tools") for item in self._items):
                self._found = found
        return _visible(found, visible)


def with_additional(tools: Sequence[Tool], additional: Iterable[Tool]) -> tuple[Tool, ...]:
    """Tools and more of them, as for one run; of two with one name the first counts."""
    found = {one.spec.name: one for one in tools}
    for one in additional:
        found.setdefault(one.spec.name, one)
    return tuple(found.values())


async def _several(item: ToolLike, asking: Asking | None) -> Sequence[Tool]:
    if not hasattr(item, "tools"):
        return [_single(cast(Tool, item))]
    source = cast(ToolSet, item)
    tools = await _of_set(source, asking)
    if not source.name:
        return tools
    return [cast(Tool, PrefixedTool(one, replace(one.spec, name=f"{source.name}_{one.spec.name}"))) for one in tools]


async def _of_set(source: ToolSet, asking: Asking | None) -> Sequence[Tool]:
    if asking is not None and isinstance(source, OfferingToolSet):
        return await source.offered(asking)
    return await source.tools()


def _single(item: Tool | Callable[..., Any]) -> Tool:
    if hasattr(item, "spec"):
        return cast(Tool, item)
    if callable(item):
        return tool(item)
    raise AgentError(f"{item!r:.80} is no tool: pass a function, a tool, or a tool set")
