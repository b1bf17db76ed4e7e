"""The port that an agent fills."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol, runtime_checkable

from graphagent.agents.invocation import Invocation
from graphagent.ledger import Event


@runtime_checkable
class Agent(Protocol):
    """Someone who acts on an invocation and tells of it in events.

    What an agent need not have: `on_append_failure`: with `continue` a run under a Runner goes on when one of its
    events could not be stored; else that event's activation fails. `projector`: a `Projector` of its own, None for that
    of the services around the run.
    """

    name: str
    description: str

    @property
    def sub_agents(self) -> Sequence[Agent]:
        """The agents it may hand over to."""
        ...

    def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        """The events of one run, partial ones included; the last one is final. Raises nothing that the run itself
        brings about: a failure is an event with an error."""
        ...
