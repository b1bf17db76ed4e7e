"""A request in the shape of the OpenAI chat API, which litellm takes for every provider. Pure.

Source: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from graphagent.agents.model import GenerationConfig, ModelRequest
from graphagent.messages import Message

_UNSET: tuple[Any, ...] = (None, (), {})


def merged_config(default: GenerationConfig, asked: GenerationConfig) -> GenerationConfig:
    """What a request asks for, filled up with a model's defaults; `extra` is merged by key."""
    changes = {f.name: getattr(asked, f.name) for f in fields(asked) if getattr(asked, f.name) not in _UNSET}
    return replace(default, **changes | {"extra": {**default.extra, **asked.extra}})


def chat_parameters(
    request: ModelRequest, config: GenerationConfig, *, provider: str = "", reasoning: bool = False
) -> dict[str, Any]:
    """The parameters of a call, without model and connection; what is not asked for is not in it. `reasoning`: send
    the model's earlier thinking back."""
    asked: dict[str, Any] = {
        "messages": [chat_message(message, reasoning=reasoning) for message in request.messages],
        "temperature": config.temperature,
        "top_p": config.top_p,
        "max_tokens": config.max_tokens,
        "stop": list(config.stop) or None,
        "seed": config.seed,
        "reasoning_effort": config.reasoning_effort,
    }
    if request.tools:
        asked["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters) or {"type": "object", "properties": {}},
                },
            }
            for tool in request.tools
        ]
        asked["tool_choice"] = _tool_choice(request.tool_choice)
        asked["parallel_tool_calls"] = config.parallel_tool_calls
    if request.output_schema is not None:
        asked["response_format"] = response_format(request.output_schema, provider)
        if request.tools and config.parallel_tool_calls is None:
            asked["parallel_tool_calls"] = False  # a schema is kept with one call at a time only
    return {name: value for name, value in asked.items() if value is not None} | dict(config.extra)


def chat_message(message: Message, *, reasoning: bool = False) -> dict[str, Any]:
    """A message. Most providers refuse a message with reasoning, some that think between tool calls want it back."""
    found: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name:
        found["name"] = message.name
    if reasoning and message.reasoning:
        found["reasoning_content"] = message.reasoning
    if message.tool_call_id is not None:
        found["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        found["content"] = message.content or None
        found["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    return found


def response_format(schema: Mapping[str, Any], provider: str = "") -> dict[str, Any]:
    """How the answer is bound to a schema; strictly, where the schema allows it. DeepSeek knows plain JSON only."""
    if provider == "deepseek":
        return {"type": "json_object"}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title") or "answer"))[:64]
    return {
        "type": "json_schema",
        "json_schema": {"name": name, "schema": dict(schema), "strict": can_be_strict(schema)},
    }


def can_be_strict(schema: Any) -> bool:
    """True if every object of a schema closes itself and requires all its properties, which strict mode asks for."""
    if isinstance(schema, list | tuple):
        return all(can_be_strict(item) for item in schema)
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(properties) != set(schema.get("required", ())):
            return False
        return all(can_be_strict(item) for item in properties.values()) and can_be_strict(schema.get("$defs", {}))
    return all(
        can_be_strict(item) for key, item in schema.items() if key not in ("enum", "const", "default", "examples")
    )


def _tool_choice(choice: str | None) -> Any:
    """`auto`, `none` and `required` as they are; anything else is the name of a tool."""
    if choice in (None, "auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}
