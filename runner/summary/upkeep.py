"""Keeps the summaries of a Runner's sessions up to date: what it looks at, and when."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from graphagent.agents.invocation import Invocation
from graphagent.ledger import Event, SessionKey
from graphagent.patience import in_line
from graphagent.services import SessionService
from processors import SessionProjector, default_pipeline
from processors import Summaries as Shown
from runner.summary.dispatch import SummaryPolicy
from runner.summary.rolling import Listener, RollingSummary
from runner.summary.values import Summarizer, SummaryContext
from runner.summary.workers import SummaryWorkers, WorkerOptions

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summaries:
    """How a Runner makes summaries.

    `summarizer`: makes them, such as a ModelSummarizer. `policy`: of which filter keys. `workers`: those that make them
    in the background. `between_calls`: a long turn is summed up before each further call of its model, and waited for,
    instead of in the background after each round of tools. `rescue`: a request that fills so much of the model's window
    is made anew from a fresh summary before it is sent (None: never). `listener`: is told of every attempt.
    """

    summarizer: Summarizer
    policy: SummaryPolicy = field(default_factory=SummaryPolicy)
    workers: WorkerOptions = field(default_factory=WorkerOptions)
    between_calls: bool = False
    rescue: float | None = 0.7
    listener: Listener | None = None


class Upkeep:
    """The summaries of one Runner. `rolling`: makes them; its `stats` count."""

    def __init__(self, sessions: SessionService, options: Summaries) -> None:
        self.options = options
        self.rolling = RollingSummary(sessions, options.summarizer, listener=options.listener)
        self._workers = SummaryWorkers(self.rolling, options.policy, options.workers)

    async def after_append(self, key: SessionKey, invocation: Invocation, event: Event, started_at: float) -> None:
        """Have the summaries looked at that a stored event calls for. `started_at`: when the turn began, in seconds
        since the epoch. Never raises: a summary is a help, not the conversation."""
        if not self.calls_for_one(event):
            return
        try:
            with in_line():  # a full queue has this caller do the work, which no limit on saving an event is about
                await self._workers.enqueue(key, event.filter_key, context=context_of(invocation, event, started_at))
        except Exception:
            _log.debug("a summary of session '%s' was not queued", key.session, exc_info=True)

    def calls_for_one(self, event: Event) -> bool:
        """True for what an agent has said, and for results of tools. Source: spec/context, 3, point 6."""
        if event.partial or event.is_user or event.is_tool_call or event.error is not None or not event.has_content:
            return False
        return not event.skip_summarization and not (event.is_tool_result and self.options.between_calls)

    async def close(self, timeout: float) -> bool:
        """Do what waits; False if some of it is not done after so many seconds."""
        return await self._workers.stop(timeout)


def context_of(invocation: Invocation, event: Event | None, started_at: float | None) -> SummaryContext:
    """What is known of a turn. The size of its request is known from the answer to it."""
    model = invocation.options.model or getattr(invocation.agent, "model", None)
    usage = None if event is None else event.usage
    return SummaryContext(
        model=model,
        window=getattr(model, "context_window", None),
        request_tokens=None if usage is None or not usage.input_tokens else usage.input_tokens + usage.output_tokens,
        request_id=invocation.request_id,
        request_started_at=started_at,
    )


def as_options(given: Summaries | Summarizer) -> Summaries:
    """The options that were given, or the default ones with the summariser that was."""
    return given if isinstance(given, Summaries) else Summaries(summarizer=given)


def default_projector(summarised: bool) -> SessionProjector:
    """The default pipeline; with summaries they stand for what they cover."""
    return SessionProjector(default_pipeline(summaries=Shown()) if summarised else None)
