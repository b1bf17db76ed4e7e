"""Which summaries an event calls for, the cascade, and the workers. Numbers: spec/context, 19."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from support.rolling import Steered, say, talk

from graphagent.agents.model import ModelRequest
from graphagent.ledger import WHOLE
from graphagent.messages import Message
from graphagent.services import SessionService
from runner.summary.dispatch import refresh
from runner.summary.policy import SummaryPolicy
from runner.summary.rolling import RollingSummary
from runner.summary.values import NO_CONTEXT
from runner.summary.workers import SummaryWorkers, WorkerOptions

pytestmark = pytest.mark.anyio
Sessions = SessionService


async def texts(sessions: Sessions, key: Any) -> dict[str, str]:
    """The stored texts by filter key."""
    session = await sessions.get(key)
    assert session is not None
    return {name: summary.text for name, summary in session.summaries.items()}


async def test_c049_one_call_serves_both(sessions: Sessions) -> None:
    """Where every event belongs to the branch, one model call makes both summaries, and both are stored; again after
    more was said."""
    key = await talk(sessions, "app")
    steered = Steered()
    rolling = RollingSummary(sessions, steered)
    for calls in (1, 2):
        attempts = await refresh(rolling, key, "app")
        assert [attempt.outcome for attempt in attempts] == ["updated", "updated"]
        assert len(steered.inputs) == calls
        found = await texts(sessions, key)
        assert found["app"] == found[WHOLE]
        await say(sessions, key, "more", "app")
    session = await sessions.get(key)
    assert session is not None
    assert session.summaries[WHOLE].boundary.filter_key == WHOLE


async def test_c050_siblings_make_two_calls(sessions: Sessions) -> None:
    """With events of a sibling both are made side by side; if one fails the other is kept."""
    key = await talk(sessions, "app/a", "app/b")
    together = asyncio.Event()
    waiting = 0

    async def meet(given: Any) -> Any:
        nonlocal waiting
        waiting += 1
        if waiting == 2:
            together.set()
        await asyncio.wait_for(together.wait(), 5)
        return ValueError("no") if given.filter_key == WHOLE else "branch"

    attempts = await refresh(RollingSummary(sessions, Steered(meet)), key, "app/a")
    assert [(attempt.filter_key, attempt.outcome) for attempt in attempts] == [("app/a", "updated"), (WHOLE, "failed")]
    assert await texts(sessions, key) == {"app/a": "branch"}


def test_c051_the_allow_list() -> None:
    """Keys above and below an entry are allowed, others only by way of the cascade; the whole session always is."""
    some, none = SummaryPolicy(allow=[" app/a ", " "]), SummaryPolicy(allow=[])
    assert some.targets("app/a/x") == ("app/a/x", WHOLE)
    assert some.targets("app") == ("app", WHOLE)
    assert some.targets("app/b") == (WHOLE,)
    assert dataclasses.replace(some, cascade=False).targets("app/b") == ()
    assert none.targets("app/a") == (WHOLE,)
    assert none.targets(WHOLE) == (WHOLE,)
    assert SummaryPolicy(cascade=False).targets("app/a") == ("app/a",)


async def test_c052_asked_directly_there_is_no_cascade(sessions: Sessions) -> None:
    """A summary of a branch that is asked for by itself doesn't touch that of the whole session."""
    key = await talk(sessions, "app/a")
    await RollingSummary(sessions, Steered()).summarize(key, "app/a")
    assert list(await texts(sessions, key)) == ["app/a"]


async def test_c053_a_fork_shows_the_branch_only(sessions: Sessions) -> None:
    """With a request to fork, and a summariser that forks, the whole session is left out, even when forced."""
    key = await talk(sessions, "app/a", "app/b")
    steered = Steered()
    steered.forks = True  # type: ignore[attr-defined]
    context = dataclasses.replace(NO_CONTEXT, parent=ModelRequest((Message.user("x"),)))
    attempts = await refresh(RollingSummary(sessions, steered), key, "app/a", force=True, context=context)
    assert [attempt.filter_key for attempt in attempts] == ["app/a"]


async def test_the_copy_never_covers_what_others_said(sessions: Sessions) -> None:
    """A sibling that speaks while the branch is summed up is in no copy of its summary."""
    key = await talk(sessions, "app/a")

    async def meanwhile() -> str:
        await say(sessions, key, "other", "app/b")
        await say(sessions, key, "own", "app/a")
        return "branch"

    await refresh(RollingSummary(sessions, Steered(lambda given: meanwhile())), key, "app/a")
    session = await sessions.get(key)
    assert session is not None
    other = next(event for event in session.events if event.filter_key == "app/b")
    assert not session.summaries[WHOLE].boundary.covers(other)


async def test_c047_no_room_in_the_queue(sessions: Sessions) -> None:
    """A full queue, and stopped workers, have the caller do it: the result is there on return."""
    keys = [await talk(sessions) for _ in range(3)]
    go = asyncio.Event()

    async def wait(given: Any) -> str:
        if given.key == keys[0]:
            await go.wait()
        return "text"

    rolling = RollingSummary(sessions, Steered(wait))
    workers = SummaryWorkers(rolling, WorkerOptions(workers=1, queue=1))
    assert await workers.enqueue(keys[0], "app") == ()
    await asyncio.sleep(0.05)  # the worker is at it, and its queue is empty
    assert await workers.enqueue(keys[1], "app") == ()
    assert [attempt.outcome for attempt in await workers.enqueue(keys[2], "app")] == ["updated", "updated"]
    assert await texts(sessions, keys[2]) == {"app": "text", WHOLE: "text"}
    go.set()
    assert await workers.stop(10)
    assert [len(await texts(sessions, key)) for key in keys] == [2, 2, 2]
    await say(sessions, keys[0], "more", "app")
    assert (await workers.enqueue(keys[0], "app"))[0].updated
    assert rolling.stats.in_caller == 2


async def test_c048_order_and_a_worker_that_survives(sessions: Sessions) -> None:
    """Checks of one session keep their order, and a summary that fails doesn't stop the worker."""
    key = await talk(sessions, "app/a", "app/b", "app/c")
    seen = []

    def text(given: Any) -> Any:
        seen.append(given.filter_key)
        return RuntimeError("broken") if given.filter_key == "app/a" else "text"

    rolling = RollingSummary(sessions, Steered(text), policy=SummaryPolicy(cascade=False))
    workers = SummaryWorkers(rolling, WorkerOptions(workers=3))
    for branch in ("app/a", "app/b", "app/c"):
        await workers.enqueue(key, branch)
    assert await workers.stop(10)
    assert seen == ["app/a", "app/b", "app/c"]


async def test_a_summary_that_hangs_is_given_up(sessions: Sessions) -> None:
    """After the time limit the worker goes on with the next session, and the lock is free again."""
    hanging, other = await talk(sessions), await talk(sessions)

    async def hang(given: Any) -> str:
        await asyncio.sleep(60 if given.key == hanging else 0)
        return "text"

    rolling = RollingSummary(sessions, Steered(hang))
    workers = SummaryWorkers(rolling, WorkerOptions(workers=1, timeout=0.3))
    await workers.enqueue(hanging, "app")
    await workers.enqueue(other, "app")
    assert await workers.stop(10)
    assert await texts(sessions, hanging) == {}
    assert len(await texts(sessions, other)) == 2
    rolling.summarizer = Steered()
    assert (await rolling.summarize(hanging)).updated


async def test_a_waiting_check_is_not_queued_twice(sessions: Sessions) -> None:
    """Ten appends while a worker is busy make one check, not ten."""
    first, second = await talk(sessions), await talk(sessions)
    steered = Steered()
    rolling = RollingSummary(sessions, steered)
    workers = SummaryWorkers(rolling, WorkerOptions(workers=1, queue=2))
    await workers.enqueue(first, "app")
    for _ in range(10):
        await workers.enqueue(second, "app")
    assert await workers.stop(10)
    assert [given.key for given in steered.inputs] == [first, second]
    assert rolling.stats.in_caller == 0
