"""What looks at a model's request before it is paid for: it may be shortened, or made anew from a fresh summary.

A model node asks for a `ContextGuard`; `runner` supplies one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from graphagent.agents.invocation import Invocation
from graphagent.agents.model import Model, ModelRequest
from graphagent.messages import Message


class PendingCall(NamedTuple):
    """A request that is about to be sent. `history`: the messages of the state, without instructions and what the node
    adds; `first`: no model was called before in this turn."""

    request: ModelRequest
    history: tuple[Message, ...]
    model: Model
    first: bool


class Guarded(NamedTuple):
    """What a guard decides. `anew`: the projector is asked again, since a summary covers more now; what it says takes
    the place of the state's messages, in one write. `notes`: plain data that say what was done and why, kept with the
    event of the model's answer."""

    anew: bool = False
    notes: tuple[Mapping[str, Any], ...] = ()


class ContextGuard(Protocol):
    """Keeps requests within what a model can take. It never raises for want of a summary or a store: then the request
    goes out as it is."""

    async def before_call(self, invocation: Invocation, call: PendingCall) -> Guarded:
        """Look at a request, once per call, before anything is done about it."""
        ...

    def shortened(
        self, invocation: Invocation, messages: tuple[Message, ...], events: Mapping[str, str]
    ) -> tuple[Message, ...]:
        """The history as it is sent: results that are too long are cut, in this request only; the very same where none
        is. `events`: by call id, the id of the event that has its result."""
        ...
