"""The port that a tool fills, and what a tool may know of the call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from graphagent.agents.model import ToolSpec

if TYPE_CHECKING:
    from graphagent.agents.invocation import Invocation
    from graphagent.engine.context import NodeContext, SyncContext


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know and do: `call_id`, `invocation` (session, services, state), and `node`, the context of
    this one call inside its node (questions, effects, progress; plain calls for a sync function)."""

    call_id: str
    name: str
    node: NodeContext | SyncContext
    invocation: Invocation | None = None
    state_delta: dict[str, Any] = field(default_factory=dict)  # goes into the session's state with the result


@runtime_checkable
class Tool(Protocol):
    """Something a model can call.

    `spec`: how the model sees it. `external`: shown to the model, never run here; the run ends and takes the result
    as a later tool message. `needs_approval`: a person is asked first. `ends_turn`: the agent's turn ends with its
    result, unless that is an error.

    What a tool need not have: `reentrant` (bool): it may be called again, after a crash in the middle of a call or
    when a question that it put through `context.node` has been answered; any other tool may not ask, and a call of it
    whose outcome is unknown is never repeated. `retry` (RetryPolicy) and `timeout` (seconds) of one attempt.
    `check(arguments)`: what is wrong with arguments, or None, before anybody is asked for approval.
    """

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        ...

    @property
    def external(self) -> bool:
        """True if somebody else runs it."""
        ...

    @property
    def needs_approval(self) -> bool:
        """True if a person is asked before every call."""
        ...

    @property
    def ends_turn(self) -> bool:
        """True if the model is not called again after it."""
        ...

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """The result: anything JSON-able, or a `ToolResult`. Whatever it raises is told to the model; StopAgent ends
        the run."""
        ...


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result with more than content. `content`: JSON-able; text stands as it is. `state_delta`: JSON-able, into the
    session's state; `transfer`: the agent that takes over, `asked`: what it is to do (empty: what was asked at first);
    `error`: the content says what went wrong; `skip_summarization`: the agent's turn ends with it."""

    content: Any
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    transfer: str | None = None
    error: bool = False
    skip_summarization: bool = False
    asked: str = ""


class ToolSet(Protocol):
    """Tools that come from elsewhere, such as an MCP server. With a name, theirs are prefixed `<name>_`."""

    name: str

    async def tools(self) -> Sequence[Tool]:
        """The tools as they are now."""
        ...

    async def aclose(self) -> None:
        """Close connections; harmless twice."""
        ...


class Asking(NamedTuple):
    """The request that tools are offered in. `structured`: its answer has to satisfy an output schema."""

    invocation: Invocation | None
    structured: bool = False


@runtime_checkable
class OfferingToolSet(ToolSet, Protocol):
    """A set of tools that depend on what is around a run, such as on what its services can do. `tools` gives all that
    may ever be called; in a request are those that `offered` gives."""

    async def offered(self, asking: Asking) -> Sequence[Tool]:
        """The tools for a request."""
        ...

    def overview(self, names: Collection[str]) -> str:
        """What the model's instruction says of the set's tools; empty: nothing. `names`: all tools in the request."""
        ...


Decision = Literal["allow", "deny", "ask"]
