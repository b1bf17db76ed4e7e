"""How runs end and what is said of it: outcomes, errors, misuse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.run_agents import APP, SESSION, USER, Told, all_of, outcome, piece, says, texts

from graphagent.agents.invocation import Invocation, RunOptions
from graphagent.errors import (
    AnswerError,
    GraphAgentError,
    RunError,
    RunInterrupted,
    UsageError,
)
from graphagent.ledger import ErrorInfo, Event
from runner import Runner, RunnerPolicy
from runner.outcome import OUTCOME, REASON

pytestmark = pytest.mark.anyio


async def collect(runner: Runner, into: list[Event], said: Any = "hello", **options: Any) -> None:
    """Read a run to its end."""
    into += await all_of(runner, said, **options)


async def test_run_text_is_the_answer_or_an_error() -> None:
    """It gives the last answer, and raises for a run that waits or has failed."""
    failed = Event(kind="error", error=ErrorInfo(type="api_error", message="no route"))
    waits = Event(kind="graph", interrupts=({"key": "sure?", "id": "1"},))
    others = [Told([failed], name="failed"), Told([says("hm"), waits], name="waits")]
    async with Runner(APP, Told([says("one"), says("two")]), agents=others) as runner:
        assert await runner.run_text(USER, SESSION, "x") == "two"
        with pytest.raises(RunError, match="agent 'failed' is failed: no route"):
            await runner.run_text(USER, SESSION, "x", RunOptions(agent="failed"))
        with pytest.raises(RunInterrupted, match="'sure\\?'") as caught:
            await runner.run_text(USER, SESSION, "x", RunOptions(agent="waits"))
        assert caught.value.interrupts == ({"key": "sure?", "id": "1"},)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (says("hi"), "completed"),
        (Event(kind="graph", interrupts=({"key": "k"},)), "interrupted"),
        (Event(kind="error", error=ErrorInfo(type="flow_error", message="x")), "failed"),
        (Event(kind="error", error=ErrorInfo(type="cancelled", message="x")), "cancelled"),
        (Event(kind="graph", extensions={OUTCOME: "stalled", REASON: "join"}), "stalled"),
        (Event(kind="graph", extensions={OUTCOME: "limit_reached", REASON: "steps"}), "limit_reached"),
        (Event(kind="graph", extensions={OUTCOME: "nonsense"}), "completed"),
    ],
)
async def test_the_completion_says_the_outcome(last: Event, expected: str) -> None:
    """Completed, waiting, cancelled, failed and at a limit can be told apart by the last event alone."""
    async with Runner(APP, Told([says("x"), last])) as runner:
        events = await all_of(runner)
        assert outcome(events) == expected
        assert events[-1].interrupts == (last.interrupts if expected == "interrupted" else ())


async def test_what_an_agent_raises_while_it_is_cancelled_is_not_the_end() -> None:
    """An agent that turns the cancellation into an exception of its own was cancelled all the same."""
    reached = anyio.Event()

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        yield piece("x")
        reached.set()
        try:
            await anyio.sleep_forever()
        finally:
            raise AssertionError("no result")

    events: list[Event] = []
    async with Runner(APP, Told(body)) as runner, anyio.create_task_group() as group:
        group.start_soon(lambda: collect(runner, events, request_id="r1"))
        await reached.wait()
        await runner.cancel("r1")
    assert outcome(events) == "cancelled"


async def test_answers_that_fit_no_question_are_refused_without_a_trace() -> None:
    """An agent that refuses what it is resumed with: the error is raised, and nothing is in the session."""

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        raise AnswerError("nothing is pending")
        yield

    async with Runner(APP, Told(body)) as runner:
        with pytest.raises(AnswerError, match="nothing is pending"):
            await all_of(runner, None, answers={"k": 1})
        assert await texts(runner) == []
        with pytest.raises(UsageError, match="a message and answers"):
            await all_of(runner, "x", answers={"k": 1})


async def test_many_readers_many_runs() -> None:
    """Fifty runs at once, each in its own session, don't mix."""

    async def body(invocation: Invocation) -> AsyncIterator[Event]:
        for letter in "abc":
            await anyio.lowlevel.checkpoint()
            assert invocation.message is not None
            yield says(invocation.message.text + letter)

    got: dict[int, list[Event]] = {number: [] for number in range(50)}
    async with Runner(APP, Told(body)) as runner:

        async def one(number: int) -> None:
            got[number] += await all_of(runner, str(number), session=f"s{number}")

        async with anyio.create_task_group() as group:
            for number in got:
                group.start_soon(one, number)
        for number, events in got.items():
            assert [event.text for event in events] == [f"{number}a", f"{number}b", f"{number}c", ""]
            assert len({event.request_id for event in events}) == 1


async def test_an_unknown_policy_is_refused() -> None:
    """The error names the nearest known one."""
    with pytest.raises(UsageError, match="did you mean 'queue'"):
        RunnerPolicy("queu")  # type: ignore[arg-type]


async def test_misuse_is_of_the_house() -> None:
    """What the Runner itself refuses is a GraphAgentError."""
    async with Runner(APP, Told([])) as runner:
        for said, options in (("x", {"request_id": ""}), ("", {}), ("x", {"agent": "nobody"})):
            with pytest.raises(GraphAgentError):
                await all_of(runner, said, **options)  # type: ignore[arg-type]
