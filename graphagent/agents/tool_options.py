"""How a round of tool calls is run: side by side or in turn, who is asked, who looks on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from graphagent.agents.tool import Decision, Tool, ToolContext, ToolResult
from graphagent.errors import AgentError
from graphagent.graph.policies import RetryPolicy
from graphagent.messages import ToolCall

if TYPE_CHECKING:
    from graphagent.agents.tool_runner import ToolRound

Permission = Callable[[ToolCall, Tool], Decision | Awaitable[Decision]]
"""Whether a call may go on; sync or async."""

TRANSIENT: tuple[type[BaseException], ...] = (ConnectionError, TimeoutError, EOFError)
"""Errors of a tool that another attempt may mend: what `retry_on` of a tool's policy usually is."""


class Approval(BaseModel):
    """A person's answer to a call that needs approval; a bare bool says the same without the rest. `arguments`: run it
    with these instead."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    approved: bool
    reason: str = ""
    arguments: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolCallbacks:
    """Functions, sync or async, around a tool call.

    `before(call, context)`: a `ToolCall` changes the arguments, any other result than None stands for running the tool.
    It runs before anybody is asked for approval, and runs again when the node does. `after(call, context, result)`: a
    result other than None replaces the tool's, also a failed one's; what it returns is recorded with the call.
    `on_error(call, context, error)`: when the last attempt has failed; a result other than None stands for the tool's.
    The first of several that gives a result is the last that is called. What they raise is told to the model.
    """

    before: Callable[[ToolCall, ToolContext], Any] | None = None
    after: Callable[[ToolCall, ToolContext, ToolResult], Any] | None = None
    on_error: Callable[[ToolCall, ToolContext, Exception], Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """Tools of which at most `limit` calls of a round run at the same time, such as those of one rate-limited API."""

    names: tuple[str, ...]
    limit: int = 1


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """Options of a round of tool calls.

    `parallel`: all at once, at most `max_concurrency`, and of each of `groups` at most its limit. `retry`: for tools
    without a policy of their own. `permission`: asked for each call that would run; on `ask` a person is asked (an
    interrupt), or with `ask="result"` the model is told that approval is required. `deferred`: calls that are not run
    here, as those of external tools. `on_cancelled`: awaited with what the round has, should it be cut off: results of
    calls that had ended, and a `cancelled` one for each other.
    """

    parallel: bool = False
    max_concurrency: int | None = None
    groups: tuple[ToolGroup, ...] = ()
    retry: RetryPolicy | None = None
    callbacks: tuple[ToolCallbacks, ...] = ()
    permission: Permission | None = None
    ask: Literal["interrupt", "result"] = "interrupt"
    deferred: Callable[[ToolCall], bool] | None = None
    on_cancelled: Callable[[ToolRound], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        if self.max_concurrency is not None and self.max_concurrency < 1:
            raise AgentError(f"max_concurrency is {self.max_concurrency}; it has to be 1 or more, or None for no limit")
        seen: set[str] = set()
        for group in self.groups:
            if group.limit < 1:
                raise AgentError(f"the tool group {group.names} has limit {group.limit}; it has to be 1 or more")
            twice = seen.intersection(group.names)
            if twice:
                raise AgentError(f"tool '{min(twice)}' is in two groups; a tool waits for one limit of its own only")
            seen.update(group.names)


DEFAULT_OPTIONS = ToolOptions()
