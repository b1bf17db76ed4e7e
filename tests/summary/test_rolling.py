"""The rolling summary: what goes in, what moves, and that a failure changes nothing. Numbers: spec/context, 19."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.rolling import Steered, say, talk

from graphagent.errors import ServiceError, SummaryError
from graphagent.ledger import WHOLE, Boundary, Summary
from graphagent.models import ScriptedModel
from graphagent.services import SessionService
from graphagent.testing.service_help import fresh_key, says
from runner.sessions import InMemorySessions
from runner.summary.rolling import RollingSummary, uncovered
from runner.summary.summarizer import ModelSummarizer

pytestmark = pytest.mark.anyio
Sessions = SessionService


async def stored(sessions: Sessions, key: Any, filter_key: str = WHOLE) -> Summary | None:
    """The stored summary."""
    session = await sessions.get(key)
    assert session is not None
    return session.summaries.get(filter_key)


async def test_c023_the_first_summary(sessions: Sessions) -> None:
    """It covers up to the last event, by number, id and time; its time is the event's, not the clock's."""
    key = await talk(sessions)
    attempt = await RollingSummary(sessions, Steered()).summarize(key)
    session = await sessions.get(key)
    assert session is not None
    last = session.events[-1]
    assert attempt.updated
    assert attempt.summary == session.summaries[WHOLE]
    assert session.summaries[WHOLE].boundary == Boundary(
        filter_key=WHOLE, seq=last.seq, cutoff_at=last.timestamp, last_event_id=last.id
    )
    assert session.summaries[WHOLE].updated_at == last.timestamp


async def test_c024_the_next_one_takes_what_is_new(sessions: Sessions) -> None:
    """The former text and the events after its boundary go in, and the boundary moves to the last of them."""
    key = await talk(sessions)
    steered = Steered()
    rolling = RollingSummary(sessions, steered)
    first = await rolling.summarize(key)
    new = [await say(sessions, key, f"new {n}", "app") for n in range(4)]
    second = await rolling.summarize(key)
    assert steered.inputs[1].previous == first.summary
    assert [event.id for event in steered.inputs[1].events] == [event.id for event in new]
    assert second.summary is not None
    assert second.summary.boundary.seq == new[-1].seq


async def test_c025_nothing_new(sessions: Sessions) -> None:
    """Without a new event and without force the summariser is not called."""
    key = await talk(sessions)
    steered = Steered()
    rolling = RollingSummary(sessions, steered)
    await rolling.summarize(key)
    assert (await rolling.summarize(key)).outcome == "nothing_new"
    assert len(steered.inputs) == 1


async def test_c026_forced_over_the_former_text(sessions: Sessions) -> None:
    """With force and nothing new the text may change, the boundary does not."""
    key = await talk(sessions)
    first = await RollingSummary(sessions, Steered()).summarize(key)
    steered = Steered(lambda given: "shorter")
    second = await RollingSummary(sessions, steered).summarize(key, force=True)
    assert [given.events for given in steered.inputs] == [()]
    assert first.summary is not None
    assert second.summary is not None
    assert second.summary.text == "shorter"
    assert second.summary.boundary == first.summary.boundary


async def test_c027_forced_over_nothing(sessions: Sessions) -> None:
    """With force, no events and no former summary the built-in summariser fails, and nothing is stored."""
    key = fresh_key()
    await sessions.create(*key)
    attempt = await RollingSummary(sessions, ModelSummarizer(ScriptedModel([]))).summarize(key, force=True)
    assert attempt.outcome == "failed"
    assert "no events" in attempt.reason
    assert await stored(sessions, key) is None


@pytest.mark.parametrize(
    ("text", "outcome"), [(lambda given: "", "empty"), (lambda given: ValueError("model is down"), "failed")]
)
async def test_c028_empty_or_failed(sessions: Sessions, text: Any, outcome: str) -> None:
    """An empty text or an error leaves text and boundary as they were; the error names the session."""
    key = await talk(sessions)
    before = (await RollingSummary(sessions, Steered()).summarize(key)).summary
    await say(sessions, key, "more", "app")
    attempt = await RollingSummary(sessions, Steered(text)).summarize(key)
    assert attempt.outcome == outcome
    assert await stored(sessions, key) == before
    if outcome == "failed":
        assert isinstance(attempt.error, SummaryError)
        assert key.session in str(attempt.error)
        assert "model is down" in str(attempt.error)


async def test_c029_cancelled(sessions: Sessions) -> None:
    """Cancelled while it sums up, or while it waits for another one: raised, nothing written, nobody locked out."""
    key = await talk(sessions)
    begun = asyncio.Event()

    async def hang() -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    steered = Steered(lambda given: hang())
    rolling = RollingSummary(sessions, steered)
    one = asyncio.create_task(rolling.summarize(key))
    await begun.wait()
    other = asyncio.create_task(rolling.summarize(key))
    await asyncio.sleep(0.02)
    for task in (other, one):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(steered.inputs) == 1
    assert await stored(sessions, key) is None
    assert rolling.stats.outcomes["cancelled"] == 2
    steered.text = lambda given: "now"
    assert (await rolling.summarize(key)).updated


async def test_c030_two_at_once(sessions: Sessions) -> None:
    """Two calls for one key: one model call, the second finds nothing new. Other keys and sessions go on beside it."""
    key, another = await talk(sessions, "app/a", "app/b"), await talk(sessions)
    together = 0
    most = 0

    async def slowly() -> str:
        nonlocal together, most
        together += 1
        most = max(most, together)
        await asyncio.sleep(0.05)
        together -= 1
        return "text"

    steered = Steered(lambda given: slowly())
    rolling = RollingSummary(sessions, steered)
    found = await asyncio.gather(
        rolling.summarize(key, "app/a"),
        rolling.summarize(key, "app/a"),
        rolling.summarize(key, "app/b"),
        rolling.summarize(another),
    )
    assert sorted(attempt.outcome for attempt in found) == ["nothing_new", "updated", "updated", "updated"]
    assert len(steered.inputs) == 3
    assert most == 3


async def test_c031_the_same_time_is_no_reason(sessions: Sessions) -> None:
    """Events of one and the same time on both sides of the boundary: each is summed up once, none is lost."""
    key = fresh_key()
    await sessions.create(*key)
    ids = []
    rolling = RollingSummary(sessions, Steered())
    for number in range(4):
        ids.append((await sessions.append(key, says(f"{number}", timestamp=5.0, filter_key="app"))).id)
        if number == 0:
            await say(sessions, key, "q", "app", person=True)
        if number % 2:
            await rolling.summarize(key)
    summary = await stored(sessions, key)
    assert summary is not None
    assert [word for word in summary.text.split() if word in ids] == ids[1:]  # the first stood before any question


async def test_c032_the_boundary_is_a_number(sessions: Sessions) -> None:
    """A boundary whose event nobody knows covers what has a lower number: nothing is hidden or taken twice by time."""
    key = await talk(sessions)
    session = await sessions.get(key)
    assert session is not None
    second = session.events[1]
    boundary = Boundary(filter_key=WHOLE, seq=second.seq, cutoff_at=9e9, last_event_id="deleted")
    assert await sessions.put_summary(key, WHOLE, Summary(text="t", boundary=boundary, updated_at=1), after=None)
    session = await sessions.get(key)
    assert session is not None
    assert [event.seq for event in uncovered(session, WHOLE)] == [e.seq for e in session.events[2:]]


async def test_c033_a_branch_has_its_own(sessions: Sessions) -> None:
    """The delta of `app/a` is `app/a` and what is below it: not its ancestors, siblings, or events without a key."""
    key = await talk(sessions, "app", "app/a", "app/a/x", "app/b", "", count=1)
    steered = Steered()
    await RollingSummary(sessions, steered).summarize(key, "app/a")
    assert [event.filter_key for event in steered.inputs[0].events] == ["app/a", "app/a/x"]


async def test_c041_the_session_is_gone(sessions: Sessions) -> None:
    """A session that vanishes while it is summed up: an error, and the attempt still has the text that was paid for."""
    key = await talk(sessions)

    async def vanish() -> str:
        await sessions.delete(key)
        return "text"

    rolling = RollingSummary(sessions, Steered(lambda given: vanish()))
    attempt = await rolling.summarize(key)
    assert attempt.outcome == "failed"
    assert attempt.spent.calls == 1
    assert rolling.stats.ahead == 1
    assert (await rolling.summarize(key)).outcome == "failed"


async def test_another_summary_stays(sessions: Sessions) -> None:
    """A summary that another process stored meanwhile is not overwritten."""
    key = await talk(sessions)
    theirs = Summary(text="theirs", boundary=Boundary(seq=1, cutoff_at=1.0, last_event_id="x"), updated_at=1.0)

    async def slow() -> str:
        assert await sessions.put_summary(key, WHOLE, theirs, after=None)
        return "ours"

    attempt = await RollingSummary(sessions, Steered(lambda given: slow())).summarize(key)
    assert attempt.outcome == "overtaken"
    assert await stored(sessions, key) == theirs


async def test_what_comes_meanwhile_stays_in_view(sessions: Sessions) -> None:
    """C182: events that come while the summary is made are not covered by it, whatever the clock says."""
    key = await talk(sessions)
    came = []

    async def slow() -> str:
        came.extend([await say(sessions, key, f"meanwhile {n}", "app") for n in range(3)])
        return "text"

    await RollingSummary(sessions, Steered(lambda given: slow())).summarize(key)
    session = await sessions.get(key)
    assert session is not None
    assert [event.id for event in uncovered(session, WHOLE)] == [event.id for event in came]


async def test_what_is_left_for_next_time_is_summed_up_then(sessions: Sessions) -> None:
    """Recent events that the summariser leaves stay uncovered, and go in next time."""
    key = await talk(sessions, count=5)
    steered = Steered(keep=2)
    rolling = RollingSummary(sessions, steered)
    await rolling.summarize(key)
    steered.keep = 0
    await rolling.summarize(key)
    first, second = steered.inputs
    assert second.events == first.events[3:]


async def test_a_store_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is asked twice; a summary that it never took is counted as ahead of it, and what was there stays."""
    sessions = InMemorySessions()
    key = await talk(sessions)
    asked = 0

    async def refuse(*args: Any, **options: Any) -> bool:
        nonlocal asked
        asked += 1
        raise ServiceError("disk full")

    monkeypatch.setattr(sessions, "put_summary", refuse)
    rolling = RollingSummary(sessions, Steered())
    attempt = await rolling.summarize(key)
    assert (attempt.outcome, asked, rolling.stats.ahead) == ("failed", 2, 1)
    assert rolling.stats.snapshot()["output_tokens"] == 5


async def test_a_summariser_that_lies(sessions: Sessions) -> None:
    """Covered events that were not the first of those given would hide others: an error, nothing is stored."""
    key = await talk(sessions)

    class Liar(Steered):
        async def summarize(self, given: Any) -> Any:
            """The last event only."""
            made = await super().summarize(given)
            return made._replace(covered=given.events[-1:])

    attempt = await RollingSummary(sessions, Liar()).summarize(key)
    assert attempt.outcome == "failed"
    assert await stored(sessions, key) is None


async def test_without_a_summariser_and_gate_closed(sessions: Sessions) -> None:
    """Without a summariser, or when none is due, nothing happens; the attempt says why."""
    key = await talk(sessions)
    assert (await RollingSummary(sessions, None).summarize(key)).outcome == "refused"
    attempt = await RollingSummary(sessions, Steered(fires=False)).summarize(key)
    assert (attempt.outcome, attempt.reason) == ("refused", "'steered' is not met")
    assert (await RollingSummary(sessions, Steered(fires=False)).summarize(key, force=True)).updated
