"""A counter that weighs a text once."""

from __future__ import annotations

import pytest

from graphagent.messages import Message
from graphagent.models import token_memo
from graphagent.models.token_memo import SHORT, remembering
from graphagent.models.tokens import SIMPLE, TokenCounter, counter_for


def test_the_counts_are_the_same() -> None:
    """Short and long texts, the first time and again."""
    counter = counter_for("gpt-4o")
    kept = remembering(counter)
    messages = [Message.user("hello"), Message.tool("long words " * 300, "c1", name="read"), Message.user("")]
    for _ in range(2):
        assert kept.messages(messages) == counter.messages(messages)


def test_a_long_text_is_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long one is looked up the second time, a short one is weighed again; when there are too many, it begins
    anew."""
    seen: list[str] = []

    def weigh(text: str) -> float:
        seen.append(text)
        return len(text) / 4

    kept = remembering(TokenCounter(weigh))
    long, other = "x" * (SHORT + 1), "y" * (SHORT + 1)
    for text in (long, long, "short", "short"):
        assert kept.text(text) == SIMPLE.text(text)
    assert seen == [long, "short", "short"]
    monkeypatch.setattr(token_memo, "MOST", 1)
    for text in (other, long):
        kept.text(text)
    assert seen[3:] == [other, long]


def test_a_counter_that_fails_is_asked_again() -> None:
    """An error is raised each time, and not remembered."""
    tries: list[str] = []

    def fail(text: str) -> float:
        tries.append(text)
        raise RuntimeError("no tokenizer")

    kept = remembering(TokenCounter(fail))
    for _ in range(2):
        with pytest.raises(RuntimeError):
            kept.text("z" * 1000)
    assert len(tries) == 2
