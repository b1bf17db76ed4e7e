"""Placeholders in instructions: what they are, and what they become."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_PLACEHOLDER = re.compile(
    r"(?<!\{)\{(?:(?P<scope>app|user|temp|invocation|runtime):|(?P<artifact>artifact\.))?"
    r"(?P<key>(?(artifact)[^{}?\n]+|[A-Za-z_][\w.-]*))(?P<optional>\?)?\}(?!\})"
)


@dataclass(frozen=True, slots=True)
class Values:
    """Where placeholders get their values. `state`: the session's, with `app:`, `user:` and `temp:` keys in it;
    `invocation` and `runtime`: what the run brings; `artifacts`: texts by name."""

    state: Mapping[str, Any] = field(default_factory=dict)
    invocation: Mapping[str, Any] = field(default_factory=dict)
    runtime: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)

    def find(self, scope: str | None, key: str) -> Any:
        """The value, or None if there is none."""
        if scope == "invocation":
            return self.invocation.get(key)
        if scope == "runtime":
            return self.runtime.get(key)
        return self.state.get(f"{scope}:{key}" if scope else key)


class Rendered(NamedTuple):
    """A text with its values put in, and the placeholders that found none and stand as they were."""

    text: str
    unresolved: tuple[str, ...] = ()


def render(template: str, values: Values) -> Rendered:
    """Put values in place of `{key}`, `{app:key}`, `{user:key}`, `{temp:key}`, `{invocation:key}`, `{runtime:key}` and
    `{artifact.name}`.

    `{key?}` becomes empty if there is no value; `{key}` then stays as it is, since it may be meant. Text stays text,
    anything else is written as JSON. Values are not looked through for placeholders, and `{{key}}` is none. Source:
    spec/context, 5.2.
    """
    unresolved: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        key = match["key"]
        value = values.artifacts.get(key) if match["artifact"] else values.find(match["scope"], key)
        if value is not None:
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if match["optional"]:
            return ""
        unresolved.append(match[0])
        return match[0]

    return Rendered(_PLACEHOLDER.sub(replaced, template), tuple(unresolved))


def artifact_names(template: str) -> tuple[str, ...]:
    """The names of the artifacts that a text asks for, each once."""
    return tuple(dict.fromkeys(match["key"] for match in _PLACEHOLDER.finditer(template) if match["artifact"]))
