"""A token counter that weighs a text once: the texts of a history are the same from call to call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from graphagent.models.tokens import TokenCounter

SHORT = 200
"""Characters of a text that is weighed at once: that costs no more than to look it up."""
MOST = 20_000
"""Weights that are remembered; then it begins anew."""


def remembering(counter: TokenCounter) -> TokenCounter:
    """The same counter, which keeps the weights of long texts, but not the texts: they are told apart by hash and
    length. What the counter raises is raised, and not remembered."""
    return replace(counter, weigh=_Weights(counter.weigh))


class _Weights:
    def __init__(self, weigh: Callable[[str], float]) -> None:
        self._weigh = weigh
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, text: str) -> float:
        if len(text) <= SHORT:
            return self._weigh(text)
        key = hash(text), len(text)
        found = self._known.get(key)
        if found is None:
            found = self._weigh(text)
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = found
        return found
