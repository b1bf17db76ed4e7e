"""What a projection costs in a session of 100, 500 and 2,000 turns when a summary stands for all but the newest ones.

Reading is a part of it. `turn`: the projection of a turn whose run holds the session up to there, as a Runner's does;
`opening`: a process that has nothing of the session at hand opens it for a turn, and projects. Python calls are
counted by a profile function, which repeats exactly; CPU time is that of all threads.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any, NamedTuple

from benchmarks.context.data import Said
from benchmarks.context.figures import Figures
from benchmarks.context.replay import APP, READER, SHORT, USER, event_of
from graphagent import LLMAgent
from graphagent.agents.invocation import Invocation, Services
from graphagent.ids import fresh_id
from graphagent.ledger import Boundary, SessionKey, Summary
from graphagent.messages import Message
from graphagent.models import ScriptedModel
from graphagent.services import SessionService
from runner.user_turn import open_session

TURNS = (100, 500, 2_000)
KEEP = 20
"""Events in view."""
ROUNDS = 9
TEXT = "some words about the machine that were said in this turn, as many as people say at a time " * 3


class Cost(NamedTuple):
    """Of one projection: Python calls in this thread, and CPU milliseconds."""

    calls: int
    milliseconds: float


async def grown(sessions: SessionService, turns: int) -> SessionKey:
    """A new session of so many turns with a summary of all but the newest events."""
    key = SessionKey(APP, USER, fresh_id())
    await sessions.create(*key)
    for at in range(2 * turns):
        said = Said(f"{turns}:{at}", "", "assistant" if at % 2 else "user", "", f"{at} {TEXT}")
        event = event_of(said, at // 2)
        event = await sessions.append(key, event.model_copy(update={"id": f"{turns}:{at}"}))
        if at == 2 * turns - KEEP - 1:
            boundary = Boundary(filter_key=APP, seq=event.seq, cutoff_at=event.timestamp, last_event_id=event.id)
    summary = Summary(text="What was said before. " * 80, boundary=boundary, updated_at=boundary.cutoff_at)
    await sessions.put_summary(key, APP, summary, after=None)
    return key


async def growth(name: str, sessions: SessionService, told: Callable[[str], None], sizes: tuple[int, ...]) -> Figures:
    """The figures of one database; `ratio`: Python calls at the largest size against those at the smallest."""
    figures: Figures = {}
    calls: dict[str, list[int]] = {"turn": [], "opening": []}
    for turns in sizes:
        told(f"growth: {turns} turns on {name}")
        key = await grown(sessions, turns)
        costs = {"turn": await _cost(await _turn(sessions, key)), "opening": await _cost(_opening(sessions, key))}
        for kind, cost in costs.items():
            calls[kind].append(cost.calls)
            figures[f"growth.{name}.{kind}.{turns}.calls"] = cost.calls
            figures[f"growth.{name}.{kind}.{turns}.ms"] = cost.milliseconds
        await sessions.delete(key)
    figures[f"growth.{name}.ratio"] = calls["turn"][-1] / calls["turn"][0]
    figures[f"growth.{name}.opening.ratio"] = calls["opening"][-1] / calls["opening"][0]
    return figures


def _invocation(sessions: SessionService, session: Any) -> Invocation:
    agent = LLMAgent(READER, ScriptedModel([]))
    services = Services(sessions=sessions, projector=SHORT)
    message = Message.user("What now?")
    return Invocation(agent, message, session, filter_key=APP, branch=READER, services=services)


async def _turn(sessions: SessionService, key: SessionKey) -> Callable[[], Awaitable[object]]:
    held = _invocation(sessions, await open_session(sessions, key))
    return lambda: SHORT.messages(held)


def _opening(sessions: SessionService, key: SessionKey) -> Callable[[], Awaitable[object]]:
    async def opened() -> object:
        return await SHORT.messages(_invocation(sessions, await open_session(sessions, key)))

    return opened


async def _cost(work: Callable[[], Awaitable[object]]) -> Cost:
    await work()  # statements are prepared, modules loaded
    count = 0

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        await work()
    finally:
        sys.setprofile(before)
    times = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        await work()
        times.append(1000 * (time.process_time() - begun))
    return Cost(count, statistics.median(times))
