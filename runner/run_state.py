"""A run that is going on: how its reader, `cancel` and `status` reach it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import anyio

from graphagent.agents.agent import Agent
from graphagent.agents.invocation import RunOptions
from graphagent.engine.channel import Channel
from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message

BUFFER = 256
"""Events that may be ahead of the reader; then the run waits for it."""

Phase = Literal["waiting", "running"]


class RunStatus(NamedTuple):
    """What is known of a run that has not ended. `phase`: it `waits` for its session, or it is `running`. Times are
    seconds since the epoch; `last_event_at` is None before the first event."""

    request_id: str
    session: SessionKey
    phase: Phase
    agent: str
    invocation_id: str
    started_at: float
    last_event_at: float | None
    event_count: int


@dataclass(slots=True, eq=False)
class RunState:
    """One call of `Runner.run`. `begun`: the user's message is stored, so that from here on the end is an event."""

    request_id: str
    key: SessionKey
    said: tuple[Message, ...]
    options: RunOptions
    channel: Channel[Event] = field(default_factory=lambda: Channel[Event](BUFFER))
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)
    started_at: float = field(default_factory=time.time)
    phase: Phase = "waiting"
    agent: Agent | None = None
    invocation_id: str = ""
    last_event_at: float | None = None
    event_count: int = 0
    begun: bool = False
    cancelled: str = ""
    stop_after_step: bool = False
    error: Exception | None = None
    queued: list[Message] = field(default_factory=list)

    def cancel(self, reason: str) -> None:
        """End it now; the first reason stands."""
        self.cancelled = self.cancelled or reason
        self.scope.cancel()

    def status(self) -> RunStatus:
        """A picture of it."""
        return RunStatus(
            self.request_id,
            self.key,
            self.phase,
            "" if self.agent is None else self.agent.name,
            self.invocation_id,
            self.started_at,
            self.last_event_at,
            self.event_count,
        )

    async def send(self, event: Event) -> None:
        """Hand an event to the reader, waiting while it is behind; one that has left gets nothing."""
        if await self.channel.room():
            self.channel.add((event,))

    def send_last(self, event: Event) -> None:
        """Hand over an event of the end, however far behind the reader is: nothing waits for it any more."""
        if not self.channel.left:
            self.channel.add((event,))
