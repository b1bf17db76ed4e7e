"""Compaction: which results of tools are shortened in a request, and how. Numbers: spec/context, 19."""

from __future__ import annotations

import hashlib
import random

import pytest
from support.compacting import NOW, results, simple, turn, view

from graphagent.errors import AgentError
from graphagent.ledger import Event, Session
from graphagent.models.tokens import SIMPLE, TokenCounter
from processors import Compaction, HistoryLimit, Projection, Reader, Visibility, default_pipeline
from processors.pairing import Pairing
from processors.shorten import BY_POLICY, ELIDED, is_short

THREE = [*turn("r1", 8000), *turn("r2", 8000), *turn(NOW, 40_000, final=False)]


def test_c074_off() -> None:
    """Without the step, or with every pass off, nothing is touched, and the projection is the very same."""
    assert results(view(THREE, None)) == ["x" * 8000, "x" * 8000, "x" * 40_000]
    off = simple(historical=0, group=0)
    before = view(THREE, None)
    assert off(before) is before
    assert before.compacted == (0, 0)


def test_c075_what_is_stored_stays() -> None:
    """The event of a shortened result is byte for byte what it was; the message in the request is another."""
    before = [event.model_dump_json() for event in THREE]
    shown = results(view(THREE, simple()))
    assert [event.model_dump_json() for event in THREE] == before
    assert shown[0].startswith(ELIDED)


def test_c076_the_running_turn() -> None:
    """A long result of this turn is untouched by default; with a bound it keeps head and tail around a mark."""
    assert results(view(THREE, simple()))[-1] == "x" * 40_000
    short = results(view(THREE, simple(oversized=8192)))[-1]
    assert short.startswith("xxx")
    assert short.endswith("xxx")
    assert "characters are left out here" in short
    assert "r9-0" in short
    assert SIMPLE.text(short) <= 8192


def test_c077_the_newest_finished_turn_is_kept() -> None:
    """The last turn that is over keeps its results, the one before doesn't; a turn that never ended doesn't count."""
    shown = results(view(THREE, simple()))
    assert [text.startswith(ELIDED) for text in shown] == [True, False, False]
    broken = [*turn("r1", 8000), *turn("r2", 8000), *turn("r3", 8000, final=False), *turn(NOW, 8, final=False)]
    assert [text.startswith(ELIDED) for text in results(view(broken, simple()))] == [True, False, True, False]
    assert [text.startswith(ELIDED) for text in results(view(THREE, simple(recent_turns=0)))] == [True, True, False]
    assert not any(text.startswith(ELIDED) for text in results(view(THREE, simple(recent_turns=0, skip_recent=9))))


@pytest.mark.parametrize(("size", "shortened"), [(4099, False), (4100, True)])
def test_c078_the_bound(size: int, shortened: bool) -> None:
    """1,024 tokens are kept, 1,025 are not; ids and names don't count."""
    events = [*turn("r1", size), *turn("r2", 1), *turn(NOW, 1, final=False)]
    assert results(view(events, simple()))[0].startswith(ELIDED) is shortened


def test_c078_a_placeholder_that_saves_nothing() -> None:
    """A result that is shorter than its placeholder stays."""
    events = [*turn("r1", 100), *turn("r2", 1), *turn(NOW, 1, final=False)]
    assert results(view(events, simple(historical=10)))[0] == "x" * 100


def test_c079_keep_and_clean() -> None:
    """Keep beats clean; a cleaned tool's results go once their turn is over, not in a protected one; events of no turn
    are cleaned, but don't become placeholders."""
    shown = results(view(THREE, simple(clean={"read"}, keep={"read"})))
    assert shown == ["x" * 8000, "x" * 8000, "x" * 40_000]
    assert results(view(THREE, simple(clean={"read"})))[:2] == [BY_POLICY, "x" * 8000]
    nowhere = [event.model_copy(update={"request_id": "", "invocation_id": ""}) for event in turn("", 8000)]
    events = [*nowhere, *turn("r2", 1), *turn(NOW, 1, final=False)]
    assert results(view(events, simple()))[0] == "x" * 8000
    assert results(view(events, simple(clean={"read"})))[0] == BY_POLICY


def test_c080_what_a_placeholder_says() -> None:
    """Event, call and tool always; the tool that loads events only where there is one, else when to call again."""
    for load in (False, True):
        tools = frozenset({"read", "session_load"} if load else {"read"})
        text = results(view(THREE, simple(), tools=tools))[0]
        assert f"event_id: {THREE[2].id}" in text
        assert "tool_call_id: r1-0" in text
        assert "tool_name: read" in text
        assert "reason: historical_compaction" in text
        assert ("session_load(event_id=" in text) is load
        assert ("repeating it does no harm" in text) is not load


def test_c081_twice_is_once() -> None:
    """Placeholders are known: a second application changes nothing."""
    policy = simple(oversized=500, group=2000, clean={"drop"})
    once = view([*turn("r0", 9000, tool="drop"), *THREE, *turn(NOW, 9000, calls=4, final=False)], policy)
    assert once.compacted.results > 3
    assert policy(once) is once


def test_c082_loaded_history_is_not_cut() -> None:
    """A result of the tool that loads events keeps its length under the bound for long results."""
    events = turn(NOW, 40_000, tool="session_load", final=False)
    assert results(view(events, simple(oversized=100))) == ["x" * 40_000]


def test_c083_a_counter_that_fails() -> None:
    """Then nothing is shortened by size, and what policy cleans still goes, with nothing counted as saved."""

    def fail(text: str) -> float:
        raise RuntimeError("no tokenizer")

    broken = Compaction(counter=TokenCounter(fail), clean={"drop"}, oversized=10)
    projection = view([*turn("r0", 9000, tool="drop"), *THREE], broken)
    assert results(projection) == [BY_POLICY, "x" * 8000, "x" * 8000, "x" * 40_000]
    assert projection.compacted == (1, 0)


def test_c193_a_round_has_a_bound_of_its_own() -> None:
    """Ten parallel results, each below the bound for one: together they keep that of the round, every one is still
    there, and short ones are whole."""
    events = turn(NOW, 4000, calls=10, final=False)
    mixed = list(events[2].messages)
    mixed[3] = mixed[3].model_copy(update={"content": "short"})
    events[2] = events[2].model_copy(update={"messages": tuple(mixed)})
    shown = results(view(events, simple(group=3000)))
    assert len(shown) == 10
    assert shown[3] == "short"
    assert sum(map(SIMPLE.text, shown)) <= 3000
    assert all("left out" in text for at, text in enumerate(shown) if at != 3)


def test_c178_the_question_stays() -> None:
    """However long the results of the running turn are, the question is in the request, and so is every call."""
    projection = view(turn(NOW, 400_000, calls=3, final=False), simple(oversized=1000, group=2000))
    assert next(line.message.text for line in projection.lines) == f"q {NOW}"
    assert [line.message.tool_call_id for line in projection.lines if line.message.role == "tool"] == [
        f"{NOW}-{n}" for n in range(3)
    ]


def test_who_sees_its_own_run_only_has_nothing_that_is_over() -> None:
    """Then long results are cut to size, and nothing else is done."""
    session = Session(app="app", user="ann", id="s", events=THREE)
    reader = Reader(agent="bot", filter_key="app", request_id=NOW, invocation_id=f"i{NOW}")
    chain = default_pipeline(visibility=Visibility(contents="invocation"), compaction=simple(clean={"read"}))
    assert results(chain(Projection.of(session, reader))) == ["x" * 40_000]


def test_bad_options() -> None:
    """A size below 0 is refused with its name, and so is a name where a list of names is meant."""
    with pytest.raises(AgentError, match=r"Compaction\(clean=\.\.\.\)' got 'read'"):
        Compaction(clean="read")
    with pytest.raises(AgentError, match=r"Compaction\(oversized=\.\.\.\)"):
        Compaction(oversized=-1)


def test_nothing_stored_is_changed_by_projections() -> None:
    """1,000 random projections of random sessions: the hashes of all events are what they were, calls and results stay
    paired, and a second application changes nothing."""
    draw = random.Random(193)
    for _ in range(1000):
        events: list[Event] = []
        for number in range(draw.randint(1, 5)):
            tool = draw.choice(["read", "drop", "keep"])
            events += turn(f"r{number}", draw.choice([5, 600, 6000]), tool=tool, calls=draw.randint(1, 3))
        events += turn(NOW, draw.choice([5, 6000]), calls=draw.randint(1, 4), final=False)
        policy = simple(
            clean={"drop"} if draw.random() < 0.5 else (),
            keep={"keep"} if draw.random() < 0.5 else (),
            historical=draw.choice([0, 100, 1024]),
            oversized=draw.choice([0, 300]),
            group=draw.choice([0, 800]),
            recent_turns=draw.randint(0, 2),
        )
        before = [hashlib.sha256(event.model_dump_json().encode()).hexdigest() for event in events]
        whole, short = view(events, None), view(events, policy)
        assert [hashlib.sha256(event.model_dump_json().encode()).hexdigest() for event in events] == before
        shape = [(line.message.role, line.message.tool_call_id, line.place) for line in short.lines]
        assert shape == [(line.message.role, line.message.tool_call_id, line.place) for line in whole.lines]
        again = Pairing()(short)
        assert policy(again).lines == short.lines
        for text, full in zip(results(short), results(whole), strict=True):
            assert text == full or is_short(text) or "left out" in text


def test_the_newest_events_are_enough() -> None:
    """The chain on the newest events makes the same messages as the one on all of them, with compaction too."""
    events = [event for number in range(80) for event in turn(f"t{number}", 6000)]
    session = Session(app="app", user="ann", id="s", events=[*events, *turn(NOW, 6000, final=False)])
    reader = Reader(agent="bot", filter_key="app", request_id=NOW, invocation_id=f"i{NOW}")
    chain = default_pipeline(limit=HistoryLimit(messages=21), compaction=simple(recent_turns=2))
    start = Projection.of(session, reader)
    few, all_ = chain.newest(start), chain(start)
    assert few.earlier > 0
    assert [line.message for line in few.lines] == [line.message for line in all_.lines]
