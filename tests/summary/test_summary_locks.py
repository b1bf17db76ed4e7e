"""Who makes a summary, when several want to: in one process, and across processes by leases."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.faulty import Faulty
from support.rolling import Steered, talk
from support.summary_world import NoLeases

from graphagent.errors import ServiceError
from graphagent.services import SessionService, SummaryLeases
from runner.sessions import InMemorySessions
from runner.summary.locks import SummaryLocks
from runner.summary.rolling import RollingSummary

pytestmark = pytest.mark.anyio
Sessions = SessionService


async def test_the_services_have_leases(sessions: Sessions) -> None:
    """Ours all do, so that two processes never make one summary twice."""
    assert isinstance(sessions, SummaryLeases)


async def test_a_lease_lasts_as_long_as_the_work(sessions: Sessions) -> None:
    """A summary that takes far longer than the lease keeps it: another process waits, or goes away if it shall not
    wait; then it can have it."""
    key = await talk(sessions)
    mine, theirs = SummaryLocks(sessions, lease=0.3), SummaryLocks(sessions, lease=0.3, wait=0)
    async with mine.hold(key, "app") as held:
        assert held
        await asyncio.sleep(0.9)
        async with theirs.hold(key, "app") as also:
            assert not also
        async with theirs.hold(key, "app/a") as other:
            assert other
    async with theirs.hold(key, "app") as then:
        assert then


async def test_busy_is_told(sessions: Sessions) -> None:
    """An attempt that may not wait says that another process makes the summary, and makes none."""
    key = await talk(sessions)
    steered = Steered()
    rolling = RollingSummary(sessions, steered, locks=SummaryLocks(sessions, wait=0))
    async with SummaryLocks(sessions).hold(key, "app"):
        assert (await rolling.summarize(key, "app")).outcome == "busy"
    assert (await rolling.summarize(key, "app")).outcome == "updated"
    assert len(steered.inputs) == 1


async def test_a_lease_of_the_dead_ends(sessions: Sessions) -> None:
    """What a process took that never comes back is free after the time that it was taken for."""
    key = await talk(sessions)
    assert isinstance(sessions, SummaryLeases)
    assert await sessions.lease_summary(key, "app", owner="dead", seconds=0.3)
    async with SummaryLocks(sessions).hold(key, "app") as held:
        assert held


async def test_waiting_can_be_cancelled(sessions: Sessions) -> None:
    """Also for another process; nobody is locked out by it."""
    key = await talk(sessions)
    locks = SummaryLocks(sessions)
    rolling = RollingSummary(sessions, Steered(), locks=locks)
    async with SummaryLocks(sessions).hold(key, "app"):
        waiting = asyncio.create_task(rolling.summarize(key, "app"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert (await rolling.summarize(key, "app")).updated
    assert not locks.users


async def test_a_lost_lease_costs_work_only(sessions: Sessions) -> None:
    """If two processes make one summary after all, the first that stores it stays, and the other one is told."""
    key = await talk(sessions)
    both_there, there = asyncio.Event(), 0

    async def meet(given: Any, text: str) -> str:
        nonlocal there
        there += 1
        if there == 2:
            both_there.set()
        await both_there.wait()
        return text

    rolling = [
        RollingSummary(NoLeases(sessions), Steered(lambda given, text=text: meet(given, text)))  # type: ignore[arg-type,misc]
        for text in ("one", "two")
    ]
    attempts = await asyncio.gather(*(one.summarize(key) for one in rolling))
    assert sorted(attempt.outcome for attempt in attempts) == ["overtaken", "updated"]
    winner = next(attempt for attempt in attempts if attempt.updated)
    session = await sessions.get(key)
    assert session is not None
    assert session.summaries[""] == winner.summary


async def test_a_renewal_that_fails_stops_nothing() -> None:
    """A store that can't renew for a while: the summary is made and stored."""
    sessions = InMemorySessions()
    key = await talk(sessions)
    faulty: Any = Faulty(sessions, "lease_summary", ServiceError("out of order"), good=1)

    class Leasing:
        """The faulty store, with the methods that tell that it has leases."""

        def __getattr__(self, name: str) -> Any:
            return getattr(faulty, name)

        lease_summary = property(lambda self: faulty.lease_summary)
        release_summary = property(lambda self: faulty.release_summary)

    async def slowly() -> str:
        await asyncio.sleep(0.3)
        return "text"

    store: Any = Leasing()
    rolling = RollingSummary(store, Steered(lambda given: slowly()), locks=SummaryLocks(store, lease=0.15))
    assert (await rolling.summarize(key)).updated
    assert faulty.good <= 0


async def test_a_service_without_leases() -> None:
    """The lock of the process is enough where no other process can come."""

    class Plain:
        """Sessions without leases."""

        def __init__(self) -> None:
            self.inner = InMemorySessions()

        def __getattr__(self, name: str) -> Any:
            if "lease" in name:
                raise AttributeError(name)
            return getattr(self.inner, name)

    plain: Any = Plain()
    assert not isinstance(plain, SummaryLeases)
    key = await talk(plain)
    steered = Steered()
    rolling = RollingSummary(plain, steered)
    found = await asyncio.gather(rolling.summarize(key), rolling.summarize(key))
    assert sorted(attempt.outcome for attempt in found) == ["nothing_new", "updated"]
    assert len(steered.inputs) == 1
