"""A cassette: a file of recorded model calls, one JSON document a line, that people can read and compare.

A message, a tool or a schema is written once, as a line `{"part": key, "value": ...}`; a call refers to its parts by
key, so the file of a long conversation grows by what is new. Ids of messages are left out, since they differ by run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from graphagent.agents.model import Delta, ModelRequest, ToolCallDelta
from graphagent.errors import ModelError
from graphagent.ledger import TokenUsage


class Call(NamedTuple):
    """A recorded call: the keys of what was asked, in order and by place, and what was answered."""

    asked: dict[str, str]
    deltas: tuple[Delta, ...]
    error: ModelError | None


class Cassette:
    """A file of calls. `calls`: those that it holds, in their order. Raises ModelError for a file that isn't one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.calls: list[Call] = []
        self._parts: dict[str, Any] = {}

    def load(self) -> None:
        """Read the file; a missing one has no calls."""
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8", errors="surrogatepass")
        for number, line in enumerate(text.split("\n"), 1):  # not splitlines: texts hold other separators as they are
            try:
                if line:
                    self._take(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise ModelError(
                    f"line {number} of cassette '{self.path}' can't be read ({error}); record it again",
                    kind="invalid_request",
                ) from error

    def clear(self) -> None:
        """Begin an empty file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("", encoding="utf-8")

    def add(self, request: ModelRequest, deltas: tuple[Delta, ...], error: ModelError | None) -> None:
        """Write a call, and whatever of it the file doesn't hold yet."""
        parts = {place: (key_of(value), value) for place, value in asked_of(request).items()}
        lines: list[dict[str, Any]] = []
        for key, value in parts.values():
            if key not in self._parts:
                self._parts[key] = value
                lines.append({"part": key, "value": value})
        asked = {place: key for place, (key, _) in parts.items()}
        made: dict[str, Any] = {"call": asked, "deltas": [_plain(delta) for delta in deltas]}
        if error is not None:
            made["error"] = {"message": str(error), "kind": error.kind, "retryable": error.retryable}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
            file.write("".join(f"{json.dumps(line, ensure_ascii=False, default=_data)}\n" for line in [*lines, made]))
        self.calls.append(Call(asked, deltas, error))

    def part(self, key: str) -> Any:
        """The value of a recorded part."""
        return self._parts[key]

    def _take(self, line: dict[str, Any]) -> None:
        if "part" in line:
            self._parts[line["part"]] = line["value"]
            return
        error = ModelError(line["error"].pop("message"), **line["error"]) if "error" in line else None
        self.calls.append(Call(line["call"], tuple(_delta(delta) for delta in line["deltas"]), error))


def asked_of(request: ModelRequest) -> dict[str, Any]:
    """A request as plain data by place: `message 0`, `tool 'search'`, `output schema`, `config`, `tool choice`."""
    found: dict[str, Any] = {}
    for number, message in enumerate(request.messages):
        found[f"message {number}"] = message.model_dump(mode="json", exclude={"id"}, exclude_defaults=True)
    for tool in request.tools:
        found[f"tool '{tool.name}'"] = {"description": tool.description, "parameters": tool.parameters}
    if request.output_schema is not None:
        found["output schema"] = request.output_schema
    config = {field.name: getattr(request.config, field.name) for field in fields(request.config)}
    found["config"] = {name: value for name, value in config.items() if value not in (None, (), {})}
    if request.tool_choice is not None:
        found["tool choice"] = request.tool_choice
    return found


def key_of(value: Any) -> str:
    """A short key of plain data: the same for the same data, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_data)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _data(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _plain(delta: Delta) -> dict[str, Any]:
    """A delta as plain data, without what it leaves empty."""
    found = {name: value for name, value in delta._asdict().items() if value}
    if delta.tool_calls:
        found["tool_calls"] = [list(piece) for piece in delta.tool_calls]
    if delta.usage is not None:
        found["usage"] = delta.usage.model_dump()
    return found


def _delta(plain: dict[str, Any]) -> Delta:
    calls = tuple(ToolCallDelta(*piece) for piece in plain.pop("tool_calls", ()))
    usage = plain.pop("usage", None)
    return Delta(**plain, tool_calls=calls, usage=None if usage is None else TokenUsage(**usage))
