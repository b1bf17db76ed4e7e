"""Extractors that are told what to answer, and conversations to extract from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message
from graphagent.services import SessionService
from graphagent.testing.service_help import asks, says
from runner.memory import Extracted, ExtractionInput, Operation
from runner.memory.delta import CURSOR

Answer = Callable[[ExtractionInput], Iterable[Operation]]


def add(text: str, **about: Any) -> Operation:
    """An operation that adds a memory."""
    return Operation("add", "", text, about)  # type: ignore[arg-type]


def each_said(given: ExtractionInput) -> list[Operation]:
    """Each thing that the user said, as a fact."""
    return [add(said.text) for said in given.messages if said.role == "user"]


class Told:
    """An extractor whose answer is a function; an exception in place of an answer is raised. `given`: what it got."""

    def __init__(self, answer: Answer | Exception = each_said) -> None:
        self.answer = answer
        self.given: list[ExtractionInput] = []

    async def extract(self, given: ExtractionInput) -> Extracted:
        """What the function says."""
        self.given.append(given)
        if isinstance(self.answer, Exception):
            raise self.answer
        return Extracted(tuple(self.answer(given)))

    @property
    def read(self) -> list[str]:
        """All messages that it got, in order."""
        return [said.text for given in self.given for said in given.messages]


def result(text: str = "seen", name: str = "look", **fields: Any) -> Event:
    """What a tool returned."""
    return Event(kind="tool_result", author="bot", messages=(Message.tool(text, "c1", name=name),), **fields)


async def talk(sessions: SessionService, key: SessionKey, *events: Event | str) -> list[Event]:
    """Append to a session, which is made if need be; texts are what the user and the assistant said, in turn."""
    if await sessions.get(key) is None:
        await sessions.create(*key)
    stored = []
    for place, event in enumerate(events):
        if isinstance(event, str):
            event = says(event) if place % 2 else asks(event)
        stored.append(await sessions.append(key, event))
    return stored


async def cursor(sessions: SessionService, key: SessionKey) -> int:
    """How far a session has been read."""
    session = await sessions.get(key)
    assert session is not None
    return int(session.state.get(CURSOR, {"seq": 0})["seq"])
