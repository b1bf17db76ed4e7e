"""Keeps the summaries of a Runner's sessions up to date: when it looks at one, and with what."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphagent.errors import UsageError
from graphagent.ledger import Event, SessionKey
from graphagent.services import SessionService
from processors import Compaction, SessionProjector, Summaries, default_pipeline
from runner.summary.policy import SummaryPolicy
from runner.summary.rolling import Listener, RollingSummary
from runner.summary.values import Attempt, Summarizer, SummaryContext
from runner.summary.workers import SummaryWorkers, WorkerOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryOptions:
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
    """The summaries of one Runner. `rolling`: makes them; its `stats` count, its `recent` has the last attempts."""

    def __init__(self, sessions: SessionService, options: SummaryOptions) -> None:
        self.options = options
        self.rolling = RollingSummary(sessions, options.summarizer, policy=options.policy, listener=options.listener)
        self._workers = SummaryWorkers(self.rolling, options.workers)

    async def enqueue(self, key: SessionKey, filter_key: str, context: SummaryContext) -> tuple[Attempt, ...]:
        """What `SummaryWorkers.enqueue` does."""
        return await self._workers.enqueue(key, filter_key, context=context)

    async def close(self, timeout: float) -> bool:
        """Do what waits; False if some of it is given up after so many seconds."""
        return await self._workers.stop(timeout)


def calls_for_summary(event: Event, *, between_calls: bool = False) -> bool:
    """True for what an agent has said, and for results of tools; for these not where summaries are made between the
    calls of a turn. Source: spec/context, 3, point 6."""
    if event.partial or event.is_user or event.is_tool_call or event.error is not None or not event.has_content:
        return False
    return not event.skip_summarization and not (event.is_tool_result and between_calls)


def as_options(given: SummaryOptions | Summarizer) -> SummaryOptions:
    """The options that were given, or the default ones with the summariser that was. Raises UsageError for what is
    neither."""
    if isinstance(given, SummaryOptions):
        return given
    if not (hasattr(given, "due") and hasattr(given, "summarize")):
        hint = "a summariser, such as ModelSummarizer(model), or SummaryOptions(summarizer=...)"
        raise UsageError(f"'summaries' of a Runner is {given!r:.80}; it takes {hint}")
    return SummaryOptions(summarizer=given)


def default_projector(summarised: bool, compaction: Compaction | None = None) -> SessionProjector:
    """The default pipeline; with summaries they stand for what they cover."""
    summaries = Summaries() if summarised else None
    return SessionProjector(default_pipeline(summaries=summaries, compaction=compaction))
