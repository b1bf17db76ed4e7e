"""Summaries: which one is used, what it hides, what stays in view all the same, where its text goes."""

from __future__ import annotations

from typing import Any

import pytest
from support.talks import Talk, faults, short

from graphagent.messages import Message, ToolCall
from processors import (
    HistoryLimit,
    Instructions,
    Pipeline,
    Projection,
    Recall,
    Summaries,
    Visibility,
    assemble,
    default_pipeline,
)
from processors.projection import Block, Given

PLAIN = Summaries(wording=lambda text: text)


def with_summaries(policy: Summaries = PLAIN, **policies: Any) -> Pipeline:
    """The default chain with summaries in it."""
    return default_pipeline(summaries=policy, **policies)


def old_talk() -> Talk:
    """Two turns of the past; the third begins now."""
    talk = Talk(request_id="r0", invocation_id="i0").user("one").bot("two")
    talk.turn(request_id="r1", invocation_id="i1").user("three").bot("four")
    return talk.turn(request_id="r2", invocation_id="i2").user("five")


def test_c055_a_summary_stands_for_what_it_covers() -> None:
    """The text once and only later events; the session keeps all; without the policy all events and no summary."""
    talk = old_talk().summary("app", "SUM", upto="e2", before=2.0)
    assert talk.seen("five", with_summaries()) == ["system SUM", "user three", "assistant four", "user five"]
    assert [event.id for event in talk.session.events] == ["e1", "e2", "e3", "e4", "e5"]
    assert talk.seen("five")[0] == "user one"


@pytest.mark.parametrize("timeline", ["request", "invocation"])
def test_c056_other_timelines_use_no_summary(timeline: Any) -> None:
    """With a timeline of request or run nothing is injected and nothing is cut off."""
    talk = old_talk().summary("app", "SUM", upto="e5", before=5.0)
    assert talk.seen("five", with_summaries(visibility=Visibility(timeline=timeline))) == ["user five"]


def test_c057_the_current_message_stays() -> None:
    """A summary made during the turn covers the question: it is still there, once."""
    talk = old_talk().summary("app", "SUM", upto="e5", before=5.0)
    assert talk.seen("five", with_summaries()) == ["system SUM", "user five"]


def test_c058_an_event_at_the_cutoff_stays() -> None:
    """Without an event id the boundary is a time, and the event of that very time is not covered."""
    talk = old_talk().summary("app", "SUM", before=3.0)
    assert talk.seen("five", with_summaries()) == ["system SUM", "user three", "assistant four", "user five"]


def test_c032_a_boundary_whose_event_is_gone_falls_back_to_its_time() -> None:
    """An id that isn't in the session is no boundary; the time is."""
    talk = old_talk().summary("app", "SUM", upto="trimmed", before=4.0)
    assert talk.seen("five", with_summaries()) == ["system SUM", "user three", "assistant four", "user five"]


def test_c059_a_call_comes_back_for_its_result() -> None:
    """Call covered, result in view: the needed call is back without its text, next to its result; the other isn't."""
    talk = Talk(request_id="r0", invocation_id="i0").user("one").bot("let me look", "c1", "c2", reasoning="hm")
    talk.results("c1").results("c2").bot("done").turn(request_id="r1", invocation_id="i1").user("two")
    talk.summary("app", "SUM", upto="e3")
    assert talk.seen("two", with_summaries()) == [
        "system SUM",
        "user one",
        "assistant >c2",
        "tool c2 ok",
        "assistant done",
        "user two",
    ]


def test_c060_the_newest_round_of_the_run_stays() -> None:
    """All rounds of the running turn are covered: the newest is kept whole, earlier ones are in the summary."""
    talk = Talk().user("go").bot("a", "c1").results("c1").bot("b", "c2").results("c2").summary("app", "SUM", upto="e5")
    assert talk.seen("go", with_summaries()) == ["system SUM", "user go", "assistant b >c2", "tool c2 ok"]


@pytest.mark.parametrize(
    ("cut_b", "expected"),
    [
        (4.0, ["system A\n\nB", "user b3", "user a4", "user now"]),
        (0.0, ["system A\n\nB", "user a1", "user b2", "user b3", "user a4", "user now"]),
    ],
)
def test_c061_summaries_below_are_joined(cut_b: float, expected: list[str]) -> None:
    """Only app/a and app/b have summaries: texts in key order, the earlier cutoff; one without a cutoff hides none."""
    talk = Talk(request_id="r0", invocation_id="").user("a1", filter_key="app/a").user("b2", filter_key="app/b")
    talk.user("b3", filter_key="app/b").user("a4", filter_key="app/a")
    talk.summary("app/b", "B", before=cut_b).summary("app/a", "A", before=3.0)
    talk.turn(request_id="r1", invocation_id="i1").user("now")
    assert talk.seen("now", with_summaries()) == expected


def test_c033_a_branch_summary_hides_only_what_it_covers() -> None:
    """The summaries of app/a and app/b hide events of those keys and below, never one of app."""
    talk = Talk(request_id="r0", invocation_id="").user("root").user("a", filter_key="app/a")
    talk.user("ax", filter_key="app/a/x").summary("app/a", "A", upto="e3", before=9.0)
    talk.turn(request_id="r1", invocation_id="i1").user("now")
    assert talk.seen("now", with_summaries()) == ["system A", "user root", "user now"]
    found = talk.seen("now", with_summaries(), filter_key="app/a", invocation_id="i2")
    assert found == ["system A", "user root", "user now"]


def test_c062_the_whole_session_is_no_fallback() -> None:
    """Only the summary of the whole session: not for the reader 'app', but for one with branch mode all."""
    talk = old_talk().summary("", "WHOLE", upto="e4")
    assert talk.seen("five", with_summaries())[0] == "user one"
    found = talk.seen("five", with_summaries(visibility=Visibility(branch="all")))
    assert found == ["system WHOLE", "user five"]


def test_exact_and_subtree_readers_use_no_summary_from_below() -> None:
    """Only `prefix` joins the summaries below."""
    for branch in ("exact", "subtree"):
        talk = old_talk().summary("app/a", "A", upto="e4")
        assert talk.seen("five", with_summaries(visibility=Visibility(branch=branch)))[0] == "user one"


def test_c063_system_mode() -> None:
    """With a system message the text is appended to it; without one it makes the first message."""
    talk = old_talk().summary("app", "SUM", upto="e4")
    pipeline = with_summaries(instructions=Instructions("Be kind."))
    assert talk.seen("five", pipeline) == ["system Be kind.\n\nSUM", "user five"]
    assert talk.seen("five", with_summaries())[0] == "system SUM"


def test_c063_user_mode() -> None:
    """The text goes before the first message of the user; with no such message it makes one."""
    talk = old_talk().summary("app", "SUM", upto="e4")
    pipeline = with_summaries(Summaries("user", lambda text: text))
    assert talk.seen("five", pipeline) == ["user SUM\n\nfive"]
    talk = Talk(invocation_id="").bot("one").bot("two").summary("app", "SUM", upto="e1")
    assert talk.seen(None, pipeline) == ["user SUM", "assistant two"]


def test_c063_parts_keep_their_place() -> None:
    """A message of parts gets the text as a part in front."""
    message = Message.user([{"type": "image_url", "image_url": {"url": "x"}}])
    talk = Talk().bot("old").event(message, author="user").summary("app", "SUM", upto="e1")
    found = assemble(talk.run(talk.reader(message=message), with_summaries(Summaries("user", lambda text: text))))
    assert found[0].content == [{"type": "text", "text": "SUM"}, *message.content]


def test_the_wording_says_what_it_is() -> None:
    """By default a summary is in tags and gives way to the conversation; before the user's words it is background."""
    talk = old_talk().summary("app", "SUM", upto="e4")
    system = talk.seen("five", with_summaries(Summaries()))[0]
    assert "<summary_of_previous_interactions>\nSUM\n</summary_of_previous_interactions>" in system
    assert talk.seen("five", with_summaries(Summaries("user")))[0].startswith("user Context from previous interactions")


def test_blocks_come_in_a_fixed_order() -> None:
    """Memories, then the summary, then evidence, whatever the caller's order; each in its own mode."""
    talk = old_talk().summary("app", "SUM", upto="e4")
    blocks = (Block("recall", "EVIDENCE"), Block("memory", "MEMORY"), Block("recall", "LATER", "user"))
    start = Projection.of(talk.session, talk.reader("five"), given=Given(blocks=blocks))
    assert short(assemble(with_summaries()(start))) == ["system MEMORY\n\nSUM\n\nEVIDENCE", "user LATER\n\nfive"]
    assert Recall()(start).notes[0].text == "recall: 8 characters"


def test_examples_context_and_late_messages() -> None:
    """Examples follow the system message, context comes before the history, late messages before the last user's."""
    talk = old_talk()
    given = Given(
        examples=(Message.user("ex"), Message.assistant("ample")),
        context=(Message.user("ctx"),),
        late=(Message.system("late"),),
    )
    start = Projection.of(talk.session, talk.reader("five"), given=given)
    found = short(assemble(default_pipeline(instructions=Instructions("Be kind."), limit=HistoryLimit(2))(start)))
    expected = [
        "system Be kind.",
        "user ex",
        "assistant ample",
        "user ctx",
        "assistant four",
        "system late",
        "user five",
    ]
    assert found == expected


def test_a_turn_never_starts_in_its_middle() -> None:
    """The first message in view of a past turn is the agent's: the turn's covered user message is put before it."""
    talk = old_talk().summary("app", "SUM", upto="e3")
    assert talk.seen("five", with_summaries()) == ["system SUM", "user three", "assistant four", "user five"]


def test_c182_what_came_while_it_was_summarised_stays() -> None:
    """Three events came while the summary was made: the request is the summary and exactly those."""
    talk = Talk(request_id="r0", invocation_id="i0").user("one").bot("two")
    talk.turn(request_id="r1", invocation_id="i1").user("three").bot("four").user("five")
    talk.summary("app", "SUM", upto="e2", before=99.0)
    assert talk.seen("five", with_summaries()) == ["system SUM", "user three", "assistant four", "user five"]


def test_c183_a_summary_in_mid_turn() -> None:
    """Six tool rounds, summarised after the fourth: the question, the summary, and rounds five and six."""
    talk = Talk().user("go")
    for number in range(1, 7):
        talk.bot("", f"c{number}").results(f"c{number}")
    talk.summary("app", "SUM", upto="e9")
    assert talk.seen("go", with_summaries()) == [
        "system SUM",
        "user go",
        "assistant >c5",
        "tool c5 ok",
        "assistant >c6",
        "tool c6 ok",
    ]


def test_c188_a_second_agent_keeps_what_it_made() -> None:
    """A summary after the first of two agents: the second one's request starts with the user and has all its own."""
    talk = Talk(invocation_id="root").user("go").bot("first", author="one", invocation_id="i1")
    talk.turn(invocation_id="i2").bot("", "c1", author="bot").results("c1").summary("app", "SUM", upto="e2")
    expected = ["system SUM", "user go", "assistant >c1", "tool c1 ok"]
    assert talk.seen("go", with_summaries()) == expected
    assert talk.seen(None, with_summaries()) == expected


def test_c169_a_call_that_waited_past_the_summary() -> None:
    """A covered call is answered after the summary: it is back with its original arguments, next to its result."""
    talk = (
        Talk(request_id="r0", invocation_id="i0")
        .user("pay")
        .event(
            Message.assistant("", tool_calls=(ToolCall(id="c1", name="pay", arguments={"sum": 5}),)),
            author="bot",
            long_running_tool_ids=frozenset({"c1"}),
        )
    )
    talk.turn(request_id="r1", invocation_id="i1").summary("app", "SUM", upto="e2")
    talk.event(Message.tool("yes", "c1"), author="user")
    found = assemble(talk.run(talk.reader(message=Message.tool("yes", "c1")), with_summaries()))
    assert [call.arguments for message in found for call in message.tool_calls] == [{"sum": 5}]
    assert faults(found) == []
    assert short(found)[-2:] == ["assistant >c1", "tool c1 yes"]


def test_c180_thinking_and_call_stay_together() -> None:
    """A call that comes back across the boundary brings the thinking that its provider wants with it."""
    talk = Talk().user("go").bot("text", "c1", reasoning="why").results("c1").bot("", "c2").results("c2")
    talk.summary("app", "SUM", upto="e2")
    found = assemble(talk.run(talk.reader("go"), with_summaries()))
    first = next(message for message in found if message.role == "assistant")
    assert (first.reasoning, first.text, len(first.tool_calls)) == ("why", "", 1)
