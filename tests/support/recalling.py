"""Sessions whose search answers as it is told, and calls of the recall tools without a model."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, cast

from graphagent.agents.invocation import Invocation, Services
from graphagent.agents.tool import ToolContext
from graphagent.ledger import Boundary, Event, Session, SessionKey, Summary
from graphagent.messages import Message
from graphagent.services import SessionHit, SessionQuery, SessionService
from runner.recall import SessionRecall
from runner.sessions import InMemorySessions

APP, USER = "app", "ann"
KEY = SessionKey(APP, USER, "s1")
Answer = Callable[[SessionQuery], Sequence[SessionHit]]


class Canned(InMemorySessions):
    """Sessions in memory whose search is a function; `queries` has what it was asked."""

    def __init__(self, answer: Answer = lambda query: ()) -> None:
        super().__init__()
        self.answer = answer
        self.queries: list[SessionQuery] = []

    async def search(self, app: str, user: str, query: SessionQuery) -> list[SessionHit]:
        """What the function says."""
        self.queries.append(query)
        return list(self.answer(query))


class Bot:
    """An agent that is only asked for its name."""

    name, description = "bot", ""
    sub_agents: Any = ()

    async def run(self, invocation: Invocation) -> AsyncIterator[Event]:
        """Says nothing."""
        yield Event(author=self.name)


def said(id: str, text: str, *, role: str = "user", at: float = 0.0, key: str = APP, **fields: Any) -> Event:
    """Something that was said. `at`: seconds since the epoch; `key`: its filter key."""
    message = Message(role=cast(Any, role), content=text)
    return Event(id=id, author=role, messages=(message,), timestamp=at, filter_key=key, **fields)


def result(id: str, call: str, text: str, *, name: str = "look", **fields: Any) -> Event:
    """What a tool returned."""
    message = Message.tool(text, call, name=name)
    return Event(id=id, kind="tool_result", author="bot", messages=(message,), filter_key=APP, **fields)


def hit(event: Event, score: float = 0.5, key: SessionKey = KEY) -> SessionHit:
    """A hit of a search."""
    return SessionHit(key, event, score)


def summary(seq: int, key: str = APP, **boundary: Any) -> Summary:
    """A summary of a filter key that covers up to an event's number."""
    return Summary(text="Long ago.", boundary=Boundary(filter_key=key, seq=seq, **boundary), updated_at=1.0)


async def stored(
    sessions: SessionService, events: Iterable[Event], key: SessionKey = KEY, *, covered: int = 0, under: str = APP
) -> list[Event]:
    """Make a session with these events, of which a summary under a filter key covers so many; they as stored."""
    await sessions.create(*key)
    found = [await sessions.append(key, event) for event in events]
    if covered:
        assert await sessions.put_summary(key, under, summary(found[covered - 1].seq, under), after=None)
    return found


async def invocation(sessions: SessionService, asked: str = "", key: SessionKey = KEY, **fields: Any) -> Invocation:
    """A run of an agent in a session."""
    message = Message.user(asked) if asked else None
    values = {"filter_key": APP, "services": Services(sessions=sessions), **fields}
    return Invocation(Bot(), message, await sessions.get(key), **values)


async def use(tool: str, run: Invocation | None, recall: SessionRecall | None = None, **arguments: Any) -> Any:
    """What a recall tool returns to a call with these arguments."""
    found = {one.spec.name: one for one in await (recall or SessionRecall()).tools()}
    return await found[tool].call(arguments, ToolContext("c1", tool, cast(Any, None), run))


def digest(session: Session | None) -> str:
    """A hash of all that a session holds."""
    assert session is not None
    return hashlib.sha256(session.model_dump_json().encode()).hexdigest()
