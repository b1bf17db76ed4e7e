"""The guard of a Runner's requests: a summary in time, and results of tools cut to size.

Source: spec/context, 10.4, 12 and 13. The rebuild is another projection of the session: every event of the turn is in
it before the activation that made it counts as finished.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import anyio

from graphagent.agents.guard import Guarded, PendingCall, Shortened
from graphagent.agents.invocation import Invocation
from graphagent.agents.projector import projector_of
from graphagent.messages import Message
from graphagent.models.token_memo import remembering
from graphagent.models.tokens import TokenCounter, counter_for
from processors import INCLUDE_CONTENTS, Compaction, SessionProjector, Summaries, Visibility
from runner.context.window import threshold, window_of
from runner.summary.between import summarise_before_call
from runner.summary.upkeep import Upkeep
from runner.summary.values import Attempt

_log = logging.getLogger(__name__)

Facts = Mapping[str, Any]


class RequestGuard:
    """Looks at each request of a Runner's agents.

    `upkeep`: of the summaries, None: there are none; its options say what share of the window calls for a rescue.
    `compaction`: cuts results of the running turn. `counter`: None takes the estimate for the model.
    """

    def __init__(
        self, upkeep: Upkeep | None, *, compaction: Compaction | None = None, counter: TokenCounter | None = None
    ) -> None:
        self._upkeep = upkeep
        if compaction is not None:
            compaction = replace(compaction, counter=remembering(compaction.counter))
        self._compaction = compaction
        self._counter = None if counter is None else remembering(counter)
        self._counters: dict[str, TokenCounter] = {}  # by model

    async def before_call(self, invocation: Invocation, call: PendingCall) -> Guarded:
        """A summary before the call where one is due, or the request too long; made anew if more is covered than what
        it was made from knew."""
        upkeep, projector = self._upkeep, _projector(invocation)
        if upkeep is None or projector is None:
            return Guarded()
        facts = self._facts(invocation, call, upkeep.options.rescue)
        line, tokens = facts["threshold"], facts["tokens"]
        full = line is not None and tokens is not None and tokens >= line
        between, goes_on = upkeep.options.between_calls and not call.first, _goes_on(call)
        stage = "between_calls" if between else "rescue" if full else "refresh"
        if not (between or full or goes_on):
            return Guarded()
        if not await call.replaceable():
            why = "not all of the history comes from the session alone, so it can't be made anew"
            return Guarded(False, (_note(stage, "kept", why, facts),)) if between or full else Guarded()
        if not between and (goes_on or await _knows_less(projector, invocation, call)):
            left = await self._left(projector, invocation, call, facts)
            if left is not None and left < (line if full else tokens):
                return Guarded(True, (_note(stage, "made_anew", "a summary covers more of it", facts, updated=True),))
        if not (between or full):
            return Guarded()
        attempt = await self._attempt(upkeep, invocation, call, facts["window"])
        if attempt is None:
            return Guarded(False, (_note(stage, "cancelled", "the summary took too long", facts),))
        ahead = {attempt.filter_key: attempt.summary} if attempt.ahead and attempt.summary is not None else {}
        anew = attempt.updated or bool(ahead) or await _knows_less(projector, invocation, call)
        if ahead:
            _log.warning("session '%s' is shown by a summary that was not stored", attempt.key.session)
        more = {"filter_key": attempt.filter_key, **({"ahead": True} if ahead else {})}
        return Guarded(anew, (_note(stage, attempt.outcome, attempt.reason, {**facts, **more}, updated=anew),), ahead)

    async def _left(
        self, projector: SessionProjector, invocation: Invocation, call: PendingCall, facts: Facts
    ) -> int | None:
        """Tokens of the request if it is made anew from the summaries that there are; None where that isn't known."""
        if facts["tokens"] is None:
            return None
        try:
            count = self._counter_of(call).messages
            return int(facts["tokens"]) - count(call.history) + count(await projector.messages(invocation))
        except Exception:
            _log.debug("what a request would take that is made anew is not known", exc_info=True)
            return None

    async def _attempt(self, upkeep: Upkeep, invocation: Invocation, call: PendingCall, window: int) -> Attempt | None:
        """None if it takes longer than one in the background may."""
        with anyio.move_on_after(upkeep.options.workers.timeout):
            return await summarise_before_call(upkeep, invocation, call, window=window)
        return None

    def shortened(
        self, messages: tuple[Message, ...], events: Mapping[str, str], offered: Collection[str]
    ) -> Shortened:
        """Results that are too long, cut to size; the very same messages where none is."""
        if self._compaction is None:
            return Shortened(messages)
        done = self._compaction.within(messages, lambda call: events.get(call, ""), offered)
        if not done.notes:
            return Shortened(messages)
        cut = frozenset(note.event for note in done.notes if note.event)
        told = {"stage": "compaction", "results": len(done.notes), "saved": done.saved, "events": sorted(cut)}
        return Shortened(done.messages, cut, (told,))

    def _facts(self, invocation: Invocation, call: PendingCall, ratio: float | None) -> Facts:
        """Sizes: of the messages, tools not counted (None: not known), and where a rescue begins (None: nowhere)."""
        window = window_of(invocation, call.model)
        return {
            "tokens": None if ratio is None else self._size(call),
            "threshold": None if ratio is None else threshold(window, ratio),
            "window": window,
            "messages": len(call.request.messages),
            "tools": len(call.request.tools),
        }

    def _size(self, call: PendingCall) -> int | None:
        """Tokens of the messages; None where they can't be counted, or there are none."""
        if not call.request.messages:
            return None
        try:
            return self._counter_of(call).messages(call.request.messages)
        except Exception:
            _log.debug("the tokens of a request could not be counted", exc_info=True)
            return None

    def _counter_of(self, call: PendingCall) -> TokenCounter:
        if self._counter is not None:
            return self._counter
        name = call.model.name
        if name not in self._counters:
            self._counters[name] = remembering(counter_for(name))
        return self._counters[name]


def guard_for(upkeep: Upkeep | None, compaction: Compaction | None) -> RequestGuard | None:
    """The guard of a Runner's requests; None where there is nothing to guard with."""
    return None if upkeep is None and compaction is None else RequestGuard(upkeep, compaction=compaction)


def _projector(invocation: Invocation) -> SessionProjector | None:
    """What makes the agent's requests, if it is a chain in which summaries stand for events, at all times."""
    projector = projector_of(invocation)
    if invocation.services.sessions is None or not isinstance(projector, SessionProjector):
        return None
    steps = list(projector.pipeline)
    seeing = [step for step in steps if isinstance(step, Visibility)]
    whole = all(step.timeline == "all" and step.contents == "session" for step in seeing)
    own_run = str(invocation.options.extra.get(INCLUDE_CONTENTS, "")).lower() == "none"
    return projector if whole and not own_run and any(isinstance(step, Summaries) for step in steps) else None


def _goes_on(call: PendingCall) -> bool:
    """True if the history has what a summary covers, for the model to go on from, and the model has gone on."""
    began = call.projected
    return began is not None and began.resumed and len(call.history) > len(began.messages)


async def _knows_less(projector: SessionProjector, invocation: Invocation, call: PendingCall) -> bool:
    """True if a stored summary covers more than the history was made with: one that was made in the background
    meanwhile, or by another process."""
    if call.projected is None:
        return False
    try:
        return await projector.covered(invocation) > call.projected.covered
    except Exception:
        _log.debug("whether there is a newer summary is not known", exc_info=True)
        return False


def _note(stage: str, outcome: str, reason: str, facts: Facts, *, updated: bool = False) -> dict[str, Any]:
    return {"stage": stage, "outcome": outcome, "reason": reason, "updated": updated, **facts}
