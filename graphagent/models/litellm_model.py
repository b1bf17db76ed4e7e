"""A model of any provider, through litellm."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import anyio

from graphagent.agents.model import Delta, GenerationConfig, ModelRequest, ToolCallDelta
from graphagent.clock import Clock, SystemClock
from graphagent.errors import ModelError
from graphagent.graph.policies import RetryPolicy
from graphagent.ledger import TokenUsage
from graphagent.models.chat_format import chat_parameters, merged_config
from graphagent.models.litellm_errors import MAX_WAIT, model_error, wait_asked_for
from graphagent.models.litellm_import import litellm_module
from graphagent.models.prices import cost_of
from graphagent.models.windows import context_window


@dataclass(frozen=True, slots=True)
class Profile:
    """What a provider does otherwise than others. `streams`: it can stream. `ends_silently`: its streams end well
    without a finish reason. `wants_reasoning`: it wants its earlier thinking back. `reports_usage`: it takes
    `stream_options`."""

    streams: bool = True
    ends_silently: bool = False
    wants_reasoning: bool = False
    reports_usage: bool = True


class LiteLLMModel:
    """A model by litellm's name for it, such as `openai/gpt-4o`; `api_base` for a server of one's own.

    `timeout`: seconds without a sign of life, before the first piece and between two. `retries`: how often a call is
    repeated that failed before its first piece; after it, a failure is raised, since the beginning would come twice.
    `config`: defaults of generation. `context_window`: tokens, None looks it up. litellm is imported at the first
    call. It works under asyncio only.
    """

    def __init__(
        self,
        name: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float = 120.0,
        retries: int = 2,
        config: GenerationConfig | None = None,
        context_window: int | None = None,
        profile: Profile | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.api_base = api_base
        self._connection = {"api_base": api_base, "api_key": api_key}
        self._timeout = timeout
        self._retry = RetryPolicy(max_attempts=retries + 1)
        self._config = config or GenerationConfig()
        self._window = context_window
        self._profile = profile or Profile()
        self._clock: Clock = clock or SystemClock()

    def __repr__(self) -> str:
        return f"LiteLLMModel({self.name!r})"

    @property
    def context_window(self) -> int | None:
        """Tokens that request and answer may have together; None if not known."""
        return self._window if self._window is not None else context_window(self.name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The answer, piece by piece. Raises ModelError. A caller that stops reading closes the connection."""
        parameters = self._parameters(request)
        attempt = 1
        while True:
            begun = False
            try:
                async with aclosing(self._attempt(parameters)) as deltas:
                    async for delta in deltas:
                        begun = True
                        yield delta
                return
            except Exception as error:
                failure = model_error(error, self.name, begun=begun) if not isinstance(error, ModelError) else error
                wait = None if begun else self._wait(failure, error, attempt)
                if wait is None:
                    raise failure from error
            await self._clock.sleep(wait)
            attempt += 1

    def _wait(self, failure: ModelError, error: Exception, attempt: int) -> float | None:
        """Seconds until the next attempt; None if there is none."""
        if not failure.retryable or attempt >= self._retry.max_attempts:
            return None
        asked = wait_asked_for(error)
        if asked is None:
            return self._retry.delay(attempt, random.random)
        return asked if asked <= MAX_WAIT else None

    def _parameters(self, request: ModelRequest) -> dict[str, Any]:
        config = merged_config(self._config, request.config)
        provider = self.name.partition("/")[0]
        asked = chat_parameters(request, config, provider=provider, reasoning=self._profile.wants_reasoning)
        if self._profile.streams and self._profile.reports_usage:
            asked.setdefault("stream_options", {"include_usage": True})
        own = {"model": self.name, "stream": self._profile.streams, "timeout": self._timeout}
        return asked | self._connection | own | {"num_retries": 0, "max_retries": 0}  # we repeat, nobody below us

    async def _attempt(self, parameters: dict[str, Any]) -> AsyncGenerator[Delta, None]:
        """One call. Raises what litellm raises, and ModelError for what it lets pass."""
        litellm = await litellm_module()
        response = await self._in_time(litellm.acompletion(**parameters))
        if not self._profile.streams:
            yield _priced(_whole(response, self.name), self.name)
            return
        try:
            async with aclosing(self._pieces(response)) as pieces:
                async for delta in pieces:
                    yield delta
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _pieces(self, response: Any) -> AsyncGenerator[Delta, None]:
        """The pieces of a stream that tell something, the end among them."""
        chunks = response.__aiter__()
        begun = ended = False
        while True:
            try:
                chunk = await self._in_time(anext(chunks, None))
            except Exception as error:
                if ended:
                    return  # the answer is whole; only the farewell is missing
                if not self._profile.ends_silently or "before a finish_reason" not in str(error):
                    raise
                chunk = None
            if chunk is None:
                break
            delta = _priced(_delta(chunk), self.name)
            if delta.finish_reason and getattr(response, "received_finish_reason", "?") is None:
                delta = delta._replace(finish_reason=None)  # litellm made it up, the provider has not sent one
            ended = ended or delta.finish_reason is not None
            if delta != _NOTHING:
                begun = True
                yield delta
        if not ended:
            yield self._silent_end(begun)

    async def _in_time(self, awaited: Awaitable[Any]) -> Any:
        """What is awaited; TimeoutError if it takes too long."""
        try:
            with anyio.fail_after(self._timeout):
                return await awaited
        except TimeoutError as error:
            raise TimeoutError(f"nothing came for {self._timeout:g} s") from error

    def _silent_end(self, begun: bool) -> Delta:
        """The end of a stream without a finish reason: right for some providers, a lost connection for others."""
        if self._profile.ends_silently:
            return Delta(finish_reason="stop")
        raise ModelError(
            f"the stream of model '{self.name}' ended without a finish reason"
            + (", so the answer may be cut" if begun else " and without an answer")
            + "; if the provider never sends one, say so with 'profile=Profile(ends_silently=True)'",
            kind="stream_error" if begun else "api_error",
            retryable=True,
        )


_NOTHING = Delta()


def _priced(delta: Delta, model: str) -> Delta:
    """The delta with what its tokens cost."""
    usage = delta.usage
    if usage is None:
        return delta
    return delta._replace(usage=usage.model_copy(update={"cost": cost_of(model, usage)}))


def _delta(chunk: Any) -> Delta:
    """A chunk of litellm as a delta; the last one may have usage and no choice."""
    usage = _usage(getattr(chunk, "usage", None))
    if not chunk.choices:
        return Delta(usage=usage)
    choice = chunk.choices[0]
    return _said(choice.delta, choice.finish_reason, usage)


def _whole(response: Any, model: str) -> Delta:
    """An answer that was not streamed, as one delta. Raises ModelError if there is none in it."""
    if not response.choices:
        raise ModelError(f"the provider of model '{model}' answered without a choice; ask again", retryable=True)
    choice = response.choices[0]
    return _said(choice.message, choice.finish_reason, _usage(getattr(response, "usage", None)))


def _said(said: Any, finish_reason: str | None, usage: TokenUsage | None) -> Delta:
    """What a delta or a message of litellm says; only the first choice is ever asked for."""
    reasoning = getattr(said, "reasoning_content", None) or getattr(said, "reasoning", None)
    calls = tuple(
        ToolCallDelta(getattr(call, "index", place), call.id, call.function.name, call.function.arguments or "")
        for place, call in enumerate(getattr(said, "tool_calls", None) or ())
    )
    return Delta(said.content or "", reasoning or "", calls, finish_reason or None, usage)


def _usage(usage: Any) -> TokenUsage | None:
    if usage is None:
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    return TokenUsage(
        input_tokens=getattr(usage, "prompt_tokens", None) or 0,
        output_tokens=getattr(usage, "completion_tokens", None) or 0,
        cached_tokens=getattr(details, "cached_tokens", None) or 0,
    )
