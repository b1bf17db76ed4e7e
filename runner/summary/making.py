"""Makes one summary: in a fork of the agent's request, else from the text of the events, in one call or several."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from graphagent.agents.model import GenerationConfig, Model, ModelRequest
from graphagent.errors import SummaryError
from graphagent.models.tokens import TokenCounter
from runner.summary import fork
from runner.summary.asking import Answered, CallFailed, ask
from runner.summary.budget import budget_of, shortened
from runner.summary.hooks import Draft, HookFailed, SummaryHooks
from runner.summary.portions import Portion, Portions
from runner.summary.prefix import Coverable
from runner.summary.prompt import ForkPrompt, SummaryPrompt
from runner.summary.text import Formatters, items_of
from runner.summary.values import NOTHING_SPENT, Made, Mode, SummaryInput

_log = logging.getLogger(__name__)
MIN_ROOM = 32
"""Tokens of conversation that a call must at least have room for."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How summaries are made; `ModelSummarizer` says what each is."""

    model: Model
    prompt: SummaryPrompt
    counter: TokenCounter
    formatters: Formatters
    hooks: SummaryHooks
    fork: ForkPrompt | None
    config: GenerationConfig
    budget: int
    input_budget: int | None
    max_calls: int
    timeout: float | None


class Making:
    """One summary under way. `spent`: what its calls took so far, also of those that failed."""

    def __init__(self, settings: Settings, given: SummaryInput, todo: Coverable) -> None:
        self._with = settings
        self._given = given
        self._todo = todo
        self._budget = settings.budget
        self._retried = False
        self._custom = False
        self._notes = [todo.why] if todo.why else []
        self.spent = NOTHING_SPENT

    async def made(self) -> Made:
        """The summary. Raises SummaryError."""
        if self._with.fork is not None:
            made = await self._forked(self._with.fork)
            if made is not None:
                return made
        return await self._standalone()

    # -- a fork -----------------------------------------------------------------------------------

    async def _forked(self, prompt: ForkPrompt) -> Made | None:
        """From the agent's request; None, with a note, where there is none that serves."""
        context, settings = self._given.context, self._with
        parent, count = context.parent, fork.shown(self._todo, context.parent_events)
        model = context.model or settings.model
        window = context.window or model.context_window
        if parent is None or not count or not fork.complete(parent.messages):
            self._notes.append(f"no fork: {_why_not(parent, count)}")
            return None
        budget = budget_of(window, settings.input_budget, fork.SHARE)
        request = fork.fork_of(parent, prompt, settings.counter, budget)
        if request is None:
            self._notes.append(f"no fork: the request doesn't fit into {budget} tokens")
            return None
        try:
            answered = await self._ask(model, request)
        except CallFailed as failed:
            if failed.failure == "failed":
                raise self._error(failed) from failed
            self._retried = True
            self._notes.append(f"the fork failed: {failed}")
            return None
        text = await settings.hooks.finished(self._given, answered.text)
        if count < len(self._todo.events):
            self._notes.append(f"the request shows {count} of {len(self._todo.events)} event(s)")
        return Made(text, self._todo.events[:count], "cache_safe_fork", self.spent, note=self._note())

    # -- from the text of the events ----------------------------------------------------------------

    async def _standalone(self) -> Made:
        """Portion by portion, each with the summary of those before. If one fails, what was made before it counts."""
        settings, previous = self._with, self._given.previous
        portions = Portions(self._todo, items_of(self._todo.events, settings.formatters), settings.counter)
        text = whole = previous.text if previous is not None else ""
        for calls in range(settings.max_calls, 0, -1):
            try:
                found = await self._next(portions, text, calls)
            except SummaryError as error:
                if not portions.done or isinstance(error, HookFailed):
                    raise
                _log.warning("a summary of session '%s' is made in part: %s", self._given.key.session, error)
                self._notes.append(f"made in part: {error}")
                break
            if found is None:
                break
            portion, text = found
            portions.take(portion)
            if portion.whole:
                whole = text
            if portions.over:
                break
        if not portions.over:
            self._notes.append(f"the budget was enough for {portions.done} of {len(self._todo.events)} event(s)")
        if whole:
            whole = await settings.hooks.finished(self._given, whole)
        covered = self._todo.events[: portions.done]
        mode: Mode = "custom" if self._custom else "standalone"
        return Made(whole, covered, mode, self.spent, note=self._note())

    async def _next(self, portions: Portions, previous: str, calls: int) -> tuple[Portion, str] | None:
        """The next portion and the summary with it; None if it needs more calls than are left."""
        while True:
            plan = self._plan(portions, previous, calls)
            if plan is None:
                return None
            portion, draft = plan
            draft_or_text = await self._with.hooks.changed(draft, self._with.formatters)
            if isinstance(draft_or_text, str):
                self._custom = True
                return portion, draft_or_text.strip()
            request = self._request(draft_or_text.text, draft_or_text.previous)
            if draft_or_text is not draft and (size := self._with.counter.request(request)) > self._budget:
                raise SummaryError(
                    f"the hook 'before' made the request for a summary {size} tokens long; it may have {self._budget}",
                    spent=self.spent,
                )
            try:
                answered = await self._ask(self._with.model, request)
            except CallFailed as failed:
                if self._retried or failed.failure not in ("too_long", "empty"):
                    raise self._error(failed) from failed
                self._retried = True
                self._halve(failed, request)
                continue
            if portion.shortened:
                self._notes.append(f"event '{draft.events[0].id}' and those of its tool round were shortened")
            return portion, answered.text

    def _plan(self, portions: Portions, previous: str, calls: int) -> tuple[Portion, Draft] | None:
        """What goes into the next call: the former summary, cut only where it takes more than half, and as much of the
        events as fits. Raises SummaryError if there is no room for any."""
        count = self._with.counter.request
        bare = self._budget - count(self._request("", ""))
        whole = previous
        previous = shortened(whole, lambda text: count(self._request("", text)) <= self._budget - bare // 2)
        if previous is not whole:
            self._notes.append("the former summary was shortened")
        room = self._budget - count(self._request("", previous))
        while room >= MIN_ROOM:
            portion = Portion("", 0) if not self._todo.events else portions.next(room, calls)
            if portion is None:
                return None
            over = count(self._request(portion.text, previous)) - self._budget
            if over <= 0:
                events = self._todo.events[portions.between(portion.end)]
                return portion, Draft(self._given, events, portion.text, previous)
            room -= over
        raise SummaryError(
            f"a request for a summary may have {self._budget} tokens and takes {self._budget - bare} without any "
            "conversation: take a model with a larger window, or a shorter prompt",
            spent=self.spent,
        )

    def _request(self, conversation: str, previous: str) -> ModelRequest:
        return ModelRequest(self._with.prompt.messages(conversation, previous), config=self._with.config)

    def _halve(self, failed: CallFailed, request: ModelRequest) -> None:
        """Half of the budget; less if a request was too long that had no more than that: its tokens were counted wrong.
        There is always room for some conversation."""
        size, half = self._with.counter.request(request), self._budget // 2
        if failed.failure == "too_long" and size <= half:
            bare = self._with.counter.request(self._request("", ""))
            half = min(half, max(size // 2, 2 * (bare + MIN_ROOM)))
        self._budget = half

    # -- both ---------------------------------------------------------------------------------------

    async def _ask(self, model: Model, request: ModelRequest) -> Answered:
        try:
            answered = await ask(model, request, self._with.counter, self._with.timeout)
        except CallFailed as failed:
            self.spent = self.spent.plus(failed.spent)
            raise
        self.spent = self.spent.plus(answered.spent)
        return answered

    def _note(self) -> str:
        return "; ".join(dict.fromkeys(self._notes))

    def _error(self, failed: CallFailed) -> SummaryError:
        where = f"'{self._given.filter_key}' of " if self._given.filter_key else ""
        return SummaryError(f"no summary of {where}session '{self._given.key.session}': {failed}", spent=self.spent)


def _why_not(parent: ModelRequest | None, count: int) -> str:
    if parent is None:
        return "there is no request to fork"
    return "a tool round of the request is open" if count else "the request doesn't show the events"
