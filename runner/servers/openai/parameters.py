"""What a request asks of the agent's models: generation parameters within limits, and the form of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphagent.agents.agent import Agent
from graphagent.agents.invocation import Invocation
from graphagent.agents.llm_agent import LLMAgent
from graphagent.agents.model import GenerationConfig, ModelRequest, Reply
from graphagent.engine.context import NodeContext
from graphagent.errors import UsageError, alternatives
from graphagent.messages import Message
from runner.plugins import Plugin
from runner.servers.openai.errors import ApiError
from runner.servers.openai.request import ChatRequest

PARAMETERS = (
    "temperature",
    "top_p",
    "max_tokens",
    "stop",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "parallel_tool_calls",
)
"""The generation parameters of the API that reach a model; `max_completion_tokens` is `max_tokens`."""

_EXTRA = ("presence_penalty", "frequency_penalty")


@dataclass(frozen=True, slots=True)
class GenerationLimits:
    """What a client may ask of the models. `parameters`: those that it may set, others are refused; `max_tokens`: the
    most it may ask for, and what a request has that asks for nothing; None: no bound. `temperature`: the highest.
    Raises UsageError for a parameter that the API doesn't have."""

    parameters: tuple[str, ...] = PARAMETERS
    max_tokens: int | None = None
    temperature: float = 2.0

    def __post_init__(self) -> None:
        for name in self.parameters:
            if name not in PARAMETERS:
                raise UsageError(f"'{name}' is no generation parameter: {alternatives(name, PARAMETERS)}")


def generation(request: ChatRequest, limits: GenerationLimits) -> dict[str, Any]:
    """The parameters that a request sets. Raises ApiError for one that is not allowed, or too high."""
    found = {name: getattr(request, name) for name in PARAMETERS if getattr(request, name) is not None}
    if request.max_completion_tokens is not None:
        found["max_tokens"] = request.max_completion_tokens
    for name in found:
        if name not in limits.parameters:
            raise ApiError(f"this server doesn't let clients set '{name}'", param=name, code="unsupported_parameter")
    if found.get("temperature", 0) > limits.temperature:
        raise ApiError(f"the temperature is {found['temperature']}; the limit of this server is {limits.temperature}",
                       param="temperature")  # fmt: skip
    if limits.max_tokens is not None and found.setdefault("max_tokens", limits.max_tokens) > limits.max_tokens:
        raise ApiError(f"max_tokens is {found['max_tokens']}; the limit of this server is {limits.max_tokens}",
                       param="max_tokens")  # fmt: skip
    if "stop" in found:
        found["stop"] = (found["stop"],) if isinstance(found["stop"], str) else tuple(found["stop"])
    return found


def output_schema(request: ChatRequest, agent: Agent | str) -> Mapping[str, Any] | None:
    """The JSON schema that the answer has to satisfy; None if it may be any text. Raises ApiError if the agent can't be
    held to one: only one model that answers by itself, without a schema of its own, can."""
    wanted = request.response_format
    if wanted is None or wanted.type == "text":
        return None
    if not isinstance(agent, LLMAgent) or agent.sub_agents or has_schema(agent):
        raise ApiError(
            "this agent decides itself on the form of its answer; leave 'response_format' out",
            param="response_format",
            code="unsupported_parameter",
        )
    return {"type": "object"} if wanted.json_schema is None else (wanted.json_schema.schema_ or {"type": "object"})


def has_schema(agent: Agent | str) -> bool:
    """True if a model of the agent is held to a schema: it may be asked several times for one answer."""
    nodes = getattr(getattr(agent, "graph", None), "nodes", {}).values()
    return any(node.kind == "llm" and node.config["output_schema"] is not None for node in nodes)


class AsAsked(Plugin):
    """Puts what a request asks for into the requests of the models of its run. `parameters`: over those of the agent;
    `instruction`: behind the agent's own;
    `schema`: of the answer."""

    name = "openai_request"

    def __init__(self, parameters: Mapping[str, Any], instruction: str, schema: Mapping[str, Any] | None) -> None:
        self._instruction = instruction
        self._known: dict[str, Any] = {name: value for name, value in parameters.items() if name not in _EXTRA}
        self._extra = {name: value for name, value in parameters.items() if name in _EXTRA}
        self._schema = schema

    async def before_model(
        self, invocation: Invocation, request: ModelRequest, ctx: NodeContext
    ) -> ModelRequest | Reply | None:
        """The request with what the client asks for."""
        schema = request.output_schema if self._schema is None else self._schema
        messages = self._told(request.messages)
        return replace(request, messages=messages, config=self._over(request.config), output_schema=schema)

    def _told(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        if not self._instruction:
            return messages
        first = messages[0]
        if first.role != "system":
            return (Message.system(self._instruction), *messages)
        return (Message.system(f"{first.text}\n\n{self._instruction}"), *messages[1:])

    def _over(self, config: GenerationConfig) -> GenerationConfig:
        return replace(config, **self._known, extra={**config.extra, **self._extra})
