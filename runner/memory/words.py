"""The words of a text, for matching what is remembered: lower case, English ones
stemmed, without stop words, Chinese and Japanese too."""

from __future__ import annotations

from functools import lru_cache

from runner.words import STOP_WORDS, is_cut, pairs, pieces, stem

TRIGRAM_WEIGHT = 0.45
"""What a trigram counts against a word: it only helps where words are cut differently."""


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[tuple[str, float], ...]:
    """Words with their weights, in order.

    A run of Chinese, Japanese or Korean characters, which has no blanks, is cut at particles, then into pairs of
    neighbours (weight 1) and triples (`TRIGRAM_WEIGHT`).
    """
    found: list[tuple[str, float]] = []
    for piece in pieces(text):
        if not is_cut(piece):
            if len(piece) > 1 and piece not in STOP_WORDS:
                found.append((stem(piece), 1.0))
            continue
        found += ((pair, 1.0) for pair in pairs(piece) if pair not in STOP_WORDS)
        found += ((piece[place : place + 3], TRIGRAM_WEIGHT) for place in range(len(piece) - 2))
    return tuple(found)


@lru_cache(maxsize=4096)
def tokens(text: str) -> frozenset[str]:
    """The different words of a text, without triples."""
    return frozenset(word for word, weight in words(text) if weight == 1.0)


def alike(one: str, other: str) -> float:
    """How much of their words two texts have in common, from 0 to 1 (Jaccard's index); 0 if one has no words."""
    mine, theirs = tokens(one), tokens(other)
    return len(mine & theirs) / len(mine | theirs) if mine and theirs else 0.0
