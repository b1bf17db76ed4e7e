"""How a run ended, as its last event says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, cast, get_args

from graphagent.errors import StopAgent
from graphagent.ledger import ErrorInfo, Event, TokenUsage

OUTCOME = "outcome"
"""The extension of a completion that says how the run ended: one of `Outcome`."""
REASON = "reason"
"""The extension of a completion that says why it ended so, if there is more to say."""
DISCARDED = "discarded"
"""The extension of a completion after which partial text that the reader has seen is not in the session."""
UNREAD = "unread"
"""The extension of a completion with the texts of messages that came too late to be read in this run."""

Outcome = Literal["completed", "interrupted", "cancelled", "failed", "limit_reached", "stalled"]


class Ending(NamedTuple):
    """How a run ended, why, and with which error."""

    outcome: Outcome
    reason: str = ""
    error: ErrorInfo | None = None


def ending_of(last: Event | None, *, cancelled: str, late: bool, error: Exception | None) -> Ending:
    """How a run ended. `last`: its last complete event; an agent may say the outcome in it, as completions do.
    `cancelled`: why, empty if it was not; `late`: its time was up."""
    if cancelled:
        return Ending(
            "cancelled", cancelled, ErrorInfo(type="cancelled", message=f"the run was cancelled: {cancelled}")
        )
    if late:
        return Ending("limit_reached", "time", ErrorInfo(type="run_error", message="the time of the run was up"))
    if error is not None:
        return Ending("failed", type(error).__name__, error_info(error))
    if last is None:
        return Ending("completed")
    said = last.extensions.get(OUTCOME)
    reason = str(last.extensions.get(REASON, ""))
    if said in get_args(Outcome):
        return Ending(cast(Outcome, said), reason, last.error)
    if last.interrupts:
        return Ending("interrupted", reason)
    if last.error is not None:
        known = last.error.code if last.error.code in ("limit_reached", "stalled") else last.error.type
        return Ending(cast(Outcome, known) if known in get_args(Outcome) else "failed", last.error.type, last.error)
    return Ending("completed")


def error_info(error: Exception) -> ErrorInfo:
    """An exception as an event holds it."""
    kind = "stop_agent_error" if isinstance(error, StopAgent) else "run_error"
    return ErrorInfo(type=kind, message=str(error) or type(error).__name__, code=type(error).__name__)


def completion(ending: Ending, app: str, *, failures: Iterable[Exception], more: Mapping[str, Any]) -> Event:
    """The last event of a run. It has no content, so it is never stored. An event that could not be stored is its
    error, if there is no other."""
    error = ending.error
    for failure in failures:
        text = f"an event could not be stored: {failure}"
        error = error or ErrorInfo(type="run_error", message=text, code=type(failure).__name__)
    extensions = {OUTCOME: ending.outcome, **({REASON: ending.reason} if ending.reason else {}), **more}
    return Event(kind="completion", author=app, error=error, extensions=extensions)


def total(usage: Iterable[TokenUsage]) -> TokenUsage | None:
    """All tokens of a run, and what they cost if that is known of all; None if no model was called."""
    found = list(usage)
    if not found:
        return None
    return TokenUsage(
        input_tokens=sum(one.input_tokens for one in found),
        output_tokens=sum(one.output_tokens for one in found),
        cached_tokens=sum(one.cached_tokens for one in found),
        cost=None if any(one.cost is None for one in found) else sum(one.cost or 0.0 for one in found),
    )
