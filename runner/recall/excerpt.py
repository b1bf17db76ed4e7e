"""Cuts a text down to the part of it that a search was for. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from runner.recall.queries import keywords

CUT = "..."
_PLACES = 24  # occurrences of one word that are looked at; more of them don't tell more
_LEAD = 8  # of the characters shown, one in so many stands before the first word that was found


def excerpt(text: str, most: int, query: str = "") -> str:
    """At most so many characters (3 or more) of a text, `...` where some are left out: its beginning, or where more of
    the query's keywords stand together."""
    if len(text) <= most:
        return text
    start = _best(text.lower(), most, keywords(query))
    if start <= len(CUT) or most <= 2 * len(CUT):  # there is no room for a part of the middle
        return text[: most - len(CUT)].rstrip() + CUT
    if start + most >= len(text):
        return CUT + text[len(text) - most + len(CUT) :].lstrip()
    return CUT + text[start : start + most - 2 * len(CUT)].strip() + CUT


def fitting(text: str, size: int) -> str:
    """As much of a text as has so many bytes in UTF-8, whole characters; `...` at its end if some are left out."""
    data = text.encode()
    if len(data) <= size:
        return text
    return data[: max(0, size - len(CUT))].decode(errors="ignore").rstrip() + CUT


def _best(low: str, most: int, words: list[str]) -> int:
    """Where the part begins that has the most different words; the first such one, 0 if none has any."""
    places = sorted((at, word) for word in words for at in islice(_all(low, word), _PLACES))
    best, start = 0, 0
    for first, _ in [(0, ""), *places]:
        begin = max(0, first - most // _LEAD)
        worth = len({word for at, word in places if begin <= at and at + len(word) <= begin + most})
        if worth > best:
            best, start = worth, begin
    return start


def _all(low: str, word: str) -> Iterator[int]:
    at = low.find(word)
    while at >= 0:
        yield at
        at = low.find(word, at + 1)
