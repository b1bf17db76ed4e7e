"""Extractions in the background: their order, their room, and two that would read the same."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.remembering import Told, cursor, each_said, talk

from graphagent import LLMAgent
from graphagent.errors import UsageError
from graphagent.ids import fresh_id
from graphagent.ledger import SessionKey
from graphagent.models import ScriptedModel
from runner import Runner
from runner.lanes import Lanes
from runner.memory import InMemoryMemory, MemoryExtraction, Report
from runner.memory.worker import LEASE_KEY, MemoryWorker
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio


class Gated(Told):
    """An extractor that waits until it is let go."""

    def __init__(self) -> None:
        super().__init__(each_said)
        self.gate = anyio.Event()
        self.at_work = 0
        self.most = 0

    async def extract(self, given: Any) -> Any:
        """What each one said, once the gate is open."""
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        await self.gate.wait()
        self.at_work -= 1
        return await super().extract(given)


def worker(kept: Any, extractor: Told, reports: list[Report] | None = None, **options: Any) -> MemoryWorker:
    """A worker, whose reports are kept."""
    listener = None if reports is None else reports.append
    chosen = MemoryExtraction(extractor=extractor, listener=listener, **options)
    return MemoryWorker(kept.sessions, kept.memory, chosen)


async def test_two_jobs_of_one_session_never_overlap(kept: Any) -> None:
    """What is queued while the first one works is read after it, each message once, also by two workers that know
    nothing of each other, as in two processes."""
    gated, reports = Gated(), list[Report]()
    one, other = worker(kept, gated, reports), worker(kept, gated, reports)
    for place, text in enumerate(("likes tea", "has a dog", "lives in Oslo")):
        await talk(kept.sessions, kept.key, text)
        assert await (other if place == 1 else one).enqueue(kept.key) is None
        await anyio.sleep(0.02)
    gated.gate.set()
    assert await one.close(10)
    assert await other.close(10)
    assert gated.most == 1
    assert sorted(gated.read) == ["has a dog", "likes tea", "lives in Oslo"]
    assert {report.outcome for report in reports} <= {"extracted", "nothing_new"}


async def test_a_full_queue_has_the_caller_do_it() -> None:
    """With no room it is done at once, a session that waits already needs none, and after a cancelled run it is left to
    the next one: its messages are read then."""
    sessions, memory = InMemorySessions(), InMemoryMemory()
    keys = [SessionKey("app", "ann", f"s{number}") for number in range(4)]
    for key in keys:
        await talk(sessions, key, f"said in {key.session}")
    told = Told()
    gate = anyio.Event()

    class First(Told):
        async def extract(self, given: Any) -> Any:
            if given.key == keys[0]:
                await gate.wait()
            return await told.extract(given)

    options = MemoryExtraction(extractor=First(), queue=1)
    background = MemoryWorker(sessions, memory, options)
    assert await background.enqueue(keys[0]) is None
    await anyio.lowlevel.checkpoint()
    assert await background.enqueue(keys[1]) is None
    assert await background.enqueue(keys[1]) is None
    done = await background.enqueue(keys[2])
    assert done is not None
    assert (done.outcome, told.read) == ("extracted", ["said in s2"])
    assert await background.enqueue(keys[3], cancelled=True) is None
    gate.set()
    assert await background.close(10)
    assert told.read == ["said in s2", "said in s0", "said in s1"]
    late = await background.enqueue(keys[3])
    assert late is not None
    assert late.outcome == "extracted"


async def test_what_takes_too_long_is_left_to_the_next_time(kept: Any) -> None:
    """The report says so, the cursor stays, and the next one reads the same."""
    gated, reports = Gated(), list[Report]()
    await talk(kept.sessions, kept.key, "likes tea")
    report = await worker(kept, gated, reports, timeout=0.05).extract(kept.key)
    assert (report.outcome, reports) == ("failed", [report])
    assert "0.05 s" in report.reason
    assert await cursor(kept.sessions, kept.key) == 0
    gated.gate.set()
    assert (await worker(kept, gated).extract(kept.key)).outcome == "extracted"


async def test_another_process_that_works_on_it(kept: Any) -> None:
    """Nothing is read while another process has the session's lease; what it leaves is read next time."""
    await talk(kept.sessions, kept.key, "likes tea")
    told = Told()
    assert await kept.sessions.lease_summary(kept.key, LEASE_KEY, owner="other", seconds=30)
    report = await worker(kept, told, timeout=0.3).extract(kept.key)
    assert (report.outcome, told.given) in [("elsewhere", []), ("failed", [])]
    await kept.sessions.release_summary(kept.key, LEASE_KEY, owner="other")
    assert (await worker(kept, told).extract(kept.key)).outcome == "extracted"


async def test_a_failure_is_a_report() -> None:
    """An extractor, a listener or a session that is gone raise nothing into a run."""
    sessions = InMemorySessions()
    key = SessionKey("app", "ann", "s1")

    def broken(report: Report) -> None:
        raise RuntimeError("listener")

    options = MemoryExtraction(extractor=Told(RuntimeError("no model")), listener=broken)
    background = MemoryWorker(sessions, InMemoryMemory(), options)
    assert (await background.extract(key)).outcome == "gone"
    await talk(sessions, key, "likes tea")
    report = await background.extract(key)
    assert (report.outcome, report.reason) == ("failed", "RuntimeError: no model")


async def test_lanes_keep_the_order_of_each_owner() -> None:
    """Jobs of one owner are done in order, one that fails stops none, those of several owners side by side."""
    done: list[str] = []

    async def work(job: str) -> None:
        await anyio.sleep(0.01 if job == "a0" else 0)
        if job == "a1":
            raise RuntimeError("a1")
        done.append(job)

    lanes: Lanes[str] = Lanes(work, lanes=64, room=5, name="test")
    assert all(lanes.put(owner, f"{owner}{number}") for number in range(3) for owner in "ab")
    assert await lanes.stop(5)
    assert done.index("b2") < done.index("a0") < done.index("a2")
    assert len(done) == 5
    assert not lanes.put("a", "late")


async def test_lanes_that_are_not_done_in_time() -> None:
    """Who stops them learns of it."""
    lanes: Lanes[float] = Lanes(anyio.sleep, lanes=1, room=5, name="test")
    lanes.put("a", 0.2)
    assert not await lanes.stop(0.01)
    assert await lanes.stop(5)


def runner_of(kept: Any, model: ScriptedModel, told: Told, **options: Any) -> Runner:
    """A Runner that extracts after each run."""
    extraction = MemoryExtraction(extractor=told, **options)
    agent = LLMAgent("bot", model)
    return Runner(kept.key.app, agent, sessions=kept.sessions, memory=kept.memory, extraction=extraction)


async def test_a_runner_remembers_after_each_run(kept: Any) -> None:
    """What was said is remembered when the Runner has closed; a second Runner reads only what came since."""
    told = Told()
    for text in ("likes tea", "has a dog"):
        async with runner_of(kept, ScriptedModel([f"noted: {text}"]), told) as runner:
            await runner.run_text(kept.key.user, kept.key.session, text)
    assert told.read == ["likes tea", "noted: likes tea", "has a dog", "noted: has a dog"]
    found = await kept.memory.load(kept.key.app, kept.key.user)
    assert sorted(memory.text for memory in found) == ["has a dog", "likes tea"]


async def test_a_failed_extraction_costs_no_run(kept: Any) -> None:
    """Runs go on, and the next extraction reads what the failed one had."""
    told = Told(RuntimeError("no model"))
    async with runner_of(kept, ScriptedModel(["one", "two"]), told) as runner:
        assert await runner.run_text(kept.key.user, kept.key.session, "likes tea") == "one"
        assert runner.extraction is not None
        await runner.extraction.extract(kept.key)
        told.answer = each_said
        assert await runner.run_text(kept.key.user, kept.key.session, "has a dog") == "two"
    assert told.read[-4:] == ["likes tea", "one", "has a dog", "two"]


async def test_an_extraction_needs_a_memory() -> None:
    """Without one the Runner isn't made."""
    with pytest.raises(UsageError, match="memory="):
        Runner(fresh_id(), LLMAgent("bot", ScriptedModel([])), extraction=MemoryExtraction(extractor=Told()))
