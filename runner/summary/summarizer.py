"""The summariser that asks a model."""

from __future__ import annotations

from collections.abc import Sequence

from graphagent.agents.model import GenerationConfig, Model
from graphagent.clock import Clock, SystemClock
from graphagent.errors import AgentError, SummaryError
from graphagent.models.tokens import TokenCounter, counter_for
from runner.summary.budget import budget_of
from runner.summary.checks import ContextOver, CustomCheck, SummaryCheck, as_check, not_below, triggered
from runner.summary.estimate import FULL_OR_WORTH_IT
from runner.summary.hooks import NO_HOOKS, SummaryHooks
from runner.summary.making import Making, Settings
from runner.summary.prefix import PIN_TURNS, Coverable, SkipRecent, coverable
from runner.summary.prompt import MAX_WORDS, ForkPrompt, SummaryPrompt
from runner.summary.seen import Seen
from runner.summary.text import DEFAULT, Formatters, has_items
from runner.summary.values import Made, SummaryInput, Trigger

TOKENS_A_WORD = 4 / 3


class ModelSummarizer:
    """Makes summaries with a language model; fills the port `Summarizer`.

    - `checks`: when one is due; all must pass, none: always. Functions of the input are checks too. By default when the
      conversation takes more than half of what the agent's model takes; with `skip_recent` also as soon as it pays.
    - `prompt`, `system_prompt`, `max_words`: see `SummaryPrompt`; how long a summary may be is asked of the model.
    - `skip_recent`: how many of the newest events stay for the next one; tool rounds are never parted.
    - `formatters`: how the conversation is written down. `hooks`: functions around a summary.
    - `fork`: ask behind the agent's own request, of the agent's model, so that its prompt cache serves most of it;
      True, or a `ForkPrompt`. Where there is no such request the text is summed up as usual, and `Made.note` says why.
    - `input_budget`: tokens that the provider takes at once; a request has at most that and 0.7 of the model's window.
      What is longer goes in several calls, at most `max_calls`; the summary then stands for what went in.
    - `counter`: counts tokens, by default an estimate for the model. `config`: how to generate. `timeout`: seconds for
      one call (None: as long as the model takes). `pin_turns`: turns that a call to an external tool is waited for.

    A request that is too long for the provider after all, or an empty answer, is tried once more with half as many
    tokens. Raises AgentError for options that can't be.
    """

    def __init__(
        self,
        model: Model,
        *,
        checks: Sequence[SummaryCheck | CustomCheck] | None = None,
        prompt: str | None = None,
        system_prompt: str | None = None,
        max_words: int | None = MAX_WORDS,
        skip_recent: SkipRecent = 0,
        formatters: Formatters = DEFAULT,
        hooks: SummaryHooks = NO_HOOKS,
        fork: bool | ForkPrompt = False,
        counter: TokenCounter | None = None,
        input_budget: int | None = None,
        max_calls: int = 12,
        config: GenerationConfig | None = None,
        timeout: float | None = 120.0,
        pin_turns: int = PIN_TURNS,
        clock: Clock | None = None,
    ) -> None:
        not_below("ModelSummarizer(max_calls", max_calls, 1)
        if input_budget is not None:
            not_below("ModelSummarizer(input_budget", input_budget, 1)
        if isinstance(checks, str) or not all(hasattr(one, "judge") or callable(one) for one in checks or ()):
            raise AgentError("'ModelSummarizer(checks=...)' takes checks such as ContextOver(), or functions")
        forked = ForkPrompt(max_words=max_words) if fork is True else (fork or None)
        self._checks = tuple(map(as_check, _usual(skip_recent) if checks is None else checks))
        self._skip = skip_recent
        self._pin_turns = pin_turns
        self._clock = clock or SystemClock()
        self._with = Settings(
            model,
            SummaryPrompt(prompt, system=system_prompt, max_words=max_words),
            counter or counter_for(model.name),
            formatters,
            hooks,
            forked,
            config or GenerationConfig(),
            budget_of(model.context_window, input_budget),
            input_budget,
            max_calls,
            timeout,
        )
        self._size = round((max_words or MAX_WORDS) * TOKENS_A_WORD)

    def __repr__(self) -> str:
        return f"ModelSummarizer({self._with.model!r})"

    @property
    def forks(self) -> bool:
        """Whether it wants the agent's own request."""
        return self._with.fork is not None

    async def due(self, given: SummaryInput) -> Trigger:
        """Whether a summary is due. A check whose tokens can't be counted doesn't pass."""
        return await triggered(self._checks, self._seen(given))

    async def summarize(self, given: SummaryInput) -> Made:
        """Sum up the events after the former summary, and it, as far as they may be covered.

        Forced without any such event it works over the former summary alone. Raises SummaryError.
        """
        todo = self._todo(given)
        if not todo.events and given.previous is None:
            raise SummaryError(f"session '{given.key.session}' has no events to sum up" + _because(todo))
        if todo.events and not has_items(todo.events, self._with.formatters):
            raise SummaryError(
                f"the {len(todo.events)} event(s) of session '{given.key.session}' have no text to sum up"
            )
        making = Making(self._with, given, todo)
        try:
            return await making.made()
        except SummaryError as error:
            error.spent = making.spent
            raise
        except Exception as error:
            told = f"no summary of session '{given.key.session}': {type(error).__name__}: {error}"
            raise SummaryError(told, spent=making.spent) from error

    def _todo(self, given: SummaryInput) -> Coverable:
        return coverable(given.events, skip=self._skip, previous=given.previous is not None, pin_turns=self._pin_turns)

    def _seen(self, given: SummaryInput) -> Seen:
        settings = self._with
        return Seen(
            given,
            self._todo(given),
            settings.counter,
            self._clock,
            settings.model.context_window,
            self._size,
            settings.formatters,
            settings.prompt,
        )


def _usual(skip: SkipRecent) -> tuple[SummaryCheck, ...]:
    """The checks where none are given. Summing up early takes from a model what was said last, word for word, unless
    that is kept in view: only then it is done for the tokens that it saves."""
    return (FULL_OR_WORTH_IT,) if skip else (ContextOver(),)


def _because(todo: Coverable) -> str:
    return f": {todo.why}" if todo.why else ""
