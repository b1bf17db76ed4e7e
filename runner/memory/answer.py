"""The operations that a model asks for: the schema of its answer, and how it is read."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from graphagent.services import About
from runner.memory.dates import period
from runner.memory.entries import KINDS
from runner.memory.operations import Operation

_log = logging.getLogger(__name__)
_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)
_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}


class _Item(BaseModel):
    """An operation as a model writes it; what is empty isn't given."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    type: str
    id: str | None = None
    memory: str | None = None
    topics: list[str] | None = None
    kind: str | None = None
    event_time: str | None = None
    participants: list[str] | None = None
    location: str | None = None

    def operation(self) -> Operation:
        about: About = {}
        if topics := [name for name in self.topics or () if name]:
            about["topics"] = topics
        if self.kind:
            about["kind"] = self.kind
        if self.event_time and (at := _moment(self.event_time)) is not None:
            about["event_time"] = at
        if participants := [name for name in self.participants or () if name]:
            about["participants"] = participants
        if self.location:
            about["location"] = self.location
        return Operation(self.type, self.id or "", self.memory or "", about)


class _Answer(BaseModel):
    operations: list[_Item]


def schema(allowed: Collection[str]) -> dict[str, Any]:
    """The JSON schema of an answer with these kinds of operations; all its fields are required, as strict modes ask."""
    fields: dict[str, Any] = {
        "type": {"type": "string", "enum": sorted(allowed)},
        "id": {**_TEXT, "description": "of the memory to update or delete; empty for add and clear"},
        "memory": {**_TEXT, "description": "one statement; empty for delete and clear"},
        "topics": _TEXTS,
        "kind": {"type": "string", "enum": list(KINDS)},
        "event_time": {**_TEXT, "description": "absolute, such as 2023-05-07; empty if not known"},
        "participants": _TEXTS,
        "location": _TEXT,
    }
    return _object({"operations": {"type": "array", "items": _object(fields)}})


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def read(text: str) -> tuple[Operation, ...]:
    """The operations of an answer, which may stand in a code fence. Raises ValueError, saying what is wrong where."""
    fenced = _FENCE.match(text)
    try:
        answer = _Answer.model_validate_json(fenced[1] if fenced else text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where + ': ' if where else ''}{first['msg']}") from error
    return tuple(item.operation() for item in answer.operations)


def _moment(text: str) -> float | None:
    """The beginning of what a text names; None, and a word in the log, if it names no date: the memory's own text has
    what was said of it."""
    try:
        return period(text).start
    except ValueError as error:
        _log.info("the time of a memory is left out: %s", error)
        return None
