"""What the cases of the service suites share: opening services, expecting refusals, making events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from graphagent.ids import fresh_id
from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message


class _Closeable(Protocol):
    async def aclose(self) -> None: ...


C = TypeVar("C", bound=_Closeable)


@asynccontextmanager
async def opened(factory: Callable[[], C]) -> AsyncIterator[C]:
    """A service of the factory, closed at the end; twice, which must be harmless."""
    service = factory()
    try:
        yield service
    finally:
        await service.aclose()
        await service.aclose()


async def refused(kind: type[Exception], call: Awaitable[Any]) -> str:
    """Assert that a call raises an error of that kind; returns its message."""
    try:
        await call
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


def fresh_key(app: str | None = None, user: str = "user") -> SessionKey:
    """A session that no other case uses, of an app that none uses unless it is given."""
    return SessionKey(app or f"app-{fresh_id()}", user, f"session-{fresh_id()}")


def asks(text: str, **fields: Any) -> Event:
    """An event in which a person says something."""
    return Event(author="user", messages=(Message.user(text),), **fields)


def says(text: str, **fields: Any) -> Event:
    """An event in which an agent says something."""
    return Event(author="agent", messages=(Message.assistant(text),), **fields)
