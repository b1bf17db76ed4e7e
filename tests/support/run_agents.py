"""Agents and services for tests of the Runner: agents that do as they are told, sessions that fail as they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from graphagent import Message
from graphagent.agents.invocation import Invocation, RunOptions
from graphagent.ledger import Event, Session, SessionKey
from runner import Runner
from runner.outcome import OUTCOME
from runner.sessions import InMemorySessions

Body = Callable[[Invocation], AsyncIterator[Event]]
APP, USER, SESSION = "app", "ann", "s1"
KEY = SessionKey(APP, USER, SESSION)


class Told:
    """An agent whose run is a function, or a list of events that it tells in each run, from the second on as others."""

    description = ""
    sub_agents: Any = ()

    def __init__(self, body: Body | Iterable[Event], name: str = "agent", **fields: Any) -> None:
        self.name = name
        self.invocations: list[Invocation] = []
        self._body = body
        vars(self).update(fields)

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        """The events that it was told to tell."""
        self.invocations.append(invocation)
        if callable(self._body):
            async for event in self._body(invocation):
                yield event
        else:
            for event in self._body:
                yield event if len(self.invocations) == 1 else event.clone()


class Sessions(InMemorySessions):
    """Sessions whose appends fail where `fails(event, attempt)` is true; `attempts` has every one that was made."""

    def __init__(self, fails: Callable[[Event, int], bool] = lambda event, attempt: False) -> None:
        super().__init__()
        self.fails = fails
        self.attempts: list[Event] = []

    async def append(self, key: SessionKey, event: Event) -> Event:
        """Append, or fail as a database does that is gone."""
        self.attempts.append(event)
        if self.fails(event, sum(one.id == event.id for one in self.attempts)):
            raise ConnectionError("the database is gone")
        return await super().append(key, event)


def says(text: str, **fields: Any) -> Event:
    """A complete answer."""
    return Event(messages=(Message.assistant(text),), **fields)


def piece(text: str, **fields: Any) -> Event:
    """A piece of an answer."""
    return Event(delta=text, partial=True, **fields)


async def all_of(runner: Runner, said: Any = "hello", session: str = SESSION, **options: Any) -> list[Event]:
    """The events of a run."""
    return [event async for event in runner.run(USER, session, said, RunOptions(**options))]


async def stored(runner: Runner, session: str = SESSION) -> Session:
    """The session as the service has it."""
    found = await runner.sessions.get(SessionKey(APP, USER, session))
    assert found is not None
    return found


async def texts(runner: Runner, session: str = SESSION) -> list[tuple[str, str]]:
    """Author and text of what is stored."""
    return [(event.author, event.text) for event in (await stored(runner, session)).events]


def outcome(events: list[Event]) -> str:
    """How a run ended, by its completion, of which there is one, at the end."""
    assert [event.kind for event in events].count("completion") == 1
    assert events[-1].kind == "completion"
    return str(events[-1].extensions[OUTCOME])
