"""Compaction: bounds of results and of rounds, what a summary covers, and what holds whatever the policy. Numbers:
spec/context, 19, and public reports."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.compacting import NOW, covered, results, simple, turn, view

from graphagent.ledger import Event
from graphagent.messages import Message
from graphagent.models.tokens import SIMPLE
from processors import Compaction
from processors.shorten import BY_POLICY, CONTEXT_NOTE, ELIDED


def test_a_round_with_loaded_history_keeps_its_bound() -> None:
    """What was loaded takes its share of a round's bound, and the others are cut to the rest."""
    events = turn(NOW, 8000, calls=3, final=False)
    first, *others = events[2].messages
    events[2] = events[2].model_copy(update={"messages": (first.model_copy(update={"name": "session_load"}), *others)})
    shown = results(view(events, simple(group=4000)))
    assert shown[0] == "x" * 8000
    assert sum(map(SIMPLE.text, shown)) <= 4000


def test_a_round_of_one_result_has_the_bound_of_a_round() -> None:
    """One result that is longer than all of a round may be is cut, too."""
    [shown] = results(view(turn(NOW, 80_000, final=False), simple()))
    assert SIMPLE.text(shown) <= 16_384


def test_a_tool_without_a_name_is_on_no_list() -> None:
    """An empty name on a list means no tool."""
    events = [*turn("r1", 100), *turn("r2", 1), *turn(NOW, 1, final=False)]
    nameless = events[2].messages[0].model_copy(update={"name": ""})
    events[2] = events[2].model_copy(update={"messages": (nameless,)})
    assert results(view(events, simple(clean={""})))[0] == "x" * 100


@pytest.mark.parametrize("text", [f"{ELIDED} is how it began. ", f"{BY_POLICY} ", "\n[... 5 of 9 characters are left "])
def test_a_result_that_quotes_a_placeholder_is_none(text: str) -> None:
    """A tool can't get a long result past the bounds by the words of a placeholder."""
    events = turn(NOW, 0, final=False)
    events[2] = events[2].model_copy(update={"messages": (Message.tool(text + "y" * 8000, f"{NOW}-0", name="read"),)})
    assert SIMPLE.text(results(view(events, simple(oversized=500)))[0]) <= 500


def test_a_result_that_is_too_long_alone_and_in_its_round_is_cut_once() -> None:
    """The mark counts what is missing of the whole result, whichever bound was the narrower one."""
    events = turn(NOW, 20_000, calls=4, final=False)
    for text in results(view(events, simple(oversized=2000, group=4000))):
        assert text.count(" of 20000 characters are left out") == 1
        assert text.count("left out") == 1


def test_where_the_mark_takes_the_room_a_smaller_one_stands() -> None:
    """Many results in a small round: each still names its event and its call."""
    events = turn(NOW, 4000, calls=40, final=False)
    shown = results(view(events, simple(group=1600)))
    assert all(f"event_id: {events[2].id}, tool_call_id: {NOW}-{at} " in text for at, text in enumerate(shown))
    assert all(SIMPLE.text(text) < 50 for text in shown)


def test_c060_a_covered_round_that_the_model_goes_on_from_is_made_short() -> None:
    """The newest round of the run, which a summary covers, keeps its place: long results are placeholders that say so,
    long arguments a note; those of tools on the keep list stay."""
    events = turn(NOW, 8000, calls=2, final=False)
    asked = events[1].messages[0]
    long = asked.tool_calls[0].model_copy(update={"arguments": {"text": "z" * 8000}})
    calls = {"tool_calls": (long, *asked.tool_calls[1:])}
    events[1] = events[1].model_copy(update={"messages": (asked.model_copy(update=calls),)})
    assert results(covered(events, None)) == ["x" * 8000] * 2
    projection = covered(events, simple())
    assert all("reason: current_invocation_summary" in text for text in results(projection))
    [call] = [line.message for line in projection.lines if line.message.tool_calls]
    assert list(call.tool_calls[0].arguments) == [CONTEXT_NOTE]
    assert call.tool_calls[1] == asked.tool_calls[1]
    assert projection.compacted.results == 3
    assert projection.compacted.tokens > 5000
    assert results(covered(events, simple(keep={"read"}))) == ["x" * 8000] * 2


POLICIES = st.builds(
    simple,
    clean=st.sampled_from([(), ("drop",)]),
    keep=st.sampled_from([(), ("keep",)]),
    historical=st.sampled_from([0, 1, 30, 1024]),
    oversized=st.sampled_from([0, 1, 40, 300]),
    group=st.sampled_from([0, 1, 60, 800, 16_384]),
    recent_turns=st.integers(0, 2),
    skip_recent=st.integers(0, 3),
)
TURNS = st.lists(
    st.tuples(
        st.sampled_from(["read", "drop", "keep", "session_load"]),
        st.sampled_from([0, 5, 150, 600, 6000]),
        st.integers(1, 12),
        st.booleans(),
    ),
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(turns=TURNS, policy=POLICIES, all_covered=st.booleans())
def test_c177_compaction_never_splits_a_round(turns: list[Any], policy: Compaction, all_covered: bool) -> None:
    """Whatever the policy: every message keeps its place and its ids, what is shortened is shorter, and neither a
    second application nor the guard's pass over the messages changes anything."""
    events: list[Event] = []
    for at, (tool, size, calls, final) in enumerate(turns):
        events += turn(f"r{at}", size, tool=tool, calls=calls, final=final)
    events += turn(NOW, 900, calls=3, final=False)
    project = covered if all_covered else view
    whole, short = project(events, None), project(events, policy)
    shape = [(line.message.role, line.message.tool_call_id, line.place) for line in whole.lines]
    assert [(line.message.role, line.message.tool_call_id, line.place) for line in short.lines] == shape
    for before, after in zip(results(whole), results(short), strict=True):
        assert after in (before, BY_POLICY) or SIMPLE.text(after) < SIMPLE.text(before)
    assert policy(short).lines == short.lines
    messages = tuple(line.message for line in short.lines)
    assert policy.within(messages, lambda call: "").messages == messages
