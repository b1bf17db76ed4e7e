"""Structured output: the schema that an answer must satisfy, and the answer as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from graphagent.errors import AgentError


class OutputSchema:
    """A type (a pydantic model, `list[int]`, ...), or a JSON schema, that answers are read as. `schema`: what the model
    is asked for. Of a JSON schema only the keys that it requires are checked. Raises AgentError for neither."""

    def __init__(self, declared: Any) -> None:
        self._adapter: TypeAdapter[Any] | None = None
        self._required: tuple[str, ...] = ()
        if isinstance(declared, Mapping):
            self.schema: Mapping[str, Any] = declared
            self._required = tuple(declared.get("required", ()))
            return
        try:
            self._adapter = TypeAdapter(declared)
            self.schema = self._adapter.json_schema()
        except Exception as error:
            raise AgentError(
                f"{declared!r:.80} is no output schema ({error}); pass a pydantic model, another type, or a JSON schema"
            ) from error

    def read(self, text: str) -> Any:
        """The answer as plain data. Raises ValueError that says what is wrong with it, as a model can be told."""
        try:
            value = json.loads(json_part(text), strict=False)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"it is not valid JSON ({error})") from error
        if self._adapter is not None:
            try:
                return to_jsonable_python(self._adapter.validate_python(value))
            except ValidationError as error:
                raise ValueError(_told(error)) from error
        missing = [name for name in self._required if not isinstance(value, dict) or name not in value]
        if missing:
            raise ValueError(f"it lacks {', '.join(map(repr, missing))}")
        return value


def _told(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [f"{'.'.join(map(str, p['loc'])) or 'the whole'}: {p['msg']}" for p in problems[:5]]
    return "; ".join(shown)


def json_part(text: str) -> str:
    """The first whole JSON object or array in a text, or the text itself if there is none: models like to put words or
    a fence around it."""
    decoder = json.JSONDecoder(strict=False)
    stripped = text.strip()
    for start, character in enumerate(stripped):
        if character in "{[":
            try:
                _, end = decoder.raw_decode(stripped, start)
            except (ValueError, RecursionError):
                continue
            return stripped[start:end]
    return stripped
