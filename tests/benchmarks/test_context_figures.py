"""The measures of the context benchmark: tokens, nearness of answers, what a tool's answer shows, bars."""

from __future__ import annotations

import pytest

from benchmarks.context.data import Said
from benchmarks.context.figures import Bar, missed, saved
from benchmarks.context.live import turns_of
from benchmarks.context.meter import FRAME, Metered, cut, tokens
from benchmarks.context.quality import f1, rouge_l
from benchmarks.context.shown import shown_by
from benchmarks.context.standin import best_sentence, summariser
from graphagent.agents.model import ModelRequest
from graphagent.messages import Message
from runner.summary.prompt import SummaryPrompt

pytestmark = pytest.mark.anyio


def test_nearness_is_that_of_words() -> None:
    """ROUGE-L counts words in the same order, F1 in any; case and punctuation don't count."""
    assert rouge_l("The cat sat.", "the CAT sat") == f1("The cat sat.", "the CAT sat") == 1.0
    assert rouge_l("sat cat the", "the cat sat") == pytest.approx(1 / 3)
    assert f1("sat cat the", "the cat sat") == 1.0
    assert f1("the the", "the cat") == 0.5
    assert rouge_l("", "the") == f1("no", "") == 0.0


def test_a_text_is_cut_or_filled_to_a_size() -> None:
    """The stand-in's texts have exactly the tokens that are asked for."""
    assert tokens(cut("hello there, how are you today? " * 9, 20)) == 20
    assert cut("hello", 3).startswith("hello")
    assert tokens(cut("hello", 3)) == 3
    assert tokens("") == 0
    assert tokens("a " * 300_000) == pytest.approx(300_000, abs=9)


async def test_the_stand_in_sums_up_to_a_size() -> None:
    """Its summary has the wanted tokens whatever it is given, begins with what was summed up before, and both sides of
    the call are counted: 4 tokens a message, 3 a request."""
    model = Metered(summariser(64))
    messages = SummaryPrompt().messages(
        "\n".join(f"user: line {n} of the talk" for n in range(90)), "Before this: ducks."
    )
    texts = [delta.text async for delta in model.stream(ModelRequest(messages))]
    assert texts[0].startswith("Before this: ducks.")
    assert "line 52" in texts[0]
    asked = sum(tokens(message.text) for message in messages) + 4 * len(messages) + FRAME
    assert model.exchanges == [(asked, 64)]


def test_the_stand_in_answers_with_what_was_said() -> None:
    """It copies the sentence with most of the question's rare words, never the question or the frame of a summary."""
    question = "When does Ann leave for Oslo?"
    system = Message.system("Ann leave for Oslo when\n<summary_of_previous_interactions>\nWe met.\n</summary_of")
    said = [system, Message.user("Nice day. Ann leaves for Oslo on Monday."), Message.user(question)]
    assert best_sentence(question, said) == "Ann leaves for Oslo on Monday."
    assert best_sentence(question, said[2:]) == "I don't know."


def test_what_is_shown_is_told_by_its_text() -> None:
    """The hits, and the messages beside them of which a piece stands in the snippet, cut ones too."""
    there = [Said(f"m{at}", "s", "user", "", f"Message {at} says something about topic {at}.") for at in range(9)]
    snippet = "user: Message 2 says something about topic 2.\n[match] user: ...says something about topic 3.\nuser: ..."
    answer = {"results": [{"event_id": "m3", "snippet": snippet}], "more": ["m8 user: <empty>"]}
    assert shown_by(answer, there) == {"m2", "m3", "m8"}


def test_a_history_becomes_turns() -> None:
    """Messages in a row of one side are one; a first word of the assistant's gets a greeting before it, a last one of
    the person's is left out."""
    sides = ["assistant", "user", "user", "assistant", "user"]
    said = [Said(str(at), "s", side, side, str(at)) for at, side in enumerate(sides)]
    assert turns_of(said) == [("Hello.", "0"), ("1\n\n2", "3")]


def test_bars() -> None:
    """A figure that doesn't reach its bar is missed; one that wasn't measured isn't."""
    assert Bar(True, 0.5).holds(0.5)
    assert not Bar(False, 0.5).holds(0.6)
    assert missed({"qmsum.saved": 0.9, "live.saved": 0.9, "other": -1.0}) == ["qmsum.saved"]
    assert saved(200, 50) == 0.75
    assert saved(50, 200) == -3
