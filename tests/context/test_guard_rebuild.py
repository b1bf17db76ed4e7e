"""When a request is made anew: at which call, from which summary, and with what in it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from support.guarding import KEY, AtCalls, calls, read, runner_for, said

from graphagent import LLMAgent, tool
from graphagent.agents.invocation import RunOptions
from graphagent.errors import RunError
from graphagent.ledger import Boundary, Summary
from graphagent.models import ScriptedModel
from graphagent.models.tokens import SIMPLE
from graphagent.models.windows import register_context_window
from processors import Compaction, seen_by
from runner import Runner
from runner.recall import SessionRecall
from runner.sessions import InMemorySessions
from runner.summary.upkeep import SummaryOptions
from runner.summary.workers import WorkerOptions

pytestmark = pytest.mark.anyio


async def test_the_first_call_of_a_turn_is_rescued_too() -> None:
    """A conversation without tools that has grown too long is summed up before its next answer is asked for."""
    model = ScriptedModel(["word " * 6000, "two"], context_window=5000)
    steered = AtCalls(lambda given: "THE SUMMARY")
    async with runner_for(model, steered) as runner:
        await runner.run_text("ann", "s", "question one")
        await runner.run_text("ann", "s", "question two")
    assert [len(given.events) for given in steered.inputs] == [3]
    assert [message.role for message in model.requests[1].messages] == ["system", "user"]
    assert "THE SUMMARY" in said(model, 1)
    assert said(model, 1).count("question two") == 1


async def test_c183_six_results_and_a_summary_after_the_fourth() -> None:
    """After a summary in the middle of a turn the raw results that it covers are not sent again: the last request has
    the question, the summary and the results that came since."""
    answers = [*(calls(1000 + n) for n in range(6)), "done"]
    model = ScriptedModel(answers, context_window=5800)
    steered = AtCalls(lambda given: "THE SUMMARY")
    async with runner_for(model, steered) as runner:
        assert await runner.run_text("ann", "s", "the question") == "done"
    assert [len(given.events) for given in steered.inputs] == [9]
    last = model.requests[6].messages
    assert [message.role for message in last] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert "THE SUMMARY" in last[0].text
    assert [message.text for message in last if message.role == "tool"] == ["word " * 1004, "word " * 1005]


async def test_a_covered_round_is_sent_as_a_placeholder() -> None:
    """With compaction, a round that fills the window by itself is rescued: the summary has what matters of it, and the
    placeholder says how to get it back."""
    model = ScriptedModel([calls(9000), "done"], context_window=5000)
    agent = LLMAgent("bot", model, tools=[read, SessionRecall()])
    options = SummaryOptions(summarizer=AtCalls(lambda given: "THE SUMMARY"))
    async with Runner("app", agent, summaries=options, compaction=Compaction(counter=SIMPLE)) as runner:
        await runner.run_text("ann", "s", "go")
        session = await runner.sessions.get(KEY)
    assert session is not None
    stored = next(event for event in session.events if event.is_tool_result)
    shown = model.requests[1].messages[-1].text
    assert f"event_id: {stored.id}" in shown
    assert "reason: current_invocation_summary" in shown
    assert f"session_load(event_id='{stored.id}'" in shown
    assert stored.text == "word " * 9000


async def test_a_summary_that_was_made_meanwhile_is_used() -> None:
    """Another process has stored a summary since the turn began: the request that is too long is made anew from it, and
    none is paid for."""
    sessions = InMemorySessions()

    @tool(name="read")
    async def read_slowly(size: int) -> str:
        """A text, which takes a while."""
        session = await sessions.get(KEY)
        assert session is not None
        last = session.events[1]
        boundary = Boundary(filter_key="app", seq=last.seq, cutoff_at=last.timestamp, last_event_id=last.id)
        summary = Summary(text="THEIRS", boundary=boundary, updated_at=last.timestamp)
        assert await sessions.put_summary(KEY, "app", summary, after=None)
        return "word " * size

    model = ScriptedModel(["word " * 3000, calls(3000), "done"], context_window=9000)
    steered = AtCalls()
    agent = LLMAgent("bot", model, tools=[read_slowly])
    async with Runner("app", agent, sessions=sessions, summaries=SummaryOptions(summarizer=steered)) as runner:
        await runner.run_text("ann", "s", "question one")
        await runner.run_text("ann", "s", "question two")
    assert steered.inputs == []
    assert "THEIRS" in said(model, 2)
    assert "question one" not in said(model, 2)
    assert len(said(model, 2)) < 16_000


async def test_a_store_that_fails_when_the_request_is_made_anew() -> None:
    """The summary is stored and then the session can't be read: the request goes out as it was, and the answer's event
    says why."""
    sessions = InMemorySessions()
    read_on, broken = sessions.refresh, False

    async def refresh(session: Any) -> Any:
        if broken:
            raise OSError("no connection")
        return await read_on(session)

    def sum_up(given: Any) -> str:
        nonlocal broken
        broken = True
        return "THE SUMMARY"

    sessions.refresh = refresh  # type: ignore[method-assign]
    model = ScriptedModel([calls(6000), "done"], context_window=5000)
    async with runner_for(model, AtCalls(sum_up), sessions) as runner:
        assert await runner.run_text("ann", "s", "go") == "done"
        broken = False
        session = await sessions.get(KEY)
    assert "word word" in said(model, 1)
    assert [note["stage"] for note in session.events[-1].extensions["context"]] == ["rescue", "rebuild"]


async def test_a_summariser_that_hangs() -> None:
    """A summary may take as long before a call as in the background; then the call is made without."""
    model = ScriptedModel([calls(6000), "done"], context_window=5000)
    options = SummaryOptions(summarizer=AtCalls(lambda given: anyio.sleep(60)), workers=WorkerOptions(timeout=0.05))
    async with Runner("app", LLMAgent("bot", model, tools=[read]), summaries=options) as runner:
        assert await runner.run_text("ann", "s", "go") == "done"
        session = await runner.sessions.get(KEY)
    assert session is not None
    assert [note["outcome"] for note in session.events[-1].extensions["context"]] == ["cancelled"]


async def test_where_the_window_is_taken_from() -> None:
    """What the run says, else the model, else the list of known models, else 8,192; a wrong option is refused."""
    register_context_window("guarded-model", 6000)
    cases: list[tuple[int | None, str, dict[str, Any], int]] = [
        (5000, "scripted", {"context_window": 4000}, 4000),
        (5000, "guarded-model", {}, 5000),
        (None, "guarded-model", {}, 6000),
        (None, "scripted", {}, 8192),
    ]
    for window, name, extra, expected in cases:
        model = ScriptedModel([calls(9000), "done"], context_window=window, name=name)
        async with runner_for(model, AtCalls(fires=False)) as runner:
            await runner.run_text("ann", "s", "go", RunOptions(extra=extra))
            session = await runner.sessions.get(KEY)
        assert session is not None
        assert [note["window"] for note in session.events[-1].extensions["context"]] == [expected]
    async with runner_for(ScriptedModel(["done"]), AtCalls()) as runner:
        with pytest.raises(RunError, match="context_window"):
            await runner.run_text("ann", "s", "go", RunOptions(extra={"context_window": "much"}))


async def test_what_was_cut_in_the_running_turn_is_kept_with_the_answer() -> None:
    """The answer's event says how many results were shortened in its request, and of which events; what the model saw
    of them is told as changed."""
    model = ScriptedModel([calls(900, 900, 900), "done"])
    policy = Compaction(counter=SIMPLE, group=1500)
    async with Runner("app", LLMAgent("bot", model, tools=[read, SessionRecall()]), compaction=policy) as runner:
        await runner.run_text("ann", "s", "go")
        session = await runner.sessions.get(KEY)
    assert session is not None
    result, answer = session.events[-2:]
    [note] = answer.extensions["context"]
    assert (note["stage"], note["results"], list(note["events"])) == ("compaction", 3, [result.id])
    assert note["saved"] > 1500
    shown = [message.text for message in model.requests[1].messages if message.role == "tool"]
    assert all(f"session_load(event_id='{result.id}'" in text for text in shown)
    found = seen_by(session, answer.id)
    assert found is not None
    assert [(seen.verdict, seen.reasons) for seen in found[-2:]] == [
        ("in", ("run.in",)),
        ("changed", ("run.in", "compaction.changed")),
    ]
