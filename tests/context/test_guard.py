"""The guard of requests: rescue by a summary, summaries between calls, results cut in the running turn. Numbers:
spec/context, 19."""

from __future__ import annotations

from typing import Any

import pytest
from support.guarding import KEY, AtCalls, calls, kind_of, read, runner_for, said

from graphagent import LLMAgent
from graphagent.errors import ServiceError
from graphagent.models import ScriptedModel
from graphagent.models.tokens import SIMPLE, counter_for
from processors import Compaction, SessionProjector, Summaries, Visibility, default_pipeline
from runner import Runner
from runner.context.window import threshold
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("window", "ratio", "expected"),
    [(10_000, 0.7, 7000), (2500, 0.7, 2000), (1500, 0.7, 1500), (10_000, 0.0, 7000), (10_000, 1.5, 7000)],
)
def test_c084_the_threshold(window: int, ratio: float, expected: int) -> None:
    """A share of the window, at least 2,000 tokens, at most the window; a ratio that is none counts as 0.7."""
    assert threshold(window, ratio) == expected


async def test_c084_at_the_threshold_and_below() -> None:
    """A request of exactly the threshold is rescued, one token less is not."""
    model = ScriptedModel([calls(6000), "done"])
    async with runner_for(model, AtCalls(), rescue=None) as runner:
        await runner.run_text("ann", "s", "go")
    tokens = counter_for(model.name).messages(model.requests[1].messages)
    for window, rescued in ((tokens, True), (tokens + 1, False)):
        model = ScriptedModel([calls(6000), "done"], context_window=window)
        steered = AtCalls(lambda given: "summed up")
        async with runner_for(model, steered, rescue=1.0) as runner:
            await runner.run_text("ann", "s", "go")
            session = await runner.sessions.get(KEY)
        assert bool(steered.inputs) is rescued
        assert session is not None
        notes = [note for event in session.events for note in event.extensions.get("context", ())]
        assert [(note["tokens"], note["threshold"]) for note in notes] == ([(tokens, tokens)] if rescued else [])


async def test_c085_the_gate_says_no() -> None:
    """A summariser that finds none due leaves the request as it is, and is asked once for a call."""
    model = ScriptedModel([calls(6000), "done"], context_window=5000)
    steered = AtCalls(fires=False)
    async with runner_for(model, steered) as runner:
        await runner.run_text("ann", "s", "go")
    assert steered.inputs == []
    assert "word word" in said(model, 1)


async def test_c086_rescued() -> None:
    """A summary of the turns before is made, and the request made anew: it has the summary, the question and the newest
    round, and not what is covered; the model is called once with it, and the next request goes on from there."""
    model = ScriptedModel([calls(3000), "first done", calls(3000), calls(1), "done"], context_window=9000)
    steered = AtCalls(lambda given: "THE SUMMARY")
    async with runner_for(model, steered) as runner:
        await runner.run_text("ann", "s", "question one")
        await runner.run_text("ann", "s", "question two")
        session = await runner.sessions.get(KEY)
    assert len(model.requests) == 5
    rescued = said(model, 3)
    assert "THE SUMMARY" in rescued
    assert "question one" not in rescued
    assert "question two" in rescued
    assert len(rescued) < len(said(model, 2)) + 20_000
    assert "THE SUMMARY" in said(model, 4)
    assert said(model, 4).count("question two") == 1
    assert session is not None
    kinds = ["user", "call", "result", "answer", "user", "call", "result", "call", "result", "answer"]
    assert list(map(kind_of, session.events)) == kinds  # what was put in again is not said again
    answer = session.events[-3]
    assert [note["stage"] for note in answer.extensions["context"]] == ["rescue"]
    assert answer.extensions["context"][0]["outcome"] == "updated"


async def test_c087_a_store_that_refuses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The summary was made and could not be stored: this run goes by it all the same, a warning says so, and the next
    turn, which doesn't know it, shows all events again."""

    async def refuse(*args: Any, **options: Any) -> bool:
        raise ServiceError("disk full")

    sessions = InMemorySessions()
    monkeypatch.setattr(sessions, "put_summary", refuse)
    model = ScriptedModel(["word " * 6000, "two", "three"], context_window=5000)
    steered = AtCalls(lambda given: "AHEAD" if len(steered.inputs) == 1 else RuntimeError("down"))
    async with runner_for(model, steered, sessions) as runner:
        for question in ("q1", "q2", "q3"):
            await runner.run_text("ann", "s", question)
        session = await runner.sessions.get(KEY)
    assert "AHEAD" in said(model, 1)
    assert "word word" not in said(model, 1)
    assert "q2" in said(model, 1)
    assert "not stored" in caplog.text
    assert session is not None
    assert session.summaries == {}
    [note] = session.events[3].extensions["context"]
    assert (note["outcome"], note["updated"], note["ahead"]) == ("failed", True, True)
    assert "AHEAD" not in said(model, 2)
    assert "word word" in said(model, 2)


async def test_c087_what_is_ahead_of_its_store_stays_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """The later calls of the turn go on from it: what it covers doesn't come back from the store that hasn't got it."""

    async def refuse(*args: Any, **options: Any) -> bool:
        raise ServiceError("disk full")

    sessions = InMemorySessions()
    monkeypatch.setattr(sessions, "put_summary", refuse)
    model = ScriptedModel(["word " * 3000, calls(2900), calls(1), calls(2), "two"], context_window=9000)
    steered = AtCalls(lambda given: "AHEAD")
    async with runner_for(model, steered, sessions) as runner:
        await runner.run_text("ann", "s", "q1")
        await runner.run_text("ann", "s", "q2")
    assert len(steered.inputs) == 1
    for number in (2, 3, 4):
        assert "AHEAD" in said(model, number)
        assert "q1" not in said(model, number)


async def test_c088_a_summariser_that_fails() -> None:
    """Nothing has advanced, so the request goes out as it is, and the run succeeds."""
    model = ScriptedModel([calls(6000), "done"], context_window=5000)
    steered = AtCalls(lambda given: RuntimeError("down"))
    async with runner_for(model, steered) as runner:
        assert await runner.run_text("ann", "s", "go") == "done"
    assert len(steered.inputs) == 1
    assert "word word" in said(model, 1)


@pytest.mark.parametrize(
    "pipeline",
    [
        default_pipeline(),
        default_pipeline(summaries=Summaries(), visibility=Visibility(timeline="request")),
        default_pipeline(summaries=Summaries(), visibility=Visibility(contents="invocation")),
    ],
    ids=["no summaries", "one request only", "own run only"],
)
async def test_c089_where_a_summary_changes_nothing(pipeline: Any) -> None:
    """A chain in which no summary stands for events is left alone: no summary is paid for."""
    model = ScriptedModel([calls(6000), "done"], context_window=5000)
    steered = AtCalls()
    async with runner_for(model, steered, projector=SessionProjector(pipeline)) as runner:
        await runner.run_text("ann", "s", "go")
    assert steered.inputs == []


async def test_c090_still_too_long() -> None:
    """A request that is too long after its rescue is sent as it is: once, without a loop."""
    model = ScriptedModel([calls(9000), "done"], context_window=5000)
    steered = AtCalls(lambda given: "S")
    async with runner_for(model, steered) as runner:
        assert await runner.run_text("ann", "s", "go") == "done"
    assert len(steered.inputs) == 1
    assert "word word" in said(model, 1)


async def test_c022_c183_between_the_calls_of_a_turn() -> None:
    """Summaries before the second and later calls: the request then holds the question, the summary and the newest
    round of tools, not the rounds that are covered; the first call has none made."""
    model = ScriptedModel([calls(11), calls(12), calls(13), "done"])
    steered = AtCalls(lambda given: f"<{len(given.events)}>")
    async with runner_for(model, steered, between_calls=True) as runner:
        assert await runner.run_text("ann", "s", "the question") == "done"
    assert len(steered.inputs) == 3
    last = model.requests[3].messages
    assert [message.role for message in last] == ["system", "user", "assistant", "tool"]
    assert "the question" in last[1].text
    assert last[3].text == "word " * 13


async def test_the_rescue_can_be_switched_off() -> None:
    """With `rescue=None` no request is summed up before it is sent."""
    model = ScriptedModel([calls(6000), "done"], context_window=5000)
    steered = AtCalls()
    async with runner_for(model, steered, rescue=None) as runner:
        await runner.run_text("ann", "s", "go")
    assert steered.inputs == []


async def test_c193_ten_parallel_results_in_a_run() -> None:
    """Ten results of one round, each below the bound for one, reach the model within the bound for a round, and name
    the events that hold them; the session has them whole."""
    model = ScriptedModel([calls(*[900] * 10), "done"])
    policy = Compaction(counter=SIMPLE, oversized=1200, group=4000)
    async with Runner("app", LLMAgent("bot", model, tools=[read]), compaction=policy) as runner:
        await runner.run_text("ann", "s", "go")
        session = await runner.sessions.get(KEY)
    results = [message.text for message in model.requests[1].messages if message.role == "tool"]
    assert len(results) == 10
    assert sum(map(SIMPLE.text, results)) <= 4000
    assert session is not None
    [stored] = [event for event in session.events if event.is_tool_result]
    assert [message.text for message in stored.messages] == ["word " * 900] * 10
    assert all(f"event_id: {stored.id}" in text and "session_load" not in text for text in results)


async def test_results_of_earlier_turns_are_placeholders_in_later_ones() -> None:
    """A long result is whole in its turn and the next, and a placeholder after that."""
    model = ScriptedModel([calls(1500), "one", "two", "three"])
    async with Runner("app", LLMAgent("bot", model, tools=[read]), compaction=Compaction(counter=SIMPLE)) as runner:
        for question in ("a", "b", "c"):
            await runner.run_text("ann", "s", question)
    shown = [next(m.text for m in model.requests[n].messages if m.role == "tool") for n in (1, 2, 3)]
    assert [text.startswith("[elided]") for text in shown] == [False, False, True]
