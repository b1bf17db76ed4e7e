"""The port that a language model fills: a request in, a stream of deltas out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from graphagent.ledger import TokenUsage
from graphagent.messages import Message, ToolCall


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it. `parameters`: a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """How to generate; None leaves it to the provider. `extra`: passed on as it is."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    reasoning_effort: str | None = None
    parallel_tool_calls: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model is asked. `output_schema`: the JSON schema that the answer must satisfy, or None."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    output_schema: Mapping[str, Any] | None = None
    config: GenerationConfig = GenerationConfig()
    tool_choice: str | None = None


NO_USAGE = TokenUsage()


class ToolCallDelta(NamedTuple):
    """A piece of a tool call as a provider streams it; `place` is the provider's index, which is not to be trusted."""

    place: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str = ""


class Delta(NamedTuple):
    """A piece of an answer."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    finish_reason: str | None = None
    usage: TokenUsage | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer, assembled. `finish_reason`: `stop`, `tool_calls`, `length`, `content_filter`, what the provider
    says, or `incomplete` if the stream ended before its end was announced. `invalid`: those of the message's tool calls
    that could not be read, with the reason; they are not run, the model is told."""

    message: Message
    usage: TokenUsage = NO_USAGE
    finish_reason: str = "stop"
    invalid: tuple[tuple[ToolCall, str], ...] = ()


class Model(Protocol):
    """A language model. `name`: as the provider knows it. `context_window`: tokens, None if not known."""

    name: str

    @property
    def context_window(self) -> int | None:
        """Tokens that request and answer may have together; None if not known."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The answer, piece by piece. Raises ModelError; a caller that stops reading closes the connection."""
        ...
