"""What goes into a summary, what comes out, and what is told of the attempt. Values and the port of a summariser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from graphagent.agents.model import Model, ModelRequest
from graphagent.ledger import Event, SessionKey, Summary

Metric = Literal["force", "context", "tokens", "events", "time", "custom", "none"]
Mode = Literal["standalone", "cache_safe_fork", "custom"]
Outcome = Literal["updated", "nothing_new", "refused", "empty", "blocked", "busy", "overtaken", "failed", "cancelled"]
"""`updated`: there is a new summary. `nothing_new`: no event since the last one. `refused`: the checks said no.
`empty`: the summariser had no text. `blocked`: the key is not on the allow list. `busy`: another process makes it.
`overtaken`: another one was stored meanwhile, and stays. `failed`, `cancelled`: nothing was stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryContext:
    """What is known where a summary is asked for.

    `model`, `window`: of the agent, and how many tokens it takes at once. `request_tokens`: of the request that it was
    sent last, or is about to be; None where it isn't known. `request_id`, `request_started_at` (seconds since the
    epoch): the turn that goes on. `parent`: the request to fork for a cache-safe summary, complete (every tool round
    closed), as it was sent; `parent_events`: ids of the stored events that it shows. `scope`: the filter key on whose
    events the checks are made, if it isn't the summary's own (cascade). `expected_requests`: how many further requests
    the summary will serve, for the estimate whether it pays (None: guessed from how many there were).
    """

    model: Model | None = None
    window: int | None = None
    request_tokens: int | None = None
    request_id: str = ""
    request_started_at: float | None = None
    parent: ModelRequest | None = None
    parent_events: frozenset[str] = frozenset()
    scope: str | None = None
    expected_requests: float | None = None


NO_CONTEXT = SummaryContext()


class SummaryInput(NamedTuple):
    """What is to be summed up: the former summary (None: there is none), and the events of its key that it doesn't
    cover, in order."""

    key: SessionKey
    filter_key: str
    previous: Summary | None
    events: tuple[Event, ...]
    context: SummaryContext = NO_CONTEXT
    force: bool = False


class Check(NamedTuple):
    """One check of a trigger: `value` against `threshold`, in `unit`."""

    name: str
    metric: Metric
    passed: bool
    value: float = 0.0
    threshold: float = 0.0
    unit: str = ""


class Trigger(NamedTuple):
    """Whether a summary is due, and why. `name`: the check that decided; `window`, `ratio`: of a context check."""

    fired: bool
    name: str
    metric: Metric = "none"
    value: float = 0.0
    threshold: float = 0.0
    unit: str = ""
    window: int = 0
    ratio: float = 0.0
    checks: tuple[Check, ...] = ()


class Spent(NamedTuple):
    """Tokens of the calls that made a summary; estimates where the model tells nothing."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def plus(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(*(one + two for one, two in zip(self, other, strict=True)))


NOTHING_SPENT = Spent()


class Made(NamedTuple):
    """A summary's text. `covered`: the events that went into it, a prefix of the input's (fewer where recent ones are
    left for next time, or not all fit). Empty text: there is nothing to say. `note`: why fewer went in than were given,
    or what was shortened; empty where nothing was."""

    text: str
    covered: tuple[Event, ...]
    mode: Mode = "standalone"
    spent: Spent = NOTHING_SPENT
    topics: tuple[str, ...] = ()
    note: str = ""


class Summarizer(Protocol):
    """Makes summaries. Both methods may be called at the same time for several sessions. One that has `forks` true gets
    the agent's own request in the context (`parent`)."""

    async def due(self, given: SummaryInput) -> Trigger:
        """Whether a summary is due. Not asked for a forced one."""
        ...

    async def summarize(self, given: SummaryInput) -> Made:
        """Sum up. Raises SummaryError where it can't; what it spent until then is in the error's `spent`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at a summary, whatever became of it. `reason`: in words. `seconds`: how long it took. `summary`: the
    new one; of an attempt that failed, one that was made and could not be stored."""

    key: SessionKey
    filter_key: str
    outcome: Outcome
    reason: str = ""
    trigger: Trigger | None = None
    summary: Summary | None = None
    mode: Mode | None = None
    spent: Spent = NOTHING_SPENT
    seconds: float = 0.0
    error: Exception | None = field(default=None, compare=False)

    @property
    def updated(self) -> bool:
        """True if there is a new summary."""
        return self.outcome == "updated"

    @property
    def ahead(self) -> bool:
        """True if there is a new summary that the store doesn't have."""
        return self.outcome == "failed" and self.summary is not None
