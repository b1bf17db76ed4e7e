"""The words of a text, for matching what is remembered: lower case, without stop words, Chinese and Japanese too."""

from __future__ import annotations

import re
from functools import lru_cache

TRIGRAM_WEIGHT = 0.45
"""What a trigram counts against a word: it only helps where words are cut differently."""

_STOP_WORDS = """
    a about after all also am an and any are as at be been before being but by can could did do does doing down for
    from had has have having he her here hers him his how i if in into is it its just me more most my no nor not of
    off on once only or other our out over own same she should so some such than that the their them then there these
    they this those through to too under until up very was we were what when where which while who whom why will with
    would you your 的 了 是 在 我 有 和 就 不 人 都 一 一个 也 很 到 说 要 去 你 会 着 没有 这 那 吗 呢 吧
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_PARTICLES = "的了吗呢吧"
_PIECES = re.compile(f"(?:(?![{_PARTICLES}])[{_CJK}])+|[^\\W_{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")


def is_cut(word: str) -> bool:
    """True if it was cut out of a run of characters, so that it may be no word at all."""
    return _IS_CJK.match(word) is not None


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[tuple[str, float], ...]:
    """Words with their weights, in order.

    A run of Chinese, Japanese or Korean characters, which has no blanks, is cut at particles, then into pairs of
    neighbours (weight 1) and triples (`TRIGRAM_WEIGHT`).
    """
    found: list[tuple[str, float]] = []
    for piece in _PIECES.findall(text.lower()):
        if not is_cut(piece):
            if len(piece) > 1 and piece not in STOP_WORDS:
                found.append((piece, 1.0))
            continue
        pairs = (piece[place : place + 2] for place in range(max(1, len(piece) - 1)))
        found += ((pair, 1.0) for pair in pairs if pair not in STOP_WORDS)
        found += ((piece[place : place + 3], TRIGRAM_WEIGHT) for place in range(len(piece) - 2))
    return tuple(found)
