"""Answers of an assistant that are remembered as episodes: which, how much of them, how long. Pure.

Source: spec/context, 17.5 (opt-in).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runner.memory.extraction import Said
from runner.memory.operations import Operation
from runner.recall.excerpt import fitting

MOST_PAIRS = 32
MOST_BYTES = 64 * 1024
"""Of all pairs of one request together."""
EXCERPT = 8192
"""Bytes of one message."""
MOST_TEXT = 4096
"""Bytes of the text of one episode."""


class Pair(NamedTuple):
    """What a user asked, and the answer."""

    asked: Said
    answer: Said


def pairs_of(messages: Sequence[Said]) -> tuple[list[Pair], int]:
    """The newest pairs that fit, oldest first, each message cut to an excerpt, and how many were left out. Of several
    answers to one question the last counts."""
    found: list[Pair] = []
    asked: Said | None = None
    for message in messages:
        if message.role == "user":
            asked = message
        elif asked is not None and found and found[-1].asked is asked:
            found[-1] = Pair(asked, message)
        elif asked is not None:
            found.append(Pair(asked, message))
    kept: list[Pair] = []
    room = MOST_BYTES
    for pair in reversed(found):
        cut = Pair(*(said._replace(text=fitting(said.text, EXCERPT)) for said in pair))
        room -= sum(len(said.text.encode()) for said in cut)
        if room < 0 or len(kept) == MOST_PAIRS:
            break
        kept.append(cut)
    return kept[::-1], len(found) - len(kept)


def as_episode(operation: Operation, pairs: Sequence[Pair]) -> Operation:
    """An added memory as an episode of bounded length; without a time of its own it has that of the last answer."""
    about = {"event_time": pairs[-1].answer.at, **operation.about, "kind": "episode"}
    return operation._replace(text=fitting(operation.text, MOST_TEXT), about=about)  # type: ignore[arg-type]
