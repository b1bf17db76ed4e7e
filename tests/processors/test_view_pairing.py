"""Tool calls and their results: matched, ordered, closed or left out by the written policy."""

from __future__ import annotations

import pytest
from support.talks import Talk, faults, short

from graphagent.messages import Message, ToolCall
from processors import Pairing, Projection, assemble, default_pipeline, sanitise


def past(talk: Talk) -> Talk:
    """The next request begins: what was running before has ended."""
    return talk.turn(request_id="r2", invocation_id="i2").user("next")


def notes(talk: Talk, text: str) -> list[tuple[str, str]]:
    """What the pairing step noted: action and event."""
    found = talk.run(talk.reader(text)).notes
    return [(note.action, note.event) for note in found if note.step == "pairing"]


def test_c067_results_in_the_order_of_their_calls() -> None:
    """Results that came out of order stand in call order behind their call; notes say so."""
    talk = Talk().user("go").bot("both", "c1", "c2").results("c2").results("c1")
    assert talk.seen("go") == ["user go", "assistant both >c1 >c2", "tool c1 ok", "tool c2 ok"]
    assert notes(talk, "go") == [("moved", "e4"), ("moved", "e3")]


def test_c067_a_round_that_is_still_running() -> None:
    """One result of the current request's round is missing: its calls are left out, the agent's text stays."""
    talk = Talk().user("go").bot("both", "c1", "c2").results("c2")
    assert talk.seen("go") == ["user go", "assistant both"]
    assert notes(talk, "go") == [("dropped", "e3"), ("changed", "e2")]


def test_c068_one_id_in_two_rounds() -> None:
    """Each result stays with its own round."""
    talk = Talk().user("go").bot("", "c").results("c", text="one").bot("", "c").results("c", text="two")
    assert talk.seen("go") == ["user go", "assistant >c", "tool c one", "assistant >c", "tool c two"]


def test_c069_what_has_no_partner() -> None:
    """A result without a call is absent; the sanitiser makes tagged text of an unanswered call and a second result."""
    talk = Talk().user("go").results("nobody").bot("done")
    assert talk.seen("go") == ["user go", "assistant done"]
    call = ToolCall(id="c1", name="look", arguments={"x": 1})
    found = sanitise((Message.assistant("hm", tool_calls=(call,)), Message.user("hi")))
    assert short(found) == ["assistant hm", 'user [orphan_tool_call] look {"x": 1}', "user hi"]
    twice = (Message.assistant("", tool_calls=(call,)), Message.tool("one", "c1"), Message.tool("two", "c1"))
    assert short(sanitise(twice)) == ["assistant >c1", "tool c1 one", "user [orphan_tool_result] c1: two"]


@pytest.mark.parametrize(
    ("calls", "results", "expected"),
    [
        ([("", "c1")], ["c1"], ["user [invalid_tool_call]  {}", "user [invalid_tool_result] c1: ok"]),
        ([("a", "c1"), ("a", "c1")], ["c1"], ["assistant >c1", "tool c1 ok", "user [invalid_tool_call] a {}"]),
        ([("bad", "c1"), ("a", "c2")], ["c2", "c1"], None),
        ([("a", "")], [""], ["user [orphan_tool_call] a {}", "user [orphan_tool_result] : ok"]),
    ],
)
def test_the_last_net(calls: list[tuple[str, str]], results: list[str], expected: list[str] | None) -> None:
    """Calls without a name, twice, without an id, or refused by a check become text; valid parts stay."""
    asked = Message.assistant("", tool_calls=tuple(ToolCall(id=id, name=name) for name, id in calls))
    messages = (asked, *(Message.tool("ok", id) for id in results))
    found = sanitise(messages, lambda call: "refused" if call.name == "bad" else None)
    if expected is None:
        expected = [
            "assistant >c2",
            "tool c2 ok",
            "user [invalid_tool_call] bad {}",
            "user [invalid_tool_result] c1: ok",
        ]
    assert short(found) == expected
    assert faults(found) == []


def test_c173_a_crash_between_call_and_result() -> None:
    """The next request closes the call with a result that says it was interrupted; a note says what was mended."""
    talk = past(Talk().user("go").bot("", "c1", "c2").results("c1"))
    found = talk.seen("next")
    assert found[:3] == ["user go", "assistant >c1 >c2", "tool c1 ok"]
    assert found[3].startswith("tool c2 [interrupted] The call of 'tool_c2' ended without a result")
    assert notes(talk, "next") == [("added", "e2")]
    assert talk.seen("next") == found


def test_unanswered_calls_can_be_left_out() -> None:
    """By policy: the calls of a round without all results are left out, its text stays."""
    talk = past(Talk().user("go").bot("look", "c1", "c2").results("c1").bot("", "c3"))
    found = talk.seen("next", default_pipeline(pairing=Pairing(unanswered="strip")))
    assert found == ["user go", "assistant look", "user next"]


def test_an_external_tool_waits() -> None:
    """A call whose result comes from outside is closed as waiting, and answered when it came."""
    talk = past(Talk().user("go").bot("", "c1", long_running_tool_ids=frozenset({"c1"})))
    assert talk.seen("next")[2] == "tool c1 [waiting] The call of 'tool_c1' has not been answered yet."
    talk.bot("meanwhile").turn(request_id="r3", invocation_id="i3").results("c1", author="user", text="42")
    answer = Message.tool("42", "c1")
    found = assemble(talk.run(talk.reader(message=answer)))
    assert short(found) == ["user go", "user next", "assistant meanwhile", "assistant >c1", "tool c1 42"]
    assert ("moved", "e2") in [(n.action, n.event) for n in talk.run(talk.reader(message=answer)).notes]


def test_a_result_without_a_call_that_the_agent_was_asked_with() -> None:
    """It can't be sent as a result, and it must not be lost: it is told as text."""
    talk = Talk().event(Message.tool("42", "gone"), author="user")
    found = assemble(talk.run(talk.reader(message=Message.tool("42", "gone"))))
    assert short(found) == ["user [orphan_tool_result] gone: 42"]


def test_c187_two_results_for_one_call() -> None:
    """The first final state of a call counts; the second record is left out."""
    talk = past(Talk().user("go").bot("", "c1").results("c1", text="done").results("c1", text="aborted"))
    assert talk.seen("next") == ["user go", "assistant >c1", "tool c1 done", "user next"]
    assert notes(talk, "next") == [("dropped", "e4")]


def test_c030_interleaved_branches_keep_their_pairs() -> None:
    """Two branches whose models number calls alike: each, and the agent above, sees results at their own calls."""
    talk = Talk().user("go", invocation_id="root")
    for key in ("a", "b"):
        talk.bot("", "auto_call_0", author=key, filter_key=f"app/{key}", invocation_id=key)
    for key in ("a", "b"):
        talk.results("auto_call_0", author=key, text=f"of {key}", filter_key=f"app/{key}", invocation_id=key)
    for key in ("a", "b"):
        found = talk.seen("go", agent=key, filter_key=f"app/{key}", invocation_id=key)
        assert found == ["user go", "assistant >auto_call_0", f"tool auto_call_0 of {key}"]
    assert talk.seen("go", agent="", filter_key="app", invocation_id="root") == [
        "user go",
        "assistant >auto_call_0",
        "tool auto_call_0 of a",
        "assistant >auto_call_0",
        "tool auto_call_0 of b",
    ]


def test_a_child_does_not_see_the_call_that_runs_it() -> None:
    """The agent above waits for the child's tool call: to the child that call is not there, what was said is."""
    talk = Talk(invocation_id="root").user("go").bot("I ask the child", "c1", author="root")
    found = talk.seen("task", agent="bot", filter_key="app/bot", invocation_id="i2")
    assert found == ["user go", "user For context: [root] said: I ask the child", "user task"]


def test_answered_rounds_of_earlier_requests_can_be_left_out() -> None:
    """`omit_previous_completed`: their text stays, the current request's rounds stay whole."""
    talk = past(Talk().user("go").bot("look", "c1").results("c1").bot("", "c2").results("c2").bot("done"))
    talk.bot("", "c3").results("c3")
    found = talk.seen("next", default_pipeline(pairing=Pairing(transcript="omit_previous_completed")))
    assert found == ["user go", "assistant look", "assistant done", "user next", "assistant >c3", "tool c3 ok"]


def test_several_results_in_one_event() -> None:
    """The results of a round are usually one event: nothing is moved, nothing is noted."""
    talk = Talk().user("go").bot("", "c1", "c2").results("c1", "c2")
    projection = default_pipeline()(Projection.of(talk.session, talk.reader("go")))
    assert short(assemble(projection)) == ["user go", "assistant >c1 >c2", "tool c1 ok", "tool c2 ok"]
    assert [note for note in projection.notes if note.step == "pairing"] == []
