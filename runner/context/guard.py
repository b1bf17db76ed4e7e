"""The guard of a Runner's requests: a summary in time, and results of tools cut to size.

Source: spec/context, 10.4, 12 and 13. The rebuild is another projection of the session: every event of the turn is in
it before the activation that made it counts as finished.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from graphagent.agents.guard import Guarded, PendingCall
from graphagent.agents.invocation import Invocation
from graphagent.agents.projector import projector_of
from graphagent.messages import Message
from graphagent.models.tokens import TokenCounter, counter_for
from processors import Compaction, SessionProjector, Summaries, Visibility
from runner.summary.between import summarise_before_call, summarise_between_calls
from runner.summary.upkeep import Upkeep
from runner.summary.values import Attempt

_log = logging.getLogger(__name__)

FLOOR = 2000
FALLBACK_WINDOW = 8192
RATIO = 0.7


def threshold(window: int, ratio: float = RATIO) -> int:
    """Tokens from which on a request is rescued: a share of the window, at least `FLOOR`, at most the window. A ratio
    that is none counts as 0.7."""
    share = ratio if 0 < ratio <= 1 else RATIO
    return min(max(int(window * share), FLOOR), window)


class RequestGuard:
    """Looks at each request of a Runner's agents.

    `upkeep`: of the summaries, None: there are none; its options say what share of the window calls for a rescue.
    `compaction`: cuts results of the running turn. `counter`: None takes the estimate for the model.
    """

    def __init__(
        self, upkeep: Upkeep | None, *, compaction: Compaction | None = None, counter: TokenCounter | None = None
    ) -> None:
        self._upkeep = upkeep
        self._compaction = compaction
        self._counter = counter

    async def before_call(self, invocation: Invocation, call: PendingCall) -> Guarded:
        """A summary before the call where one is due, or the request too long; made anew only if it covers more."""
        upkeep = self._upkeep
        if upkeep is None or not _can_be_made_anew(invocation):
            return Guarded()
        between = await summarise_between_calls(upkeep, invocation, call)
        notes = [] if between is None else [_note("between_calls", between)]
        ratio, tokens = upkeep.options.rescue, self._size(call)
        window = call.model.context_window or FALLBACK_WINDOW
        if ratio is None or between is not None or tokens is None or tokens < threshold(window, ratio):
            return Guarded(between is not None and between.updated, tuple(notes))
        attempt = await summarise_before_call(upkeep, invocation, call)
        if attempt is None:
            return Guarded()
        size = {"tokens": tokens, "threshold": threshold(window, ratio), "window": window}
        counts = {"messages": len(call.request.messages), "tools": len(call.request.tools)}
        return Guarded(attempt.updated, (*notes, {**_note("rescue", attempt), **size, **counts}))

    def shortened(
        self, invocation: Invocation, messages: tuple[Message, ...], events: Mapping[str, str]
    ) -> tuple[Message, ...]:
        """Results that are too long, cut to size; the very same messages where none is."""
        if self._compaction is None:
            return messages
        found = self._compaction.within(messages, lambda call: events.get(call, ""))
        return messages if found == messages else found

    def _size(self, call: PendingCall) -> int | None:
        """Tokens of the messages, tools not counted; None where they can't be counted, or there are none."""
        if not call.request.messages:
            return None
        try:
            return (self._counter or counter_for(call.model.name)).messages(call.request.messages)
        except Exception:
            _log.debug("the tokens of a request could not be counted", exc_info=True)
            return None


def guard_for(upkeep: Upkeep | None, compaction: Compaction | None) -> RequestGuard | None:
    """The guard of a Runner's requests; None where there is nothing to guard with."""
    return None if upkeep is None and compaction is None else RequestGuard(upkeep, compaction=compaction)


def _can_be_made_anew(invocation: Invocation) -> bool:
    """True where the agent sees its session by a chain in which summaries stand for events, at all times."""
    projector = projector_of(invocation)
    if (
        invocation.session is None
        or invocation.services.sessions is None
        or not isinstance(projector, SessionProjector)
    ):
        return False
    steps = list(projector.pipeline)
    seeing = [step for step in steps if isinstance(step, Visibility)]
    whole = all(step.timeline == "all" and step.contents == "session" for step in seeing)
    return whole and any(isinstance(step, Summaries) for step in steps)


def _note(stage: str, attempt: Attempt) -> dict[str, Any]:
    return {"stage": stage, "outcome": attempt.outcome, "reason": attempt.reason, "filter_key": attempt.filter_key}
