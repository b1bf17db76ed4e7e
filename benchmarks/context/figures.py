"""The figures of a run, and the bars that some of them have to reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Figures = dict[str, float]


class Bar(NamedTuple):
    """A bound of a figure: at least, or at most."""

    least: bool
    bound: float

    def holds(self, value: float) -> bool:
        """Whether a figure reaches it."""
        return value >= self.bound if self.least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.least else '<='} {self.bound:g}"


BARS = {
    "qmsum.saved": Bar(True, 0.93),
    "longmemeval.saved": Bar(True, 0.96),
    "qmsum.saved.search": Bar(True, 0.80),
    "longmemeval.saved.search": Bar(True, 0.80),
    "qmsum.rolling_share": Bar(False, 0.20),
    "longmemeval.rolling_share": Bar(False, 0.20),
    "locomo.rolling_share": Bar(False, 0.20),
    "mtbench101.default.negative": Bar(False, 0),
    "mtbench101.pays_back.negative": Bar(False, 0),
    "live.saved": Bar(True, 0.80),
    "live.default.saved": Bar(True, 0.80),
    "qmsum.shown.hit": Bar(True, 0.82),
    "qmsum.shown.tokens": Bar(False, 600),
    "growth.sqlite.ratio": Bar(False, 1.5),
    "growth.postgresql.ratio": Bar(False, 1.5),
}
"""The issue's acceptance lines. Tokens of the answering call alone, with the recall calls, and so on: see README.md."""


def mean(values: Iterable[float]) -> float:
    """The mean; 0 of nothing."""
    found = list(values)
    return sum(found) / len(found) if found else 0.0


def saved(full: float, short: float) -> float:
    """The share of tokens that is saved; negative where it costs more."""
    return 1 - short / full if full else 0.0


def missed(figures: Figures) -> list[str]:
    """The figures that don't reach their bar."""
    return [name for name, bar in BARS.items() if name in figures and not bar.holds(figures[name])]
