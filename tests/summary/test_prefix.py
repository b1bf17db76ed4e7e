"""Which beginning of a conversation may be summed up."""

from __future__ import annotations

from random import Random

import pytest
from support.random_sessions import random_events
from support.talks import Talk

from processors.rounds import match_rounds
from runner.summary.prefix import coverable, lines_of, safe_ends


def turns(talk: Talk, first: int, last: int) -> Talk:
    """Plain turns, each a request of its own."""
    for number in range(first, last + 1):
        talk.turn(request_id=f"r{number}", invocation_id=f"i{number}").user(f"ask {number}").bot(f"answer {number}")
    return talk


def covered(talk: Talk, **options: object) -> list[str]:
    """Ids of what may be covered."""
    return [event.id for event in coverable(talk.events, **options).events]  # type: ignore[arg-type]


def test_a_tool_round_is_never_parted() -> None:
    """A prefix ends before a round or behind its last result, however many events the results come in."""
    talk = Talk().user("u").bot("", "c1", "c2").results("c1").results("c2").bot("done")
    assert safe_ends(talk.events) == (1, 4, 5)


def test_rounds_that_interleave_are_kept_whole_together() -> None:
    """Parallel agents: the end of one round lies within another, so neither is an end."""
    talk = Talk().user("u").bot("", "a", invocation_id="x").bot("", "b", invocation_id="y")
    talk.results("a", invocation_id="x").results("b", invocation_id="y").bot("end")
    assert safe_ends(talk.events) == (1, 5, 6)


def test_calls_that_are_numbered_alike_are_told_apart() -> None:
    """The same call id in two rounds: each has its own result."""
    talk = Talk().user("u").bot("", "c").results("c").bot("", "c").results("c").bot("end")
    assert safe_ends(talk.events) == (1, 3, 5, 6)


def test_C169_a_call_that_waits_for_the_person_stays_out() -> None:
    """The turn ends with a call that asks for consent: it and what follows it is not summed up."""
    talk = turns(Talk(), 1, 2).turn(request_id="r3", invocation_id="i3").user("delete it").bot("", "c1")
    assert covered(talk) == ["e1", "e2", "e3", "e4", "e5"]
    assert coverable(talk.events).why == "a tool round is open from event 'e6' on"


def test_C169_a_call_to_an_external_tool_is_held_over_later_turns() -> None:
    """Asked in turn 3 of 6 and still without an answer: it stays in view; with the answer all may be covered."""
    talk = turns(Talk(), 1, 2).turn(request_id="r3", invocation_id="i3").user("delete it")
    talk.bot("", "c1", long_running_tool_ids=frozenset({"c1"}))
    turns(talk, 4, 6)
    assert covered(talk) == ["e1", "e2", "e3", "e4", "e5"]
    talk.turn(request_id="r7", invocation_id="i7").results("c1", text="yes")
    assert len(covered(talk)) == len(talk.events)


def test_a_call_that_nobody_answers_holds_up_no_summary_for_ever() -> None:
    """After so many turns it may be covered: a result that comes all the same brings its call back into view."""
    talk = Talk(request_id="r0").user("go").bot("", "c1", long_running_tool_ids=frozenset({"c1"}))
    turns(talk, 1, 3)
    assert covered(talk, pin_turns=3) == ["e1"]
    assert len(covered(talk, pin_turns=2)) == len(talk.events)


def test_a_call_of_a_turn_that_is_over_holds_nothing_up() -> None:
    """A crash between call and result: from the next turn on no result comes, and the summary goes on."""
    talk = turns(Talk(request_id="r0").user("go").bot("", "c1"), 1, 1)
    assert safe_ends(talk.events) == (1, 2, 3, 4)


def test_what_a_person_says_within_the_turn_begins_no_other() -> None:
    """A message that is sent while a tool runs has the request id of the turn: the call still waits."""
    talk = Talk(request_id="r1").user("go").bot("", "c1").user("and hurry")
    assert safe_ends(talk.events) == (1,)


def test_C187_two_records_of_one_call_hold_nothing_up() -> None:
    """A tool that ended as it was aborted left two results: the round is complete with the first."""
    talk = Talk().user("u").bot("", "c1").results("c1").results("c1", text="aborted").bot("end")
    assert safe_ends(talk.events) == (1, 3, 4, 5)


def test_c034_recent_events_are_left_for_next_time() -> None:
    """The last two of five stay out, and the boundary lies behind the third."""
    talk = Talk().user("one").bot("two").user("three").bot("four").user("five")
    assert covered(talk, skip=2) == ["e1", "e2", "e3"]
    assert covered(talk, skip=lambda events: len(events) - 1) == ["e1"]
    assert covered(talk, skip=-3) == ["e1", "e2", "e3", "e4", "e5"]


def test_c034_recent_events_never_part_a_round() -> None:
    """The last ones begin with a result: its call stays out with it."""
    talk = Talk().user("one").bot("", "c1").results("c1").bot("four")
    assert covered(talk, skip=2) == ["e1"]


@pytest.mark.parametrize("skip", [3, 9])
def test_c035_nothing_is_left_if_all_is_recent(skip: int) -> None:
    """As many recent events as there are, or more: nothing may be covered."""
    talk = Talk().user("one").bot("two").user("three")
    assert covered(talk, skip=skip) == []


def test_c035_what_is_left_must_have_a_persons_words() -> None:
    """An answer alone is no conversation, unless it follows a former summary."""
    talk = Talk().bot("one").user("two")
    assert covered(talk, skip=1) == []
    assert covered(talk, skip=1, previous=True) == ["e1"]


@pytest.mark.parametrize("seed", range(300))
def test_no_end_parts_a_round(seed: int) -> None:
    """Random sessions, also ill-formed ones: at each end every matched call has its results on the same side."""
    events = random_events(Random(seed))
    lines = lines_of(events)
    matched = match_rounds(lines)
    ends = safe_ends(events)
    assert list(ends) == sorted(set(ends))
    for end in ends:
        for round_ in matched.rounds.values():
            sides = {lines[at].place < end for at in (round_.at, *round_.in_call_order)}
            assert len(sides) == 1
