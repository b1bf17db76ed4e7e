"""A summariser that is chosen anew for each session."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from graphagent.engine.hooks import settled
from graphagent.errors import SummaryError
from runner.summary.values import Made, Summarizer, SummaryInput, Trigger

_log = logging.getLogger(__name__)
Resolve = Callable[[SummaryInput], "Summarizer | Awaitable[Summarizer | None] | None"]


class DynamicSummarizer:
    """Asks `resolve`, plain or async, which summariser makes a summary; None: there is none for this session.

    Both methods ask it. An error of it is logged, and no summary is due then. `forks`: whether one of them wants the
    agent's own request.
    """

    def __init__(self, resolve: Resolve, *, forks: bool = False) -> None:
        self._resolve = resolve
        self.forks = forks

    async def due(self, given: SummaryInput) -> Trigger:
        """What the chosen one says; not due without one."""
        try:
            chosen: Summarizer | None = await settled(self._resolve(given))
        except Exception:
            _log.warning("no summariser for session '%s': the resolver failed", given.key.session, exc_info=True)
            return Trigger(False, "resolver_failed")
        return Trigger(False, "no_summarizer") if chosen is None else await chosen.due(given)

    async def summarize(self, given: SummaryInput) -> Made:
        """What the chosen one makes. Raises SummaryError without one."""
        told = f"no dynamic summariser was resolved for session '{given.key.session}'"
        try:
            chosen: Summarizer | None = await settled(self._resolve(given))
        except Exception as error:
            raise SummaryError(f"{told}: {error}") from error
        if chosen is None:
            raise SummaryError(told)
        return await chosen.summarize(given)
