"""How large a request for a summary may be, and texts cut to fit."""

from __future__ import annotations

from collections.abc import Callable

FALLBACK_WINDOW = 8_192
"""Tokens that a model is taken to have whose window nobody knows."""
SHARE = 0.7
"""Of the window, what a request for a summary may take; the rest is for the answer and for counting wrong."""


def budget_of(window: int | None, input_budget: int | None = None, share: float = SHARE) -> int:
    """Tokens that a request may take: its share of the window, or what the provider takes if that is less; at least 1.

    Source: spec/context, 9.5.
    """
    found = int((window or FALLBACK_WINDOW) * share)
    return max(found if input_budget is None else min(found, input_budget), 1)


def head(text: str, fits: Callable[[str], bool], most: int) -> str:
    """The longest beginning of at most `most` characters that fits, to the end of a line or word that is near."""
    size = largest(min(len(text), most), lambda size: fits(text[:size]))
    if size == len(text):
        return text
    near = max(text.rfind("\n", 0, size), text.rfind(" ", 0, size)) + 1
    return text[: near if near > size * 0.8 else size]


def shortened(text: str, fits: Callable[[str], bool], most: int | None = None) -> str:
    """The text if it fits, else its beginning and its end around a mark that says how much is left out; empty if not
    even the mark fits."""
    if fits(text):
        return text
    size = largest(min(len(text), most or len(text)), lambda size: fits(_around(text, size)))
    found = _around(text, size)
    return found if size or fits(found) else ""


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, 0 if none does; what is smaller than a number that fits, fits too."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _around(text: str, kept: int) -> str:
    front = (kept + 1) // 2
    back = text[len(text) - (kept - front) :]
    return f"{text[:front]}\n[... {len(text) - kept} characters left out ...]\n{back}"
