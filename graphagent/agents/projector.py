"""What a model node asks for: the messages that a model sees, made from the session. `processors` supplies one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from graphagent.agents.invocation import Invocation
from graphagent.ledger import Event, Summary
from graphagent.messages import Message
from graphagent.model_view import Span

NONE_AHEAD: Mapping[str, Summary] = {}


class Projector(Protocol):
    """Makes a request's messages from a session, without changing it."""

    async def messages(self, invocation: Invocation) -> tuple[Message, ...]:
        """History, summary and recalled evidence as messages, the current user message always among them. Instructions
        are not in it: they are the model node's own."""
        ...


class Projected(NamedTuple):
    """Messages, and what became of each event of the session that they were made from, in order. `covered`: the number
    of the last event that a summary stands for, 0 if none does; `resumed`: some that it covers are there all the same,
    for the model to go on from."""

    messages: tuple[Message, ...]
    spans: tuple[Span, ...]
    covered: int = 0
    resumed: bool = False


@runtime_checkable
class TellingProjector(Projector, Protocol):
    """A projector that can say why a model sees what it sees; what it says is kept with the model's answers."""

    async def projected(self, invocation: Invocation, ahead: Mapping[str, Summary] = NONE_AHEAD) -> Projected:
        """The same messages, with what became of the events. `ahead`: summaries by key that count instead of stored
        ones."""
        ...


@dataclass(slots=True)
class Begun:
    """How a run of an agent began. `projected`: None if it began in another process. `base`: the event that has the
    spans. `earlier`: the run's events before it went on from a checkpoint."""

    projected: Projected | None
    base: str = ""
    earlier: tuple[Event, ...] = ()


def projector_of(invocation: Invocation) -> Projector | None:
    """The agent's own projector, else that of the services around the run; None without a session to project."""
    if invocation.session is None:
        return None
    own: Projector | None = getattr(invocation.agent, "projector", None)
    return own or invocation.services.projector
