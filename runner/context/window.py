"""How much of a model's window a request may fill before it is rescued. Source: spec/context, 13."""

from __future__ import annotations

from graphagent.agents.invocation import Invocation
from graphagent.agents.model import Model
from graphagent.errors import UsageError
from graphagent.models.windows import context_window
from runner.summary.budget import FALLBACK_WINDOW

FLOOR = 2000
RATIO = 0.7
CONTEXT_WINDOW = "context_window"
"""The option of a run (in `extra`) that says how many tokens its models take."""


def threshold(window: int, ratio: float = RATIO) -> int:
    """Tokens from which on a request is rescued: a share of the window, at least `FLOOR`, at most the window. A ratio
    that is none counts as 0.7."""
    share = ratio if 0 < ratio <= 1 else RATIO
    return min(max(int(window * share), FLOOR), window)


def window_of(invocation: Invocation, model: Model) -> int:
    """Tokens that the model takes: what the run says, else the model, else the list of known ones, else 8,192. Raises
    UsageError for an option of the run that is no number above 0."""
    said = invocation.options.extra.get(CONTEXT_WINDOW)
    if said is not None:
        if isinstance(said, bool) or not isinstance(said, int) or said < 1:
            raise UsageError(f"option '{CONTEXT_WINDOW}' of the run is {said!r:.60}; it takes tokens, 1 or more")
        return said
    known: int | None = getattr(model, "context_window", None)
    return known or context_window(str(getattr(model, "name", ""))) or FALLBACK_WINDOW
