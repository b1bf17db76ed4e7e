"""The words of a text, for finding it again: lower case, English ones stemmed, Chinese and Japanese ones cut out."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

_STOP_WORDS = """
    a about above after again against all also am an and any are as at be because been before being below between both
    but by can could d did do does doing down during each few for from further had has have having he her here hers
    him his how i if in into is it its itself just ll m me more most my no nor not now of off on once only or other our
    out over own re s same she should so some such t than that the their them then there these they this those through
    to too under until up ve very was we were what when where which while who whom why will with would you your
    的 了 是 在 我 有 和 就 不 人 都 一 一个 也 很 到 说 要 去 你 会 着 没有 这 那 吗 呢 吧
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing about what a text is about."""

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Chinese, Japanese and Korean characters, as the inside of a set of a regular expression."""

_PARTICLES = "的了吗呢吧"
_PIECES = re.compile(f"(?:(?![{_PARTICLES}])[{CJK}])+|[^\\W_{CJK}]+")
_IS_CJK = re.compile(f"[{CJK}]")
_STEMS = threading.Lock()  # a stemmer works on one word at a time
_LONGEST = 64  # characters of a word; what is longer was not written to be found


def is_cut(word: str) -> bool:
    """True if it was cut out of a run of characters without blanks, so that it may be no word at all."""
    return _IS_CJK.match(word) is not None


def pieces(text: str) -> list[str]:
    """Runs of letters and digits, in lower case, and runs of Chinese, Japanese or Korean characters, cut at particles,
    in order. Wide and narrow forms of a character are the same."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _PIECES.findall(text.lower())


def pairs(piece: str) -> list[str]:
    """A run of Chinese, Japanese or Korean characters as overlapping pairs of neighbours; one alone is itself."""
    return [piece[place : place + 2] for place in range(max(1, len(piece) - 1))]


def stems(text: str, *, singles: bool = False) -> Iterator[str]:
    """The words by which a text is found, in order: without stop words, English ones stemmed ("The English (Porter2)
    stemming algorithm", snowballstem.org), accents taken off, Chinese, Japanese and Korean ones as pairs; `singles`:
    also each character of those, for queries of one."""
    for piece in pieces(text):
        if not is_cut(piece):
            if piece not in STOP_WORDS:
                yield stem(piece[:_LONGEST])
            continue
        yield from (pair for pair in pairs(piece) if pair not in STOP_WORDS)
        if singles and len(piece) > 1:
            yield from piece


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """What the forms of a word have in common; the word itself if it isn't made of English letters."""
    if not word.isascii():
        word = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    if not (word.isascii() and word.isalpha()):
        return word
    with _STEMS:
        return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    from snowballstemmer.english_stemmer import EnglishStemmer  # late: a hundredth of a second

    return EnglishStemmer()
