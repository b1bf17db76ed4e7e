"""What a debugger says each time that it has come to a stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graphagent.checkpoint.record import Header
from graphagent.debug.breakpoints import Breakpoint
from graphagent.debug.moment import Moment
from graphagent.engine.result import RunResult
from graphagent.errors import UsageError

Why = Literal[
    "started",
    "step",
    "breakpoint",
    "interrupted",
    "failed",
    "limit_reached",
    "stalled",
    "completed",
    "cancelled",
    "paused",
    "moved",
    "edited",
    "forked",
]
"""`step`: a run that is held; `moved`: somewhere in what is stored; the rest says how a run ended, or what was done."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where the cursor stands now and why. `hit`: the breakpoints that say so. `reason`: more about it. `result`: of a
    run that has ended."""

    moment: Moment
    why: Why
    hit: tuple[Breakpoint, ...] = ()
    reason: str = ""
    result: RunResult | None = None


def why_ended(result: RunResult) -> Why:
    """How a run has ended."""
    if result.status == "interrupted" and all(one.kind == "pause" for one in result.interrupts):
        return "paused"
    return result.status


def why_over(moment: Moment, last: Header | None = None) -> tuple[Why, str]:
    """How the run had ended whose newest row a moment is, and why; `moved` if the row doesn't say that it had."""
    note = moment.note if isinstance(moment.note, dict) else {}
    if moment.source == "end":
        return "completed", ""
    if moment.source == "error":
        return ("limit_reached" if "limit" in note else "failed"), moment.error or ""
    if moment.source == "interrupt" and moment.waits:
        return ("paused" if all(one.kind == "pause" for one in moment.waits) else "interrupted"), ""
    return "moved", ""


def must_not_only_wait(moment: Moment) -> None:
    """Refuse to let a run go on that waits for answers with all that is left of it: it would only write that it waits
    once more. Raises UsageError."""
    if moment.coming and all(one.state == "waiting" for one in moment.coming):
        keys = ", ".join(f"'{one.key}'" for one in moment.waits if one.kind == "ask")
        raise UsageError(f"the run waits for {keys}, and nothing else is left to run: answer that first")
