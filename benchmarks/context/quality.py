"""How near an answer is to the reference answer: ROUGE-L and F1 over words.

As the reference's report counts them: words in lower case without punctuation; ROUGE-L is the F-measure of the longest
common subsequence (Lin 2004), F1 that of the words in common (Rajpurkar et al. 2016), articles kept.
"""

from __future__ import annotations

import re
from collections import Counter

_WORDS = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The words of a text."""
    return _WORDS.findall(text.lower())


def rouge_l(answer: str, reference: str) -> float:
    """From 0 to 1."""
    one, other = words(answer), words(reference)
    return _measure(_common(one, other), len(one), len(other))


def f1(answer: str, reference: str) -> float:
    """From 0 to 1."""
    one, other = words(answer), words(reference)
    return _measure((Counter(one) & Counter(other)).total(), len(one), len(other))


def _measure(common: int, one: int, other: int) -> float:
    return 2 * common / (one + other) if common else 0.0


def _common(one: list[str], other: list[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for at, there in enumerate(other, 1):
            before, row[at] = row[at], before + 1 if word == there else max(row[at], row[at - 1])
    return row[-1]
