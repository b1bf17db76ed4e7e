"""Processes that keep the summaries of one session: each with its own view of the store, and each may die."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphagent.ledger import SessionKey, Summary
from graphagent.services import SessionService
from processors import Projection, Reader
from processors.summary import choose
from processors.visibility import Visibility
from runner.summary.locks import SummaryLocks
from runner.summary.rolling import RollingSummary
from support.rolling import Steered

KEYS = ("", "app", "app/a", "app/a/x", "app/b")
LEASE = 0.15


class Died(BaseException):
    """The process is gone."""


class Flawed:
    """A session service that refuses, or with which the process dies, around the next `put_summary`. A process that is
    dead gives no lease back and writes nothing more."""

    def __init__(self, inner: SessionService) -> None:
        self.inner = inner
        self.flaws: list[tuple[str, Callable[[], BaseException]]] = []
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def put_summary(self, key: SessionKey, filter_key: str, summary: Summary, *, after: Summary | None) -> bool:
        """Store it; `before` and `after` say on which side of the write the flaw is."""
        when, error = self.flaws.pop(0) if self.flaws else ("", None)
        if when == "before" and error is not None:
            raise self._raised(error())
        done = await self.inner.put_summary(key, filter_key, summary, after=after)
        if error is not None:
            raise self._raised(error())
        return done

    def _raised(self, error: BaseException) -> BaseException:
        self.dead = self.dead or isinstance(error, Died)
        return error

    async def lease_summary(self, *args: Any, **options: Any) -> bool:
        """Pass it on."""
        return bool(await self.inner.lease_summary(*args, **options))  # type: ignore[attr-defined]

    async def release_summary(self, *args: Any, **options: Any) -> None:
        """Pass it on, unless the process is dead."""
        if not self.dead:
            await self.inner.release_summary(*args, **options)  # type: ignore[attr-defined]

    async def append_track(self, *args: Any, **options: Any) -> None:
        """Pass it on, unless the process is dead."""
        if not self.dead:
            await self.inner.append_track(*args, **options)


class NoLeases(Flawed):
    """As when a process was stopped for so long that its lease has ended: everyone gets one."""

    async def lease_summary(self, *args: Any, **options: Any) -> bool:
        """Given in any case."""
        return True

    async def release_summary(self, *args: Any, **options: Any) -> None:
        """There is none."""


class Process:
    """One process: its summaries, and what it finds when it makes one."""

    def __init__(self, sessions: SessionService, *, leases: bool = True) -> None:
        self.store = Flawed(sessions) if leases else NoLeases(sessions)
        self.steered = Steered()
        locks = SummaryLocks(self.store, lease=LEASE)  # type: ignore[arg-type]
        self.rolling = RollingSummary(self.store, self.steered, locks=locks)  # type: ignore[arg-type]


async def faults_of(sessions: SessionService, key: SessionKey) -> list[str]:
    """What is wrong with the stored summaries, whose texts name the events that went in."""
    session = await sessions.get(key)
    assert session is not None
    wrong = []
    for name, summary in session.summaries.items():
        said = summary.text.split()
        if len(said) != len(set(said)):
            wrong.append(f"'{name}' has an event twice: {said}")
        hidden = [event.id for event in session.events if summary.boundary.covers(event)]
        if hidden != said:
            wrong.append(f"'{name}' covers {hidden}, and its text has {said}")
    for reader in KEYS:
        wrong += _hidden_from(reader, session)
    return wrong


def _hidden_from(reader: str, session: Any) -> list[str]:
    start = Projection(
        reader=Reader(filter_key=reader), events=tuple(session.events), summaries=dict(session.summaries)
    )
    seen = Visibility()(start)
    chosen = choose(seen)
    if chosen is None:
        return []
    told = set(chosen.text.split())
    return [
        f"'{line.event.id}' is hidden from '{reader}', and no summary has it"
        for line in seen.lines
        if chosen.covers(line) and line.event.id not in told
    ]
