"""Limits of the history: whole groups, the question always, a budget of tokens."""

from __future__ import annotations

import pytest
from support.talks import Talk, faults, short

from graphagent.errors import AgentError
from graphagent.messages import Message
from processors import Budget, HistoryLimit, Projection, Summaries, assemble, default_pipeline


def words(message: Message) -> int:
    """A count for tests: one a word, one a call."""
    return len(message.text.split()) + len(message.tool_calls)


def fit(talk: Talk, text: str, tokens: int) -> Projection:
    """The projection under a budget of so many words."""
    start = Projection.of(talk.session, talk.reader(text), budget=Budget(tokens, words))
    return default_pipeline()(start)


def old_talk() -> Talk:
    """A past turn with a round of two calls; the second turn begins now."""
    talk = Talk(request_id="r0", invocation_id="i0").user("one").bot("", "c1", "c2").results("c1", "c2").bot("two")
    return talk.turn(request_id="r1", invocation_id="i1").user("three")


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, ["user three"]),
        (2, ["assistant two", "user three"]),
        (3, ["assistant two", "user three"]),
        (4, ["assistant two", "user three"]),
        (5, ["assistant >c1 >c2", "tool c1 ok", "tool c2 ok", "assistant two", "user three"]),
        (9, ["user one", "assistant >c1 >c2", "tool c1 ok", "tool c2 ok", "assistant two", "user three"]),
        (0, ["user one", "assistant >c1 >c2", "tool c1 ok", "tool c2 ok", "assistant two", "user three"]),
    ],
)
def test_c070_the_last_messages(count: int, expected: list[str]) -> None:
    """Only the last n; where the cut lands on results, they are left out as well; 0 is no limit."""
    assert old_talk().seen("three", default_pipeline(limit=HistoryLimit(count))) == expected


def test_c070_beside_summaries_it_is_not_applied() -> None:
    """With summaries in use the limit is ignored, and a note says so."""
    talk = old_talk()
    projection = talk.run(talk.reader("three"), default_pipeline(summaries=Summaries(), limit=HistoryLimit(1)))
    assert len(projection.lines) == 6
    assert [note.action for note in projection.notes if note.step == "history"] == ["ignored"]


@pytest.mark.parametrize("count", range(1, 21))
def test_c174_groups_are_whole_at_every_limit(count: int) -> None:
    """A turn with three calls in sequence, cut to the last n: pairs are whole, the question and the last round stay."""
    talk = Talk().user("go")
    for number in range(3):
        talk.bot("", f"c{number}").results(f"c{number}")
    found = assemble(talk.run(talk.reader("go"), default_pipeline(limit=HistoryLimit(count))))
    assert faults(found) == []
    assert short(found)[0] == "user go"
    assert short(found)[-2:] == ["assistant >c2", "tool c2 ok"]
    assert len(found) <= max(count, 2) + 1


def test_c177_a_group_of_parallel_calls_is_kept_or_dropped_as_a_whole() -> None:
    """A budget that has room for two of three results leaves the whole group out, never a part of it."""
    talk = Talk(request_id="r0").user("q").bot("", "c1", "c2", "c3").results("c1", "c2", "c3").bot("a")
    talk.turn(request_id="r1", invocation_id="i2").user("next")
    for tokens in range(1, 12):
        found = assemble(fit(talk, "next", tokens))
        assert faults(found) == []
        assert sum(message.role == "tool" for message in found) in (0, 3)
    assert short(assemble(fit(talk, "next", 8))) == [
        "assistant >c1 >c2 >c3",
        "tool c1 ok",
        "tool c2 ok",
        "tool c3 ok",
        "assistant a",
        "user next",
    ]
    assert short(assemble(fit(talk, "next", 7))) == ["assistant a", "user next"]


def test_c178_the_question_outlives_a_large_result() -> None:
    """A short question, then a result that is larger than the budget: the question and the round stay, a note warns."""
    talk = Talk(request_id="r0").user("old").bot("old").turn(request_id="r1").user("why")
    talk.bot("", "c1").results("c1", text="word " * 50)
    projection = fit(talk, "why", 20)
    assert [message.role for message in assemble(projection)] == ["user", "assistant", "tool"]
    assert "more than the budget of 20" in projection.notes[-1].text


def test_c191_a_count_is_never_stale() -> None:
    """Counted is what is there: after the session was emptied, one short message is all."""
    talk = Talk(request_id="r0").user("word " * 999).turn(request_id="r1").user("hi there")
    assert short(assemble(fit(talk, "hi there", 1000))) == ["user hi there"]
    talk.events.clear()
    projection = fit(talk.user("hi there"), "hi there", 2)
    assert sum(map(words, assemble(projection))) == 2
    assert projection.notes[-1].step == "visibility"


def test_a_limit_below_zero_is_an_error() -> None:
    """The number of messages is at least 0."""
    with pytest.raises(AgentError, match="got -1"):
        HistoryLimit(-1)


def test_c193_a_batch_of_results_counts_as_a_whole() -> None:
    """Ten parallel results, each small enough, together three times the budget: an older batch is left out as a whole,
    and said so; the last one stays, since the model goes on from it, and a note says that it is too large."""
    names = [f"c{number}" for number in range(10)]
    talk = Talk(request_id="r0").user("q").bot("", *names).results(*names, text="word " * 9).bot("a")
    asked = talk.turn(request_id="r1", invocation_id="i2").user("next")
    projection = fit(asked, "next", 30)
    assert short(assemble(projection)) == ["assistant a", "user next"]
    assert any(note.action == "dropped" and "budget of 30" in note.text for note in projection.notes)
    asked.bot("", *names).results(*names, text="word " * 9)
    projection = fit(asked, "next", 30)
    assert len(assemble(projection)) == 12
    assert "more than the budget of 30" in projection.notes[-1].text
