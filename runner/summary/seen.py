"""What the checks of a summary look at: the events that would be covered, and what they would take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from graphagent.clock import Clock
from graphagent.ledger import WHOLE, Event, is_below
from graphagent.models.tokens import TokenCounter
from graphagent.models.windows import context_window
from runner.summary.prefix import Coverable
from runner.summary.prompt import SummaryPrompt
from runner.summary.text import DEFAULT, Formatters, conversation, has_items, items_of
from runner.summary.values import SummaryInput


@dataclass(frozen=True)
class Seen:
    """A summary that may be due. `todo`: what it would cover; `window`: of the summariser's own model; `size`:
    tokens that a summary is expected to have; `formatters`, `prompt`: how the conversation is written down, and what it
    is asked with."""

    given: SummaryInput
    todo: Coverable
    counter: TokenCounter
    clock: Clock
    window: int | None = None
    size: int = 400
    formatters: Formatters = DEFAULT
    prompt: SummaryPrompt | None = None

    @property
    def scope(self) -> str:
        """The filter key on whose events the checks are made."""
        scope = self.given.context.scope
        return self.given.filter_key if scope is None else scope

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events in scope that would be covered."""
        return tuple(event for event in self.todo.events if is_below(event.filter_key, self.scope))

    @cached_property
    def counted(self) -> tuple[Event, ...]:
        """The events whose number and times count, also those that would be left for later: all in scope, for the whole
        session only those of its root agent. Source: spec/context, 9.1."""
        if self.scope == WHOLE:
            return tuple(event for event in self.given.events if event.filter_key in ("", self.given.key.app))
        return tuple(event for event in self.given.events if is_below(event.filter_key, self.scope))

    @cached_property
    def has_content(self) -> bool:
        """Whether there is anything to sum up."""
        return has_items(self.events, self.formatters)

    @cached_property
    def text_tokens(self) -> int:
        """Tokens of the events' text and reasoning."""
        thoughts = [message.reasoning or "" for event in self.events for message in event.messages]
        return self.counter.text(conversation(items_of(self.events))) + sum(map(self.counter.text, thoughts))

    @cached_property
    def previous_tokens(self) -> int:
        """Tokens of the former summary."""
        previous = self.given.previous
        return 0 if previous is None else self.counter.text(previous.text)

    @cached_property
    def overhead(self) -> int:
        """Tokens that a call takes beside the conversation and the former summary."""
        return 0 if self.prompt is None else self.counter.messages(self.prompt.messages("", ""))

    @property
    def tokens(self) -> int:
        """What the agent's request takes, where that is known; else the text and the former summary."""
        return self.given.context.request_tokens or self.text_tokens + self.previous_tokens

    def window_or(self, fallback: int | None) -> int | None:
        """Tokens that the agent's model takes, as the run or the model says; else `fallback`, else those of the
        summariser's own model."""
        context = self.given.context
        found = context.window
        if not found and context.model is not None:
            found = context.model.context_window or context_window(context.model.name)
        return found or fallback or self.window
