"""When a summary is due: checks that can be put together, and the report of what they said."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from graphagent.engine.hooks import settled
from graphagent.errors import AgentError
from runner.summary.budget import FALLBACK_WINDOW
from runner.summary.seen import Seen
from runner.summary.values import Check, Metric, SummaryInput, Trigger

_log = logging.getLogger(__name__)
_ORDER: tuple[Metric, ...] = ("context", "tokens", "events", "time", "custom")


class Judged(NamedTuple):
    """What a check says. `because`: the checks that decided it; `checks`: all that were made. `window`, `ratio`: of a
    context check."""

    passed: bool
    because: tuple[Check, ...]
    checks: tuple[Check, ...]
    window: int = 0
    ratio: float = 0.0


class SummaryCheck(Protocol):
    """Says whether a summary is due. Frozen dataclasses are the usual way."""

    async def judge(self, seen: Seen) -> Judged:
        """Look at what is there."""
        ...


CustomCheck = Callable[[SummaryInput], bool | Awaitable[bool]]


def alone(check: Check, window: int = 0, ratio: float = 0.0) -> Judged:
    """What a single check says."""
    return Judged(check.passed, (check,), (check,), window, ratio)


@dataclass(frozen=True, slots=True)
class EventsOver:
    """More than so many events since the last summary; that counts as one. Those that are left for later count too."""

    count: int

    def __post_init__(self) -> None:
        not_below("EventsOver(count", self.count, 0)

    async def judge(self, seen: Seen) -> Judged:
        """Strictly more."""
        value = len(seen.counted) + (seen.given.previous is not None)
        return alone(Check("events_over", "events", value > self.count, value, self.count, "events"))


@dataclass(frozen=True, slots=True)
class TokensOver:
    """More than so many tokens: of the agent's request where that is known, else of the text since the last summary,
    with that summary and the reasoning."""

    tokens: int

    def __post_init__(self) -> None:
        not_below("TokensOver(tokens", self.tokens, 0)

    async def judge(self, seen: Seen) -> Judged:
        """Strictly more. Not passed if they can't be counted."""
        value = _counted("tokens_over", seen)
        passed = value is not None and value > self.tokens
        return alone(Check("tokens_over", "tokens", passed, value or 0, self.tokens, "tokens"))


@dataclass(frozen=True, slots=True)
class TimeOver:
    """A pause of more than so many seconds before what the person said last.

    In a turn: from the last event before it that is of another request, or from the last covered one, to the turn's
    start; there is no such pause if the request goes on with itself, or if the summary reaches into it. Outside of one:
    from the last event to now.
    """

    seconds: float

    def __post_init__(self) -> None:
        not_below("TimeOver(seconds", self.seconds, 0)

    async def judge(self, seen: Seen) -> Judged:
        """Strictly more."""
        value = _pause(seen)
        passed = value is not None and value > self.seconds
        return alone(Check("time_over", "time", passed, value or 0.0, self.seconds, "seconds"))


@dataclass(frozen=True, slots=True)
class ContextOver:
    """More than a share of what the agent's model takes, and more than a floor.

    The window is what the run says, what the model says, what is known of the name, then `fallback`, the window of the
    summariser's own model, at last 8,192. Raises AgentError for a ratio outside of (0, 1] and the like.
    """

    ratio: float = 0.5
    floor: int = 2_000
    fallback: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise AgentError(f"'ContextOver(ratio=...)' got {self.ratio}; it takes a number above 0 and up to 1")
        not_below("ContextOver(floor", self.floor, 0)
        if self.fallback is not None:
            not_below("ContextOver(fallback", self.fallback, 1)

    async def judge(self, seen: Seen) -> Judged:
        """Strictly more than both. Not passed if they can't be counted."""
        window = seen.window_or(self.fallback) or FALLBACK_WINDOW
        threshold = max(int(window * self.ratio), self.floor)
        value = _counted("context_over", seen)
        passed = value is not None and value > threshold
        check = Check("context_over", "context", passed, value or 0, threshold, "tokens")
        return alone(check, window, self.ratio)


@dataclass(frozen=True, slots=True)
class Custom:
    """A function of the input, plain or async. What it raises goes on to the caller."""

    test: CustomCheck
    name: str = ""

    async def judge(self, seen: Seen) -> Judged:
        """Ask it."""
        passed = bool(await settled(self.test(seen.given)))
        name = self.name or getattr(self.test, "__name__", type(self.test).__name__)
        return alone(Check(name, "custom", passed, float(passed), 1.0))


class AllOf:
    """Passes if all pass; the first that doesn't ends it. Without any it passes."""

    def __init__(self, *checks: SummaryCheck | CustomCheck) -> None:
        self.checks = tuple(map(as_check, checks))

    async def judge(self, seen: Seen) -> Judged:
        """One after the other."""
        found: list[Judged] = []
        for check in self.checks:
            found.append(await check.judge(seen))
            if not found[-1].passed:
                return _joined(False, found[-1:], found)
        return _joined(True, found, found)


class AnyOf:
    """Passes if one passes. All are asked, so that the report has each; without any it doesn't pass."""

    def __init__(self, *checks: SummaryCheck | CustomCheck) -> None:
        self.checks = tuple(map(as_check, checks))

    async def judge(self, seen: Seen) -> Judged:
        """All of them."""
        found = [await check.judge(seen) for check in self.checks]
        passing = [one for one in found if one.passed]
        return _joined(bool(passing), passing or found, found)


def as_check(check: SummaryCheck | CustomCheck) -> SummaryCheck:
    """A check as it is, or a function as one."""
    return Custom(check) if not hasattr(check, "judge") else check


async def triggered(checks: Sequence[SummaryCheck], seen: Seen) -> Trigger:
    """Whether a summary is due, and why: all checks must pass, and there must be something to sum up.

    Of several reasons the context's is told, then tokens, events, time, others. Source: spec/context, 9.1.
    """
    if not seen.has_content:
        return Trigger(False, "no_content" if seen.todo.events or not seen.todo.why else "held_back")
    judged = await AllOf(*checks).judge(seen)
    if not judged.because:
        return Trigger(judged.passed, "always")
    deciding = min(judged.because, key=_rank)
    name, metric, _, value, threshold, unit = deciding
    of_context = (judged.window, judged.ratio) if metric == "context" else (0, 0.0)
    return Trigger(judged.passed, name, metric, value, threshold, unit, *of_context, judged.checks)


def not_below(name: str, value: float, least: float) -> None:
    """Raise AgentError for an option that is too small."""
    if value < least:
        raise AgentError(f"'{name}=...)' got {value}; it takes a number from {least} on")


def _rank(check: Check) -> int:
    return _ORDER.index(check.metric) if check.metric in _ORDER else len(_ORDER)


def _joined(passed: bool, because: Sequence[Judged], found: Sequence[Judged]) -> Judged:
    checks = tuple(check for one in found for check in one.checks)
    deciding = tuple(check for one in because for check in one.because)
    shown = next((one for one in (*because, *found) if one.window), Judged(passed, (), ()))
    return Judged(passed, deciding, checks, shown.window, shown.ratio)


def _counted(name: str, seen: Seen) -> int | None:
    try:
        return seen.tokens
    except Exception:  # a counter is a user's function: one that fails says nothing of the conversation
        _log.warning("the check '%s' of a summary could not count tokens: it doesn't pass", name, exc_info=True)
        return None


def _pause(seen: Seen) -> float | None:
    context, events, previous = seen.given.context, seen.counted, seen.given.previous
    start = context.request_started_at
    if start is None:
        return seen.clock.now() - events[-1].timestamp if events else None
    covered = previous.boundary.cutoff_at if previous is not None else 0.0
    if covered >= start:
        return None
    before = [event for event in events if event.timestamp < start]
    if not before:
        return start - covered if covered else None
    own = context.request_id and before[-1].request_id == context.request_id
    return None if own else start - before[-1].timestamp
