"""Conversations with an agent: a session, a store for checkpoints, and turns, without a Runner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphagent import GraphAgent, Message
from graphagent.agents import Invocation, RunOptions, Services, session_lineage
from graphagent.ledger import Event, Session, SessionKey
from runner.sessions import InMemorySessions

KEY = SessionKey("app", "ann", "s1")


@dataclass
class Talk:
    """A conversation with an agent. `checkpoints`: None takes none. `sessions`: where it is kept. `said_id`: of the
    events of what the person says; None makes one for each."""

    agent: Any
    checkpoints: Any = None
    sessions: Any = field(default_factory=InMemorySessions)
    projector: Any = None
    key: Any = KEY
    said_id: str | None = None

    async def session(self) -> Session:
        """The session as it is now."""
        self.key = SessionKey(*self.key)
        found = await self.sessions.get(self.key)
        return found or await self.sessions.create(*self.key)

    async def invocation(self, said: str | Message | None, **options: Any) -> Invocation:
        """An invocation as a Runner makes it; what the person says is stored."""
        message = Message.user(said) if isinstance(said, str) else said
        session = await self.session()
        if message is not None and options.get("answers") is None:
            said_id = {} if self.said_id is None else {"id": self.said_id}
            told = Event(author="user", messages=(message,), filter_key=self.key.app, branch=self.agent.name, **said_id)
            await self.sessions.append(self.key, told)
            session = await self.session()
        return Invocation(
            self.agent,
            message,
            session,
            branch=self.agent.name,
            filter_key=self.key.app,
            options=RunOptions(**options),
            services=Services(self.sessions, checkpoints=self.checkpoints, projector=self.projector),
            persist=self.persist,
        )

    async def persist(self, event: Event) -> None:
        """Store an event."""
        await self.sessions.append(self.key, event)

    async def say(self, said: str | Message | None, **options: Any) -> list[Event]:
        """The events of a turn."""
        return [event async for event in self.agent.run(await self.invocation(said, **options))]

    async def answer(self, **answers: Any) -> list[Event]:
        """The events of a run that goes on with answers."""
        return await self.say(None, answers=answers)

    @property
    def lineage(self) -> str:
        """The lineage of its runs."""
        return session_lineage(self.key)

    async def state(self) -> Any:
        """The state of the agent's graph at its newest checkpoint."""
        agent: GraphAgent = self.agent
        return await agent.executor(self.checkpoints).state(self.lineage, namespace=agent.name)


def complete(events: list[Event]) -> list[Event]:
    """The events that are no pieces."""
    return [event for event in events if not event.partial]


def words(events: list[Event]) -> list[tuple[str, str]]:
    """Who said what, pieces left out."""
    return [(event.author, event.text) for event in complete(events) if event.text]


def asked(events: list[Event]) -> dict[str, str]:
    """The open questions at the end of a run: key -> path."""
    return {question["key"]: question["path"] for question in events[-1].interrupts}
