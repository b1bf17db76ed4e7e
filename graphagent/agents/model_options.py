"""How a model node calls its model: limits, and who looks on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphagent.agents.model import ModelRequest, Reply
from graphagent.engine.context import NodeContext
from graphagent.errors import AgentError, ModelError


@dataclass(frozen=True, slots=True)
class ModelCallbacks:
    """Functions, sync or async, around a call of a model.

    `before(request, ctx)`: a ModelRequest replaces the request, for the callbacks after it too; a Reply stands for the
    call. `after(reply, ctx)`: a Reply replaces the model's. `on_error(error, request, ctx)`: a Reply recovers. The
    first of several that gives a Reply is the last that is called. What they raise fails the node.
    """

    before: Callable[[ModelRequest, NodeContext], Any] | None = None
    after: Callable[[Reply, NodeContext], Any] | None = None
    on_error: Callable[[ModelError, ModelRequest, NodeContext], Any] | None = None


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds of one turn of a model node. `model_calls`: calls of the model; one more raises StopAgent. `tool_rounds`:
    rounds of tool calls that it may ask for; one more raises LimitReached. `final`: on the last call that is allowed
    this text is put after the messages and no tools are offered, so that the turn ends with an answer instead."""

    model_calls: int | None = None
    tool_rounds: int | None = None
    final: str | None = None

    def __post_init__(self) -> None:
        for name in ("model_calls", "tool_rounds"):
            value = getattr(self, name)
            if value is not None and value < (1 if name == "model_calls" else 0):
                raise AgentError(f"{name} is {value}; it has to be a count, or None for no limit")

    @property
    def most_calls(self) -> int | None:
        """Calls of the model that a turn can have at most, or None."""
        bounds = [self.model_calls, None if self.tool_rounds is None else self.tool_rounds + 1]
        return min((bound for bound in bounds if bound is not None), default=None)

    def last(self, calls: int, rounds: int) -> bool:
        """True if the call after so many, in this turn, is the last that can end it with an answer."""
        return (self.model_calls is not None and calls + 1 >= self.model_calls) or (
            self.tool_rounds is not None and rounds >= self.tool_rounds
        )


NO_LIMITS = CallLimits()
