"""The newest events are enough: same messages as of all events, at the cost of what is shown."""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from support.random_sessions import random_projector, random_session
from support.talks import Talk, faults, short
from test_projection_properties import budgets, pipelines, readers, sessions

from graphagent.ledger import Boundary, Event, Session, Summary
from graphagent.messages import Message
from processors import (
    Block,
    Budget,
    Given,
    HistoryLimit,
    Pipeline,
    Projection,
    Reader,
    Summaries,
    Visibility,
    assemble,
    default_pipeline,
    tail,
)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "FEWEST", 1)  # short sessions shall be cut too


@settings(max_examples=400, deadline=None)
@given(sessions(), readers(), pipelines, budgets)
def test_any_session_gives_the_same_messages(
    session: Session, reader: Reader, pipeline: Any, budget: Budget | None
) -> None:
    """Whatever the session, the newest events make the messages that all events make, or all are taken."""
    start = Projection.of(session, reader, budget=budget)
    found = pipeline.newest(start)
    assert assemble(found) == assemble(pipeline(start))
    assert faults(assemble(found)) == []
    assert len(found.events) + found.earlier == len(session.events)


def test_sessions_of_agents_give_the_same_messages() -> None:
    """Sessions with rounds cut off, siblings and summaries, read in their last turn: same messages; many are cut."""
    random, cut = Random(7), 0
    for _ in range(1500):
        session = random_session(random)
        pipeline = random_projector(random).pipeline
        newest = session.events[-1] if session.events else Event()
        ids = {"request_id": newest.request_id, "invocation_id": newest.invocation_id, "branch": "bot"}
        reader = Reader(agent="bot", filter_key=random.choice(["app", "app/a"]), message=Message.user("x"), **ids)
        budget = random.choice([None, None, Budget(random.randrange(30), lambda m: len(m.text.split()) + 1)])
        start = Projection.of(session, reader, budget=budget)
        found = pipeline.newest(start)
        assert assemble(found) == assemble(pipeline(start))
        cut += bool(found.earlier)
    assert cut > 150


def long(turns: int) -> Talk:
    """A talk of so many turns, each with a round of tools; the last one waits for its answer."""
    talk = Talk()
    for turn in range(turns):
        talk.turn(request_id=f"r{turn}", invocation_id=f"i{turn}").user(f"question {turn}")
        talk.bot("", f"c{turn}").results(f"c{turn}")
        if turn < turns - 1:
            talk.bot(f"answer {turn}", reasoning="hm" if turn % 5 == 0 else None)
    return talk


def calls(pipeline: Pipeline, start: Projection) -> int:
    """Python functions that are called for a projection."""
    count = 0

    def seen(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        pipeline.newest(start)
    finally:
        sys.setprofile(None)
    return count


CHAINS = [
    pytest.param(default_pipeline(limit=HistoryLimit(40)), None, id="limit"),
    pytest.param(default_pipeline(summaries=Summaries()), None, id="summary"),
    pytest.param(default_pipeline(visibility=Visibility(timeline="request")), None, id="request"),
    pytest.param(default_pipeline(), Budget(60, lambda message: len(message.text.split()) + 1), id="budget"),
]


@pytest.mark.parametrize(("pipeline", "budget"), CHAINS)
def test_the_cost_is_that_of_what_is_shown(
    pipeline: Pipeline, budget: Budget | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is five times as long takes as many calls of Python functions."""
    monkeypatch.undo()
    counts = []
    for turns in (100, 500):
        talk = long(turns)
        boundary = talk.events[-22]
        talk.summary("app", "SUM", upto=boundary.id, before=boundary.timestamp)
        start = Projection.of(talk.session, talk.reader(f"question {turns - 1}"), budget=budget)
        assert assemble(pipeline.newest(start)) == assemble(pipeline(start))
        counts.append(calls(pipeline, start))
    assert counts[0] == counts[1]


def test_what_is_not_looked_at_is_noted() -> None:
    """How many older events there are, and which step keeps them out of view."""
    talk = long(9)
    found = default_pipeline(limit=HistoryLimit(4)).newest(Projection.of(talk.session, talk.reader("question 8")))
    assert short(assemble(found))[-1] == "tool c8 ok"
    assert (found.earlier, found.earlier_why) == (24, "history")
    assert "the 24 event(s) before are not looked at: none can be in view (history)" in [n.text for n in found.notes]


def test_a_step_of_ones_own_gets_all_events() -> None:
    """What it looks at isn't known, so nothing is left out."""
    talk = long(9)
    seen: list[int] = []

    def own(projection: Projection) -> Projection:
        seen.append(len(projection.events))
        return projection

    pipeline = Pipeline((*default_pipeline(limit=HistoryLimit(2)).steps, own))
    pipeline.newest(Projection.of(talk.session, talk.reader("question 8")))
    assert seen == [len(talk.events)]


def same(
    talk: Talk, reader: Reader, pipeline: Pipeline, budget: Budget | None = None, given: Given | None = None
) -> Projection:
    """The projection of the newest events, which has the messages that all events make."""
    start = Projection.of(talk.session, reader, budget=budget, given=given)
    found = pipeline.newest(start)
    assert assemble(found) == assemble(pipeline(start))
    return found


def test_a_result_of_an_older_call() -> None:
    """What the agent is asked with answers a call of many turns ago: the call is looked for."""
    talk = long(3).bot("wait", "far").turn(request_id="rx", invocation_id="ix")
    for turn in range(9):
        talk.turn(request_id=f"s{turn}", invocation_id=f"j{turn}").user("hm").bot("yes")
    talk.turn(request_id="z", invocation_id="z").event(Message.tool("at last", "far"), author="bot")
    reader = talk.reader(None, message=Message.tool("at last", "far"))
    found = same(talk, reader, default_pipeline(limit=HistoryLimit(2)))
    assert "tool far at last" in short(assemble(found))


def test_a_result_of_an_older_call_of_its_own_run() -> None:
    """A newer call of another run has the same id: the result still goes to that of its own run, however old."""
    talk = Talk().turn(request_id="r0", invocation_id="own").user("go").bot("old", "c")
    for turn in range(9):
        talk.turn(request_id=f"s{turn}", invocation_id=f"j{turn}").user("hm").bot("yes")
    talk.turn(request_id="y", invocation_id="other").user("and").bot("new", "c")
    talk.turn(request_id="z", invocation_id="own").results("c").user("now")
    same(talk, talk.reader("now"), default_pipeline(limit=HistoryLimit(3)))


def test_an_older_event_of_the_readers_run() -> None:
    """A run that had begun in an older request sees what it said there."""
    talk = Talk().turn(request_id="r0", invocation_id="own").user("go").bot("so far")
    for turn in range(9):
        talk.turn(request_id=f"s{turn}", invocation_id=f"j{turn}").user("hm").bot("yes")
    talk.turn(request_id="z", invocation_id="own").user("now")
    found = same(talk, talk.reader("now"), default_pipeline(visibility=Visibility(timeline="invocation")))
    assert short(assemble(found)) == ["user go", "assistant so far", "user now"]


def test_a_boundary_before_the_newest_events() -> None:
    """Its last covered event is not among them: its time is not taken instead. One before all covers none."""
    talk = long(9).bot("of an older clock", timestamp=0.5).summary("app", "SUM", upto="e3", before=3.0)
    budget = Budget(50, lambda message: len(message.text.split()) + 1)
    found = same(talk, talk.reader("question 8"), default_pipeline(summaries=Summaries()), budget)
    assert short(assemble(found))[-1] == "assistant of an older clock"
    events = [event.numbered(place + 10) for place, event in enumerate(talk.events)]
    boundary = Boundary(filter_key="app", seq=5, cutoff_at=9e9)
    summary = Summary(text="SUM", boundary=boundary, updated_at=0.0)
    session = Session(app="app", user="u", id="s", events=events, summaries={"app": summary})
    found = default_pipeline(summaries=Summaries()).newest(Projection.of(session, talk.reader("question 8")))
    assert len(found.lines) == len(events)


def test_a_block_in_the_first_message_of_the_user() -> None:
    """It may count more in one message than in another, so with a budget all are looked at."""
    talk = long(6)
    given = Given(blocks=(Block("memory", "MEM", "user"),))
    for tokens in range(40):
        budget = Budget(tokens, lambda message: 9 if message.text in ("MEM\n\nquestion 0", "answer 4") else 2)
        same(talk, talk.reader("question 5"), default_pipeline(), budget, given)


def test_a_boundary_with_a_number() -> None:
    """The number of a boundary says what is covered, whatever the times; what follows it is all that is looked at."""
    talk = long(9)
    events = [event.numbered(place + 10) for place, event in enumerate(talk.events)]
    boundary = Boundary(filter_key="app", seq=events[19].seq, cutoff_at=9e9)
    summary = Summary(text="SUM", boundary=boundary, updated_at=0.0)
    session = Session(app="app", user="u", id="s", events=events, summaries={"app": summary})
    start = Projection.of(session, talk.reader("question 8"))
    pipeline = default_pipeline(summaries=Summaries())
    assert short(assemble(pipeline.newest(start)))[1:3] == ["user question 5", "assistant >c5"]
    assert pipeline.newest(start).earlier == 16
    assert assemble(pipeline.newest(start)) == assemble(pipeline(start))
