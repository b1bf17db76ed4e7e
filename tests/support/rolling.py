"""A summariser that tests steer, and sessions to sum up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from graphagent.ledger import Event, SessionKey
from graphagent.services import SessionService
from graphagent.testing.service_help import asks, fresh_key, says
from runner.summary.values import Made, Spent, SummaryInput, Trigger


class Steered:
    """Sums up as `text` says: by default every id that it covers, with what the former summary had. `fires`: whether
    one is due; `keep`: how many of the newest events are left; `inputs`: what it was given."""

    def __init__(self, text: Callable[[SummaryInput], Any] | None = None, *, fires: bool = True, keep: int = 0) -> None:
        self.inputs: list[SummaryInput] = []
        self.text = text or ids_of
        self.fires = fires
        self.keep = keep

    async def due(self, given: SummaryInput) -> Trigger:
        """As `fires` says."""
        return Trigger(self.fires, "steered")

    async def summarize(self, given: SummaryInput) -> Made:
        """A text; an exception or an awaitable that `text` gives is raised or awaited."""
        self.inputs.append(given)
        covered = given.events[: len(given.events) - self.keep]
        text = self.text(given._replace(events=covered))
        if isinstance(text, Awaitable):
            text = await text
        if isinstance(text, BaseException):
            raise text
        return Made(str(text), covered, spent=Spent(1, 10, 5))


def ids_of(given: SummaryInput) -> str:
    """The ids of all events that went in, and of those in the former summary."""
    before = given.previous.text.split() if given.previous is not None else []
    return " ".join([*before, *(event.id for event in given.events)])


async def talk(sessions: SessionService, *keys: str, count: int = 3, key: SessionKey | None = None) -> SessionKey:
    """A session in which so many things were said under each filter key, the person's first."""
    if key is None:
        key = fresh_key()
        await sessions.create(*key)
    for number in range(count):
        for filter_key in keys or ("app",):
            await say(sessions, key, f"{filter_key} {number}", filter_key, person=number % 2 == 0)
    return key


async def say(sessions: SessionService, key: SessionKey, text: str, filter_key: str, *, person: bool = False) -> Event:
    """One thing more; the stored event."""
    made = asks(text, filter_key=filter_key) if person else says(text, filter_key=filter_key)
    return await sessions.append(key, made)
