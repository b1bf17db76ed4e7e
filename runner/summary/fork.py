"""A summary asked for behind the agent's own request, so that the provider's prompt cache serves most of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphagent.agents.model import ModelRequest
from graphagent.ledger import Event
from graphagent.messages import Message
from graphagent.models.tokens import TokenCounter
from processors.projection import Line
from processors.rounds import match_rounds
from runner.summary.prefix import Coverable
from runner.summary.prompt import ForkPrompt

SHARE = 0.9
"""Of the window, what a fork may take: it is the agent's request, which may be nearly as large, and a message more."""
LEFT_OUT = "[left out: {count} characters]"
_NOWHERE = Event(id="", timestamp=0.0)


def shown(todo: Coverable, ids: frozenset[str]) -> int:
    """How many of the events, from the first on, are in a request that shows those with these ids; no tool round is
    parted."""
    seen = next((at for at, event in enumerate(todo.events) if event.id not in ids), len(todo.events))
    return max((end for end in todo.ends if end <= seen), default=0)


def complete(messages: Sequence[Message]) -> bool:
    """Whether every tool call in a request has its result there."""
    lines = [Line(message, _NOWHERE, at) for at, message in enumerate(messages)]
    return all(round_.complete for round_ in match_rounds(lines).rounds.values())


def fork_of(parent: ModelRequest, prompt: ForkPrompt, counter: TokenCounter, budget: int) -> ModelRequest | None:
    """The parent's request with the instruction behind it, within `budget` tokens; None if it can't be.

    Tools and parameters stay as they are, for the cache; the wanted form of an answer is gone, and a forced tool is not
    forced any more. Where it doesn't fit the tools go, then results and arguments of tools, the largest first. Source:
    spec/context, section 11.
    """
    choice = parent.tool_choice if parent.tool_choice in ("auto", "none") else None
    asked = (*parent.messages, prompt.message())
    fork = replace(parent, messages=asked, output_schema=None, tool_choice=choice)
    if counter.request(fork) <= budget:
        return fork
    fork = replace(fork, tools=(), tool_choice=None)
    size = counter.request(fork)
    return fork if size <= budget else _without_results(fork, size, budget, counter)


def _without_results(fork: ModelRequest, size: int, budget: int, counter: TokenCounter) -> ModelRequest | None:
    messages = list(fork.messages)
    smaller = [_left_out(message) for message in messages]
    saving = [counter.message(old) - counter.message(new) for old, new in zip(messages, smaller, strict=True)]
    for at in sorted(range(len(messages)), key=lambda at: -saving[at]):
        if size <= budget or saving[at] <= 0:
            break
        messages[at] = smaller[at]
        size -= saving[at]
    found = replace(fork, messages=tuple(messages))
    return found if counter.request(found) <= budget else None


def _left_out(message: Message) -> Message:
    """A message without the content of a tool's result or the arguments of calls; others stay as they are."""
    if message.role == "tool":
        return message.model_copy(update={"content": LEFT_OUT.replace("{count}", str(len(message.text)))})
    if not message.tool_calls:
        return message
    calls = tuple(call.model_copy(update={"arguments": {}}) for call in message.tool_calls)
    return message.model_copy(update={"tool_calls": calls})
