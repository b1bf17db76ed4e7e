"""A chat request as the API has it: what is taken, and what is refused with which words."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError

from runner.servers.openai.errors import ApiError

Text = Annotated[StrictStr, Field(min_length=1)]
Number = StrictInt | StrictFloat
MOST_TOOLS = 128
_NAME = r"^[a-zA-Z0-9_-]{1,64}$"


class _Part(BaseModel):
    """Base of all parts; what the API has beside the fields here is left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class CalledFunction(_Part):
    """A call of a function; `arguments` is JSON text of an object."""

    name: Text
    arguments: StrictStr = "{}"


class Called(_Part):
    """A tool call that the assistant made before."""

    id: Text
    type: Literal["function"] = "function"
    function: CalledFunction


class Said(_Part):
    """One message. `content`: text, parts, or nothing."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: StrictStr | list[dict[str, Any]] | None = None
    name: StrictStr | None = None
    tool_calls: list[Called] | None = None
    tool_call_id: StrictStr | None = None


class FunctionSpec(_Part):
    """A function of the client's."""

    name: Annotated[StrictStr, Field(pattern=_NAME)]
    description: StrictStr | None = None
    parameters: dict[str, Any] | None = None


class ClientTool(_Part):
    """A tool of the client's."""

    type: Literal["function"] = "function"
    function: FunctionSpec


class SchemaOf(_Part):
    """What `response_format` says of a JSON schema."""

    name: StrictStr = "answer"
    schema_: dict[str, Any] = Field(default_factory=dict, alias="schema")


class Format(_Part):
    """How the answer has to look."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaOf | None = None


class StreamOptions(_Part):
    """`include_usage`: one chunk more, with the tokens of the run."""

    include_usage: StrictBool | None = None


class ChatRequest(_Part):
    """The body of `/v1/chat/completions`. `answers`: an addition to the API, answers to an agent's questions by key."""

    model: Text
    messages: Annotated[list[Said], Field(min_length=1)]
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[ClientTool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: Any = None
    response_format: Format | None = None
    n: StrictInt | None = None
    temperature: Annotated[Number, Field(ge=0, le=2)] | None = None
    top_p: Annotated[Number, Field(ge=0, le=1)] | None = None
    max_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    stop: StrictStr | Annotated[list[StrictStr], Field(max_length=4)] | None = None
    seed: Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)] | None = None
    presence_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[Number, Field(ge=-2, le=2)] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    parallel_tool_calls: StrictBool | None = None
    answers: dict[str, Any] | None = None
    functions: Any = None
    function_call: Any = None
    logprobs: StrictBool | None = None
    modalities: Any = None
    audio: Any = None


def parsed(body: Any) -> ChatRequest:
    """The body as a request. Raises ApiError that names the first field that doesn't fit."""
    if not isinstance(body, dict):
        raise ApiError(f"the body is a JSON {_kind(body)}; send an object")
    try:
        request = ChatRequest.model_validate(body)
    except ValidationError as error:
        raise _refusal(error) from error
    _check_unsupported(request)
    _check_tools(request)
    _check_format(request)
    return request


def _check_unsupported(request: ChatRequest) -> None:
    if request.n not in (None, 1):
        raise ApiError(f"n is {request.n}; a run gives one answer", param="n")
    if request.logprobs:
        raise ApiError("an agent's answer has no log probabilities", param="logprobs")
    if request.modalities not in (None, ["text"]) or request.audio is not None:
        raise ApiError("an agent answers in text", param="modalities")
    for name in ("functions", "function_call"):
        if getattr(request, name) is not None:
            raise ApiError(f"'{name}' is the API's former way; send 'tools'", param=name)
    if request.stream_options is not None and not request.stream:
        raise ApiError("'stream_options' need 'stream': true", param="stream_options")


def _check_tools(request: ChatRequest) -> None:
    seen: set[str] = set()
    for place, one in enumerate(request.tools or ()):
        where = f"tools.{place}.function"
        if one.function.name in seen:
            raise ApiError(f"two tools are called '{one.function.name}'", param=f"{where}.name")
        seen.add(one.function.name)
        if (one.function.parameters or {}).get("type", "object") != "object":
            raise ApiError("the parameters of a function are an object", param=f"{where}.parameters")
    choice = request.tool_choice
    if choice not in (None, "auto", "none") and (request.tools or isinstance(choice, dict)):
        raise ApiError(
            "an agent decides itself which tools it calls: leave 'tool_choice' out, or send 'auto' or 'none'",
            param="tool_choice",
            code="unsupported_value",
        )


def _check_format(request: ChatRequest) -> None:
    wanted = request.response_format
    if wanted is None or wanted.type != "json_schema":
        return
    if wanted.json_schema is None:
        raise ApiError("'json_schema' is missing", param="response_format.json_schema")
    required = wanted.json_schema.schema_.get("required", [])
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        raise ApiError("'required' is a list of names", param="response_format.json_schema.schema.required")


def _refusal(error: ValidationError) -> ApiError:
    found = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = [str(part) for part in found["loc"]]
    param = ".".join(part for part in place if part.isdigit() or part in _FIELDS) or None
    return ApiError(f"{param or 'the request'}: {found['msg']}", param=param)


def arguments_of(call: Called, param: str) -> dict[str, Any]:
    """The arguments of an earlier call as data. Raises ApiError for text that is no JSON object."""
    try:
        value = json.loads(call.function.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ApiError(f"the arguments of call '{call.id}' are no JSON text", param=param) from error
    if not isinstance(value, dict):
        raise ApiError(f"the arguments of call '{call.id}' are a JSON {_kind(value)}, not an object", param=param)
    return value


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def _names(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


_PARTS = (ChatRequest, Said, Called, CalledFunction, ClientTool, FunctionSpec, Format, SchemaOf, StreamOptions)
_FIELDS = frozenset(name for part in _PARTS for name in _names(part))
