"""The tools with which a model keeps and looks up what is to be remembered about a user.

Source: spec/context, 17.4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from graphagent.agents.function_tool import tool
from graphagent.agents.tool import Asking, Tool, ToolContext
from graphagent.errors import ServiceError, ToolError, UsageError, alternatives
from graphagent.services import About, Memory, MemoryFilter, MemoryService
from runner.memory.dates import moment, period
from runner.memory.entries import KINDS

ToolName = Literal["memory_add", "memory_update", "memory_delete", "memory_clear", "memory_search", "memory_load"]
NAMES: tuple[str, ...] = get_args(ToolName)
AGENTIC = frozenset({"memory_add", "memory_update", "memory_search", "memory_load"})
"""What an agent is offered that keeps its memories itself."""
AUTO = frozenset({"memory_search"})
"""What it is offered if they are taken from what was said, after each run."""
MOST_HITS = 10
WORST = 0.15
"""The score of the worst hit that a model is shown: on LoCoMo's observations 10 hits hold the evidence of 76 in 100
questions with it, of 67 with the services' 0.3."""

_KIND = {"enum": list(KINDS)}
_WHEN = "When it happened, as an absolute date such as 2023-05-07; empty if that isn't known."
Topics = Annotated[Sequence[str], Field(description="Subjects that it belongs to, a word or two each.")]
Kind = Annotated[str, Field(json_schema_extra=_KIND, description="fact: stays true; episode: happened once.")]
When = Annotated[str, Field(description=_WHEN)]
Who = Annotated[Sequence[str], Field(description="Who was there.")]
Where = Annotated[str, Field(description="Where it was.")]
Bound = Annotated[str, Field(description="A date; empty: no bound. What has no date is found too.")]


class MemoryTools:
    """The memory tools as a tool set: `LLMAgent(..., tools=[MemoryTools()])`.

    They work on the memories of the invocation's own app and user, and are offered only where the run has a memory
    service. `auto`: memories are taken from what was said after each run (`Runner(extraction=...)`), so the agent only
    searches. `enable`: by name, which tools are there whatever `auto` says. Raises UsageError for a name that is none.
    """

    name = ""

    def __init__(self, *, auto: bool = False, enable: Mapping[ToolName, bool] | None = None) -> None:
        self._tools = memory_tools(auto=auto, enable=enable)

    async def tools(self) -> Sequence[Tool]:
        """The tools, whether or not there is a memory service."""
        return self._tools

    async def offered(self, asking: Asking) -> Sequence[Tool]:
        """The tools, if the run has a user and a memory service."""
        invocation = asking.invocation
        if asking.structured or invocation is None or invocation.session is None or invocation.services.memory is None:
            return ()
        return self._tools

    def overview(self, names: Collection[str]) -> str:
        """Nothing: the tools say themselves what they are for."""
        return ""

    async def aclose(self) -> None:
        """Nothing is open."""


def memory_tools(*, auto: bool = False, enable: Mapping[ToolName, bool] | None = None) -> tuple[Tool, ...]:
    """The tools alone, for a list of tools: those of `MemoryTools` with the same options, always offered."""
    wanted = dict(enable or {})
    for name in wanted:
        if name not in NAMES:
            raise UsageError(f"enable names '{name}', which is no memory tool: {alternatives(name, NAMES)}")
    standard = AUTO if auto else AGENTIC
    chosen = [make for name, make in _MAKERS.items() if wanted.get(name, name in standard)]
    return tuple(make() for make in chosen)


def _add_tool() -> Tool:
    async def memory_add(
        memory: Annotated[str, Field(description="One statement about the user, understandable by itself.")],
        ctx: ToolContext,
        *,
        topics: Topics = (),
        memory_kind: Kind = "fact",
        event_time: When = "",
        participants: Who = (),
        location: Where = "",
    ) -> dict[str, Any]:
        """Remember something about the user that will matter in later conversations."""
        service, app, user = _around(ctx)
        about: About = {
            "topics": topics,
            "kind": memory_kind or "fact",
            "event_time": _start(event_time, "event_time"),
            "participants": participants,
            "location": location.strip(),
        }
        return {"added": shown(await _told(service.add(app, user, memory.strip(), **about)))}

    return tool(memory_add, reentrant=True)


def _update_tool() -> Tool:
    async def memory_update(
        memory_id: str,
        memory: Annotated[str, Field(description="What it says from now on.")],
        ctx: ToolContext,
        *,
        topics: Topics = (),
        memory_kind: Annotated[str, Field(json_schema_extra={"enum": ["", *KINDS]})] = "",
        event_time: When = "",
        participants: Who = (),
        location: Where = "",
    ) -> dict[str, Any]:
        """Change a memory that is no longer right or complete; what is left out stays. Its id may change."""
        service, app, user = _around(ctx)
        given = {
            "topics": topics,
            "kind": memory_kind,
            "event_time": _start(event_time, "event_time"),
            "participants": participants,
            "location": location.strip(),
        }
        about: Any = {key: value for key, value in given.items() if value or value == 0.0}
        return {"updated": shown(await _told(service.update(app, user, memory_id.strip(), memory.strip(), **about)))}

    return tool(memory_update)


def _delete_tool() -> Tool:
    async def memory_delete(memory_id: str, ctx: ToolContext) -> dict[str, Any]:
        """Forget a memory that is wrong, or that the user wants forgotten."""
        service, app, user = _around(ctx)
        return {"id": memory_id, "deleted": await _told(service.delete(app, user, memory_id.strip()))}

    return tool(memory_delete, reentrant=True)


def _clear_tool() -> Tool:
    async def memory_clear(ctx: ToolContext) -> dict[str, Any]:
        """Forget everything about the user. Only if the user asks for it."""
        service, app, user = _around(ctx)
        return {"cleared": await _told(service.clear(app, user))}

    return tool(memory_clear, reentrant=True)


def _search_tool() -> Tool:
    async def memory_search(
        query: Annotated[str, Field(description="Names and words of what is to be found.")],
        ctx: ToolContext,
        *,
        memory_kind: Annotated[str, Field(json_schema_extra={"enum": ["", *KINDS]}, description="Empty: any.")] = "",
        time_after: Bound = "",
        time_before: Bound = "",
        limit: Annotated[int, Field(description=f"At most {MOST_HITS}.")] = MOST_HITS,
    ) -> dict[str, Any]:
        """Find what is remembered about the user, from all conversations."""
        service, app, user = _around(ctx)
        if memory_kind and memory_kind not in KINDS:
            raise ToolError(f"there are no memories of kind '{memory_kind}': {alternatives(memory_kind, KINDS)}")
        only = MemoryFilter(
            kind=memory_kind,
            fallback=bool(memory_kind),
            after=_start(time_after, "time_after"),
            before=None if not time_before.strip() else _period(time_before, "time_before")[1],
            distinct=True,
            min_score=WORST,
        )
        most = min(max(limit, 1), MOST_HITS)
        found = await _told(service.search(app, user, query, limit=most, only=only))
        return {"query": query, "results": [shown(one) for one in found], "count": len(found)}

    return tool(memory_search, reentrant=True)


def _load_tool() -> Tool:
    async def memory_load(ctx: ToolContext, limit: Annotated[int, Field(description="0: all.")] = 10) -> dict[str, Any]:
        """Read what is remembered about the user, the last changed first."""
        service, app, user = _around(ctx)
        found = await _told(service.load(app, user, limit=limit if limit > 0 else None))
        return {"results": [shown(one) for one in found], "count": len(found)}

    return tool(memory_load, reentrant=True)


_MAKERS: Mapping[ToolName, Callable[[], Tool]] = {
    "memory_add": _add_tool,
    "memory_update": _update_tool,
    "memory_delete": _delete_tool,
    "memory_clear": _clear_tool,
    "memory_search": _search_tool,
    "memory_load": _load_tool,
}


def shown(memory: Memory) -> dict[str, Any]:
    """A memory as a model reads it, without what it hasn't got."""
    data = {
        "id": memory.id,
        "memory": memory.text,
        "topics": list(memory.topics),
        "kind": memory.kind if memory.kind != "fact" else "",
        "event_time": "" if memory.event_time is None else moment(memory.event_time),
        "participants": list(memory.participants),
        "location": memory.location,
        "updated": moment(memory.updated_at),
        "score": round(memory.score, 3),
    }
    return {key: value for key, value in data.items() if value}


def _around(ctx: ToolContext) -> tuple[MemoryService, str, str]:
    """The memory service, and whose memories they are. Raises ToolError."""
    invocation = ctx.invocation
    if invocation is None or invocation.session is None:
        raise ToolError(f"'{ctx.name}' was called outside of a run in a session; whose memories are meant isn't known")
    if invocation.services.memory is None:
        raise ToolError(f"'{ctx.name}' was called in a run without a memory service; nothing is remembered")
    return invocation.services.memory, invocation.session.app, invocation.session.user


async def _told(call: Any) -> Any:
    """What a service returns; what is wrong with the request as an error that the model reads."""
    try:
        return await call
    except ServiceError as error:
        raise ToolError(str(error)) from error


def _period(text: str, field: str) -> tuple[float, float]:
    try:
        return period(text)
    except ValueError as error:
        raise ToolError(f"{field}: {error}") from error


def _start(text: str, field: str) -> float | None:
    return _period(text, field)[0] if text.strip() else None
