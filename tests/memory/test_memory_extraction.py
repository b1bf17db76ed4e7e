"""Extraction: what is read, once, and where the cursor stands when something fails."""

from __future__ import annotations

from typing import Any

import pytest
from support.remembering import Told, add, cursor, each_said, result, talk

from graphagent.agents.agent_tool import TRIGGER
from graphagent.errors import ServiceError
from graphagent.ledger import Event
from graphagent.messages import Message
from graphagent.testing.service_help import asks, says
from runner.memory import InMemoryMemory, MemoryExtraction, Operation, append_only, interval, message_count
from runner.memory.checks import Waiting, all_of, any_of
from runner.memory.delta import CURSOR, MODE, POLLUTED, Cursor, portions
from runner.memory.job import TRIES, Extraction
from runner.sessions import InMemorySessions

pytestmark = pytest.mark.anyio


def extraction(kept: Any, extractor: Told, **options: Any) -> Extraction:
    """An extraction that adds all it is told."""
    return Extraction(kept.sessions, kept.memory, MemoryExtraction(extractor=extractor, policy=append_only, **options))


async def texts(kept: Any) -> list[str]:
    """What is remembered, sorted."""
    return sorted(memory.text for memory in await kept.memory.load(kept.key.app, kept.key.user))


class Failing:
    """A service that fails in some calls. `broken`: the names of these calls; `calls`: what was called."""

    def __init__(self, service: Any, *broken: str) -> None:
        self.service = service
        self.broken = set(broken)
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        if name in self.broken:
            raise ServiceError(f"{name} is down")
        return getattr(self.service, name)


async def test_what_is_new_is_read_once(kept: Any) -> None:
    """Each message is read once; the cursor is in the session as the service stores it, so another process goes on
    from there."""
    told = Told()
    await talk(kept.sessions, kept.key, "likes tea", "noted")
    report = await extraction(kept, told).run(kept.key)
    assert (report.outcome, report.messages, [done.result for done in report.done]) == ("extracted", 2, ["added"])
    stored = await talk(kept.sessions, kept.key, "has a dog", "nice", result())
    again = extraction(kept, told)
    assert (await again.run(kept.key)).outcome == "extracted"
    assert (await again.run(kept.key)).outcome == "nothing_new"
    assert told.read == ["likes tea", "noted", "has a dog", "nice"]
    assert await cursor(kept.sessions, kept.key) == stored[-1].seq
    assert await texts(kept) == ["has a dog", "likes tea"]


async def test_c105_a_failed_extraction_leaves_the_cursor(kept: Any) -> None:
    """The next time the same messages are read again, together with those that came since."""
    told = Told(RuntimeError("no model"))
    await talk(kept.sessions, kept.key, "likes tea", "noted")
    with pytest.raises(RuntimeError, match="no model"):
        await extraction(kept, told).run(kept.key)
    assert await cursor(kept.sessions, kept.key) == 0
    told.answer = each_said
    await talk(kept.sessions, kept.key, "has a dog")
    await extraction(kept, told).run(kept.key)
    assert told.read[2:] == ["likes tea", "noted", "has a dog"]


async def test_c105_a_single_failing_write_leaves_the_rest(kept: Any) -> None:
    """A memory that can't be one stops none of the others, and the cursor goes on."""
    told = Told(lambda given: [add("one"), add(" "), add("two", kind="dream"), add("three")])
    stored = await talk(kept.sessions, kept.key, "hi", "hello")
    report = await extraction(kept, told).run(kept.key)
    assert [done.result for done in report.done] == ["added", "refused", "refused", "added"]
    assert await texts(kept) == ["one", "three"]
    assert await cursor(kept.sessions, kept.key) == stored[-1].seq
    session = await kept.sessions.get(kept.key)
    assert session.state[CURSOR]["operations"] == []


async def test_what_a_service_fails_to_do_is_done_next_time(kept: Any) -> None:
    """The cursor goes on, no message is read twice, and the changes are made as soon as the service can; after some
    tries they are given up."""
    told = Told()
    await talk(kept.sessions, kept.key, "likes tea", "noted")
    broken = Failing(kept.memory, "add")
    assert (await extraction(kept._replace(memory=broken), told).run(kept.key)).done[0].result == "failed"
    assert broken.calls.count("add") == 2
    assert await texts(kept) == []
    assert (await extraction(kept, told).run(kept.key)).outcome == "extracted"
    assert await texts(kept) == ["likes tea"]
    assert len(told.given) == 1
    await talk(kept.sessions, kept.key, "has a dog")
    for _ in range(TRIES + 1):
        await extraction(kept._replace(memory=broken), told).run(kept.key)
    assert (await extraction(kept, told).run(kept.key)).outcome == "nothing_new"
    assert await texts(kept) == ["likes tea"]


async def test_c106_only_results_of_tools(kept: Any) -> None:
    """Nothing was said, so nothing is asked, and the cursor stays."""
    told = Told()
    await talk(kept.sessions, kept.key, "hi")
    await extraction(kept, told).run(kept.key)
    before = await cursor(kept.sessions, kept.key)
    call = Message.assistant("let me see", tool_calls=({"id": "c1", "name": "look"},))  # type: ignore[arg-type]
    await talk(
        kept.sessions,
        kept.key,
        Event(author="bot", messages=(call,)),
        result(),
        says("inner").model_copy(update={"extensions": {TRIGGER: "c1"}}),
    )
    assert (await extraction(kept, told).run(kept.key)).outcome == "nothing_new"
    assert len(told.given) == 1
    assert await cursor(kept.sessions, kept.key) == before


async def test_c107_a_polluted_session(kept: Any) -> None:
    """With the option nothing is taken from a session that is marked, or into which a tool has brought documents: then
    it is marked. Without it all is read."""
    told = Told()
    await talk(kept.sessions, kept.key, "likes tea", result("a document", name="knowledge_search"))
    job = extraction(kept, told, skip_polluted=True)
    assert (await job.run(kept.key)).outcome == "polluted"
    session = await kept.sessions.get(kept.key)
    assert session.state[MODE] == POLLUTED
    await talk(kept.sessions, kept.key, "has a dog")
    assert (await job.run(kept.key)).outcome == "polluted"
    assert (told.given, await cursor(kept.sessions, kept.key)) == ([], 0)
    assert (await extraction(kept, told).run(kept.key)).outcome == "extracted"
    assert told.read == ["likes tea", "has a dog"]


async def test_a_check_lets_messages_wait(kept: Any) -> None:
    """Until it is worth it nothing is asked and the cursor stays; then all that waits is read."""
    told = Told()
    job = extraction(kept, told, check=message_count(3))
    for number in range(2):
        await talk(kept.sessions, kept.key, f"fact {number}", "noted")
        assert (await job.run(kept.key)).outcome == ("extracted" if number else "not_due")
    assert told.read == ["fact 0", "noted", "fact 1", "noted"]


def test_checks() -> None:
    """The number of messages, the time since the last extraction, and both together."""
    waiting = Waiting((), 100.0, 110.0)
    assert (interval(9)(waiting), interval(10)(waiting), interval(99)(waiting._replace(last=None))) == (
        True,
        False,
        True,
    )
    assert not message_count(0)(waiting)
    assert any_of(message_count(0), interval(9))(waiting)
    assert not all_of(message_count(0), interval(9))(waiting)


async def test_a_run_that_goes_on_is_left_to_its_end(kept: Any) -> None:
    """Up to the last event of the run that ended; what the next run has said already is read after that."""
    told = Told()
    first = [asks("one", request_id="r1"), says("ok", request_id="r1"), asks("two", request_id="r2")]
    await talk(kept.sessions, kept.key, *first)
    job = extraction(kept, told)
    await job.run(kept.key, "r1")
    assert told.read == ["one", "ok"]
    assert (await job.run(kept.key, "r0")).outcome == "nothing_new"
    await talk(kept.sessions, kept.key, says("fine", request_id="r2"))
    await job.run(kept.key, "r2")
    assert told.read == ["one", "ok", "two", "fine"]


async def test_a_long_session_is_read_in_portions(kept: Any) -> None:
    """No request is much larger than a portion, nothing is left out, and what was read counts when a later portion
    fails."""
    told = Told()
    await talk(kept.sessions, kept.key, *(f"message {n} {'x' * 100}" for n in range(20)))

    def until_the_third(given: Any) -> Any:
        if len(told.given) == 3:
            raise RuntimeError("enough")
        return each_said(given)

    told.answer = until_the_third
    with pytest.raises(RuntimeError, match="enough"):
        await extraction(kept, told, portion=120).run(kept.key)
    read = [said.text for given in told.given[:2] for said in given.messages]
    assert await cursor(kept.sessions, kept.key) == told.given[1].messages[-1].seq
    told.given.clear()
    told.answer = each_said
    await extraction(kept, told, portion=120).run(kept.key)
    assert [text.split()[1] for text in (*read, *told.read)] == [str(n) for n in range(20)]
    assert all(given.messages[0].role == "user" for given in told.given)


async def test_what_may_be_meant_is_shown(kept: Any) -> None:
    """The extractor sees memories that fit what was said; if they can't be searched, the newest; if those can't be read
    either, it is not asked."""
    await kept.memory.add(kept.key.app, kept.key.user, "has a dog that is named Rex")
    await kept.memory.add(kept.key.app, kept.key.user, "works at a bank")
    await talk(kept.sessions, kept.key, "my dog Rex is ill, we go to the vet tomorrow")
    told = Told(lambda given: [])
    await extraction(kept, told).run(kept.key)
    assert [memory.text for memory in told.given[0].existing] == ["has a dog that is named Rex"]
    await talk(kept.sessions, kept.key, "poor dog")
    await extraction(kept._replace(memory=Failing(kept.memory, "search")), told).run(kept.key)
    assert len(told.given[1].existing) == 2
    await talk(kept.sessions, kept.key, "poor dog")
    with pytest.raises(ServiceError, match="load is down"):
        await extraction(kept._replace(memory=Failing(kept.memory, "search", "load")), told).run(kept.key)
    assert len(told.given) == 2


@pytest.mark.parametrize("crash", ["before", "between", "after"])
async def test_a_crash_between_memories_and_cursor(kept: Any, crash: str) -> None:
    """Wherever it stops between what was found and the cursor, the next one ends it: no second question to the
    extractor, every change made, and made once."""
    app, user = kept.key.app, kept.key.user
    old = await kept.memory.add(app, user, "likes tea", topics=["drinks"], location="Oslo")
    gone = await kept.memory.add(app, user, "likes milk")
    told = Told(
        lambda given: [
            Operation("update", old.id, "likes green tea", {}),
            Operation("delete", gone.id),
            add("met Ben", kind="episode", event_time=5.0),
        ]
    )
    await talk(kept.sessions, kept.key, "hi", "hello")
    made = await extraction_dies(kept, told, crash)
    assert made == {"before": 0, "between": 1, "after": 3}[crash]
    assert await cursor(kept.sessions, kept.key) == 0
    assert (await extraction(kept, told).run(kept.key)).outcome == "extracted"
    assert len(told.given) == 1
    found = {memory.text: memory for memory in await kept.memory.load(app, user)}
    assert set(found) == {"likes green tea", "met Ben"}
    assert (found["likes green tea"].topics, found["likes green tea"].location) == (("drinks",), "Oslo")
    assert await cursor(kept.sessions, kept.key) > 0


async def extraction_dies(kept: Any, told: Told, crash: str) -> int:
    """Run an extraction that ends in the middle, as if the process died; returns how many changes it made."""

    class Died(BaseException):
        pass

    made: list[str] = []
    room = {"before": 0, "between": 1, "after": 3}[crash]

    class Dying:
        def __getattr__(self, name: str) -> Any:
            found = getattr(kept.memory, name)
            if name not in ("add", "update", "delete"):
                return found

            async def call(*args: Any, **about: Any) -> Any:
                if len(made) == room:
                    raise Died
                made.append(name)
                return await found(*args, **about)

            return call

    class DyingSessions(Failing):
        async def update_state(self, key: Any, delta: Any) -> None:
            if len(made) == 3:
                raise Died
            await self.service.update_state(key, delta)

    services = kept._replace(memory=Dying(), sessions=DyingSessions(kept.sessions))
    with pytest.raises(Died):
        await extraction(services, told).run(kept.key)
    return len(made)


async def test_nothing_is_asked_without_an_operation() -> None:
    """With no operation allowed no model is asked and nothing counts as read; an unknown session is no error."""
    sessions, told = InMemorySessions(), Told()
    session = await sessions.create("app", "ann", "s1")
    await talk(sessions, session.key, "likes tea")
    job = Extraction(sessions, InMemoryMemory(), MemoryExtraction(extractor=told, operations=()))
    assert (await job.run(session.key)).outcome == "not_allowed"
    assert told.given == []
    await sessions.delete(session.key)
    assert (await job.run(session.key)).outcome == "gone"


@pytest.mark.parametrize("value", [None, 5, "2023-05-07T00:00:00Z", {"seq": 3}, {"seq": 1, "operations": 5}])
def test_a_cursor_that_cannot_be_read_is_none(value: Any) -> None:
    """What isn't a cursor counts as none."""
    assert Cursor.of({CURSOR: value}) == Cursor()


def test_a_cursor_comes_back() -> None:
    """Numbers and operations are read as they were written."""
    kept = Cursor(7, 1.5, 9, (add("x", topics=["a"]), Operation("delete", "id")), 2)
    assert Cursor.of(kept.delta()) == kept


def test_a_long_message_is_cut_and_not_left_out() -> None:
    """Its beginning and its end are read; an event is never split between two portions."""
    both = Event(seq=2, messages=(Message.user("a" * 500), Message.assistant("b" * 500)))
    found = portions([asks("first", seq=1), both, asks("last", seq=3)], 100)
    assert [portion.until for portion in found] == [1, 2, 3]
    assert [len(said.text) for said in found[1].messages] == [407, 407]
