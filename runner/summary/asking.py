"""One call of a model for a summary: the whole answer, or why it is none, and what it cost."""

from __future__ import annotations

from typing import Literal, NamedTuple

import anyio

from graphagent.agents.assembler import Assembler
from graphagent.agents.closing import closing
from graphagent.agents.model import Model, ModelRequest, Reply
from graphagent.errors import ModelError
from graphagent.models.tokens import TokenCounter
from runner.summary.values import Spent

Failure = Literal["too_long", "empty", "cut", "tools", "failed"]
_CUT = {
    "length": "was cut at its token limit: raise 'max_tokens' of the model, or lower 'max_words'",
    "incomplete": "ended before its end was announced",
    "content_filter": "was stopped by the provider's filter",
}


class Answered(NamedTuple):
    """A summary's text, never blank, and what the call took."""

    text: str
    spent: Spent


class CallFailed(Exception):
    """A call without a usable answer. `failure`: `too_long` (the provider says so of the request), `empty`, `cut` (only
    a part of the answer came), `tools` (it asks for tools instead), or `failed` for any other error of the model."""

    def __init__(self, message: str, failure: Failure, spent: Spent) -> None:
        super().__init__(message)
        self.failure = failure
        self.spent = spent


async def ask(model: Model, request: ModelRequest, counter: TokenCounter, timeout: float | None) -> Answered:
    """The model's whole answer. A part of one is no summary: what stood in the rest would be lost.

    `timeout`: seconds for all of it (None: as long as the model takes). Raises CallFailed, whose cause is the model's
    error.
    """
    assembler = Assembler()
    try:
        with anyio.move_on_after(timeout) as scope:
            async with closing(model.stream(request)) as deltas:
                async for delta in deltas:
                    assembler.add(delta)
    except Exception as error:
        told = str(error) if isinstance(error, ModelError) else f"model '{model.name}': {type(error).__name__}: {error}"
        failure: Failure = "too_long" if getattr(error, "kind", "") == "context_length" else "failed"
        raise CallFailed(told, failure, _begun(assembler.reply(), request, counter)) from error
    if scope.cancelled_caught:
        told = f"model '{model.name}' took longer than {timeout} s for a summary"
        raise CallFailed(told, "failed", _begun(assembler.reply(), request, counter))
    reply = assembler.reply()
    spent, text = _spent(reply, request, counter), reply.message.text.strip()
    said = f"the answer of model '{model.name}'"
    if reply.finish_reason in _CUT and (text or reply.finish_reason == "content_filter"):
        raise CallFailed(f"{said} {_CUT[reply.finish_reason]}", "cut", spent)
    if reply.message.tool_calls:
        raise CallFailed(f"{said} asks for tools instead of summing up", "tools", spent)
    if not text:
        raise CallFailed(f"{said} is empty (finish reason '{reply.finish_reason}')", "empty", spent)
    return Answered(text, spent)


def _begun(reply: Reply, request: ModelRequest, counter: TokenCounter) -> Spent:
    """What a call took that failed: nothing is known of one that was refused, and it is taken for free."""
    if reply.message.text or reply.message.reasoning or reply.usage.input_tokens:
        return _spent(reply, request, counter)
    return Spent(1)


def _spent(reply: Reply, request: ModelRequest, counter: TokenCounter) -> Spent:
    usage = reply.usage
    asked = usage.input_tokens or counter.request(request)
    written = usage.output_tokens or counter.text(reply.message.text) + counter.text(reply.message.reasoning or "")
    return Spent(1, asked, written, usage.cached_tokens)
