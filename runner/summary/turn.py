"""What one turn of a conversation does for the summaries of its session."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Any

from graphagent.agents.invocation import Hooks, Invocation
from graphagent.agents.model import ModelRequest
from graphagent.agents.model_options import ModelCallbacks
from graphagent.agents.scope import invocation_of
from graphagent.engine.context import NodeContext
from graphagent.ledger import Event, SessionKey
from graphagent.messages import Message
from graphagent.models.tokens import SIMPLE
from graphagent.patience import in_line
from runner.summary.upkeep import Upkeep, calls_for_summary
from runner.summary.values import SummaryContext

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Asked:
    """An agent's last request in this turn. `said`: what its run has said since; `tokens`: of both, where known."""

    model: Any
    request: ModelRequest
    said: list[Message] = field(default_factory=list)
    tokens: int | None = None


class SummaryTurn:
    """One turn. `started_at`: when it began, in seconds since the epoch."""

    def __init__(self, upkeep: Upkeep, key: SessionKey, request_id: str, started_at: float | None) -> None:
        self._upkeep = upkeep
        self._key = key
        self._request_id = request_id
        self._started_at = started_at
        self._asked: dict[str, _Asked] = {}  # by id of the invocation

    def hooks(self, others: Hooks) -> Hooks:
        """The callbacks of a run, with one that sees its requests as the others leave them."""
        return replace(others, model=(*others.model, ModelCallbacks(before=self._before_call)))

    def _before_call(self, request: ModelRequest, ctx: NodeContext) -> None:
        invocation = invocation_of(ctx)
        if invocation is not None:
            self._asked[invocation.id] = _Asked(_model_of(invocation), request)

    async def stored(self, event: Event) -> None:
        """Have the summaries looked at that a stored event calls for. Never raises: a summary is a help, not the
        conversation."""
        self._take(event)
        if not calls_for_summary(event, between_calls=self._upkeep.options.between_calls):
            return
        try:
            with in_line():  # a full queue has this caller do the work, which no limit on saving an event is about
                await self._upkeep.enqueue(self._key, event.filter_key, self.context(event.invocation_id))
        except Exception:
            _log.debug("a summary of session '%s' was not queued", self._key.session, exc_info=True)

    def _take(self, event: Event) -> None:
        asked = self._asked.get(event.invocation_id)
        if asked is None:
            return
        asked.said += event.messages
        if event.usage is not None and event.usage.input_tokens:
            asked.tokens = event.usage.input_tokens + event.usage.output_tokens
        elif asked.tokens is not None:  # results of tools come on top of what the model has counted
            asked.tokens += SIMPLE.messages(event.messages)

    def context(self, invocation_id: str) -> SummaryContext:
        """What is known of an agent's run in this turn."""
        asked = self._asked.get(invocation_id)
        if asked is None:
            return SummaryContext(request_id=self._request_id, request_started_at=self._started_at)
        parent = None
        if getattr(self._upkeep.rolling.summarizer, "forks", False):
            parent = replace(asked.request, messages=(*asked.request.messages, *asked.said))
        return SummaryContext(
            model=asked.model,
            window=getattr(asked.model, "context_window", None),
            request_tokens=asked.tokens,
            request_id=self._request_id,
            request_started_at=self._started_at,
            parent=parent,
        )


def _model_of(invocation: Invocation) -> Any:
    return invocation.options.model or getattr(invocation.agent, "model", None)
