"""What looks at a model's request before it is paid for: it may be shortened, or made anew from a fresh summary.

A model node asks for a `ContextGuard`; `runner` supplies one.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from graphagent.agents.invocation import Invocation
from graphagent.agents.model import Model, ModelRequest
from graphagent.messages import Message


class PendingCall(NamedTuple):
    """A request that is about to be sent. `history`: the messages of the state, without instructions and what the node
    adds; `first`: no model was called before in this run of the agent."""

    request: ModelRequest
    history: tuple[Message, ...]
    model: Model
    first: bool


class Guarded(NamedTuple):
    """What a guard decides. `history`: takes the place of the state's messages, from now on (None: they stay).
    `messages`: takes the place of the request's history in this one request, and is not kept (None: none does).
    `notes`: plain data that say what was done and why, kept with the event of the model's answer."""

    history: tuple[Message, ...] | None = None
    messages: tuple[Message, ...] | None = None
    notes: tuple[dict[str, object], ...] = ()


class ContextGuard(Protocol):
    """Keeps requests within what a model can take. It never raises for want of a summary or a store: then the request
    goes out as it is."""

    async def before_call(self, invocation: Invocation, call: PendingCall) -> Guarded:
        """Look at a request. An empty answer sends it as it is."""
        ...
