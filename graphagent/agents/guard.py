"""What looks at a model's request before it is paid for: it may be shortened, or made anew from a fresh summary.

A model node asks for a `ContextGuard`; `runner` supplies one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol

from graphagent.agents.invocation import Invocation
from graphagent.agents.model import Model, ModelRequest
from graphagent.agents.projector import NONE_AHEAD, Projected
from graphagent.ledger import Summary
from graphagent.messages import Message


class PendingCall(NamedTuple):
    """A request that is about to be sent. `history`: the messages of the state, without instructions and what the node
    adds; `first`: no model was called before in this turn; `projected`: what the history began with, None if it isn't
    known; `replaceable`: whether another projection may take the place of the history, with nothing lost or brought
    back: True if all of it comes from the session, and no other activation adds to it."""

    request: ModelRequest
    history: tuple[Message, ...]
    model: Model
    first: bool
    projected: Projected | None
    replaceable: Callable[[], Awaitable[bool]]


class Guarded(NamedTuple):
    """What a guard decides. `anew`: the projector is asked again, since a summary covers more now; what it says takes
    the place of the state's messages, in one write. `notes`: plain data that say what was done and why, kept with the
    event of the model's answer. `ahead`: summaries by key that were made and could not be stored: this run goes by
    them."""

    anew: bool = False
    notes: tuple[Mapping[str, Any], ...] = ()
    ahead: Mapping[str, Summary] = NONE_AHEAD


class Shortened(NamedTuple):
    """The history as it is sent. `events`: ids of those whose messages are cut in it; `notes`: as in `Guarded`."""

    messages: tuple[Message, ...]
    events: frozenset[str] = frozenset()
    notes: tuple[Mapping[str, Any], ...] = ()


class ContextGuard(Protocol):
    """Keeps requests within what a model can take. It never raises for want of a summary or a store: then the request
    goes out as it is."""

    async def before_call(self, invocation: Invocation, call: PendingCall) -> Guarded:
        """Look at a request, once per call, before anything is done about it."""
        ...

    def shortened(
        self, messages: tuple[Message, ...], events: Mapping[str, str], offered: Collection[str]
    ) -> Shortened:
        """The history as it is sent: results that are too long are cut, in this request only; the very same where none
        is. `events`: by call id, the id of the event that has its result; `offered`: the names of the tools."""
        ...
