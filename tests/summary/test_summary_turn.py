"""What a turn tells a summariser of its requests, and what is told of attempts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.rolling import Steered, say, talk

from graphagent import LLMAgent, ParallelAgent, tool
from graphagent.agents.model import ModelRequest
from graphagent.errors import UsageError
from graphagent.ledger import WHOLE, SessionKey, TokenUsage
from graphagent.messages import Message
from graphagent.models import ScriptedModel
from graphagent.services import SessionService
from runner import Runner, RunnerPolicy
from runner.sessions import InMemorySessions
from runner.summary import ModelSummarizer, SummaryOptions, SummaryPolicy
from runner.summary.dispatch import refresh
from runner.summary.parent import shown_events
from runner.summary.record import TRACK
from runner.summary.rolling import RollingSummary
from runner.summary.values import Attempt

pytestmark = pytest.mark.anyio
Sessions = SessionService
CALL = {"tool_calls": [{"name": "look", "arguments": {}}]}
USED = TokenUsage(input_tokens=90, output_tokens=10)


class Forking(Steered):
    """Wants the request of the agent."""

    forks = True


@tool
async def look() -> str:
    """Look."""
    return "r" * 400


async def test_what_is_known_of_a_turn() -> None:
    """After each event: the agent's model and window, the tokens that its request took with what came since, and the
    request to fork with everything said after it, which shows all stored events."""
    model = ScriptedModel([CALL, "done"], context_window=5000)
    steered = Forking(fires=True)
    async with Runner("app", LLMAgent("bot", model, tools=[look]), summaries=steered) as runner:
        await runner.run_text("ann", "s", "go")
        session = await runner.sessions.get(SessionKey("app", "ann", "s"))
    assert session is not None
    last = steered.inputs[-1].context
    assert last.model is model
    assert last.window == 5000
    assert last.parent is not None
    assert [message.role for message in last.parent.messages] == ["user", "assistant", "tool", "assistant"]
    assert last.parent.messages[:-1] == model.requests[-1].messages
    given = [event.id for one in steered.inputs if one.filter_key == "app" for event in one.events]
    assert given == [event.id for event in session.events]
    assert steered.inputs[0].context.parent_events == {event.id for event in steered.inputs[0].events}


async def test_results_of_tools_count_on_top() -> None:
    """A round of tools is looked at with the tokens that the model counted and those of the results; the answer with
    what the model counted then."""
    seen: list[int | None] = []

    class Asking(Steered):
        async def due(self, given: Any) -> Any:
            """Note the tokens."""
            seen.append(given.context.request_tokens)
            return await super().due(given)

    model = ScriptedModel([CALL, "done"], usage=USED, delay=0.05)  # so slow that the round is looked at by itself
    async with Runner("app", LLMAgent("bot", model, tools=[look]), summaries=Asking(fires=False)) as runner:
        await runner.run_text("ann", "s", "go")
    assert seen == [200, 200, 100, 100]  # of the branch and of the whole session


async def test_agents_side_by_side_have_their_own_requests() -> None:
    """Each branch's summary is asked for behind its own agent's request, of its own model; that of the whole session
    behind none."""
    models = {name: ScriptedModel([f"{name} one"]) for name in ("a", "b")}
    steered = Forking()
    both = ParallelAgent("both", [LLMAgent(name, models[name]) for name in models])
    async with Runner("app", both, summaries=steered) as runner:
        async for _ in runner.run("ann", "s", "go"):
            pass
    for given in steered.inputs:
        name = given.filter_key.removeprefix("app/")
        assert given.context.model is models[name]
        assert given.context.parent is not None
        assert given.context.parent.messages[-1].text == f"{name} one"
    assert {given.filter_key for given in steered.inputs} == {"app/a", "app/b"}


def test_what_a_request_shows() -> None:
    """An event is shown if all its messages are there word by word; of two that say the same, one that is there once
    is the newer one."""
    from graphagent.testing.service_help import asks, says

    first, second, other, retold = asks("same"), asks("same"), says("other"), says("no")
    request = ModelRequest((Message.user("same"), Message.assistant("other"), Message.user("For context: no")))
    assert shown_events(request, [first, second, other, retold]) == {second.id, other.id}


async def test_a_summary_that_hangs_does_not_keep_a_runner_open() -> None:
    """`close` waits its time, gives the summary up, and leaves everything as it was."""
    sessions = InMemorySessions()

    async def hang(given: Any) -> str:
        await asyncio.sleep(60)
        return "never"

    runner = Runner(
        "app",
        LLMAgent("bot", ScriptedModel(["hello"])),
        sessions=sessions,
        summaries=Steered(hang),
        policy=RunnerPolicy(close_timeout=0.2),
    )
    await runner.run_text("ann", "s", "go")
    await runner.close()
    assert runner.summaries is not None
    assert runner.summaries.rolling.stats.outcomes["cancelled"] == 1
    session = await sessions.get(SessionKey("app", "ann", "s"))
    assert session is not None
    assert session.summaries == {}


async def test_what_makes_no_summaries_is_refused() -> None:
    """A model in the place of a summariser is an error that names what is wanted."""
    agent = LLMAgent("bot", ScriptedModel([]))
    with pytest.raises(UsageError, match="ModelSummarizer"):
        Runner("app", agent, summaries=ScriptedModel([]))  # type: ignore[arg-type]


async def test_every_attempt_is_told(sessions: Sessions) -> None:
    """The listener hears of each, also of copies and of those that were cancelled; those that took something are on a
    track of the session; one that fails as a listener costs nothing."""
    key = await talk(sessions, "app")
    heard: list[Attempt] = []

    async def listen(attempt: Attempt) -> None:
        heard.append(attempt)
        raise RuntimeError("broken")

    begun = asyncio.Event()

    async def hang(given: Any) -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    steered = Steered()
    rolling = RollingSummary(sessions, steered, listener=listen)
    await refresh(rolling, key, "app")
    await refresh(rolling, key, "app")
    await say(sessions, key, "more", "app")
    steered.text = hang
    task = asyncio.create_task(rolling.summarize(key, "app"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    outcomes = [attempt.outcome for attempt in heard]
    assert outcomes == ["updated", "updated", "nothing_new", "nothing_new", "cancelled"]
    assert list(rolling.recent) == heard
    assert rolling.stats.snapshot()["outcome.updated"] == 2
    assert rolling.stats.calls == 1
    session = await sessions.get(key)
    assert session is not None
    track = session.tracks[TRACK]
    assert [item["outcome"] for item in track] == ["updated", "updated", "cancelled"]
    assert [item["filter_key"] for item in track] == ["app", WHOLE, "app"]


async def test_a_blocked_key_has_no_summary(sessions: Sessions) -> None:
    """Asked directly for a key that is not on the allow list nothing happens, even by force."""
    key = await talk(sessions, "app/b")
    rolling = RollingSummary(sessions, Steered(), policy=SummaryPolicy(allow=["app/a"]))
    assert (await rolling.summarize(key, "app/b", force=True)).outcome == "blocked"
    assert (await rolling.summarize(key, WHOLE)).updated


async def test_a_real_fork_in_the_background() -> None:
    """`ModelSummarizer(fork=True)` behind a Runner asks the agent's model, behind the agent's own request, and covers
    what that shows."""
    model = ScriptedModel(["The cat is Mia.", "SUMMARY", "bye"])
    other = ScriptedModel([])
    summarizer = ModelSummarizer(other, checks=(), fork=True)
    options = SummaryOptions(summarizer=summarizer, policy=SummaryPolicy(cascade=False))
    sessions = InMemorySessions()
    async with Runner("app", LLMAgent("bot", model), sessions=sessions, summaries=options) as runner:
        await runner.run_text("ann", "s", "my cat is Mia")
    asked = model.requests[1].messages
    assert [message.text for message in asked[:2]] == ["my cat is Mia", "The cat is Mia."]
    assert len(asked) == 3
    session = await sessions.get(SessionKey("app", "ann", "s"))
    assert session is not None
    assert session.summaries["app"].text == "SUMMARY"
    assert session.tracks[TRACK][0]["mode"] == "cache_safe_fork"
    assert other.requests == []
