"""Placeholders in instructions: what they are, and what they become. The one grammar of agents and processors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_PLACEHOLDER = re.compile(
    r"(?<!\{)\{(?:(?P<scope>app|user|temp|invocation|runtime):|(?P<artifact>artifact\.))?"
    r"(?P<key>(?(artifact)[^{}?\n]+|[A-Za-z_][\w.-]*))(?P<optional>\?)?\}(?!\})"
)
ARTIFACT = "artifact"
"""The scope of `{artifact.name}`."""


class Placeholder(NamedTuple):
    """A place in a text. `scope`: `app`, `user`, `temp`, `invocation`, `runtime`, `artifact`; empty for a bare key."""

    scope: str
    key: str

    @property
    def state_key(self) -> str:
        """The name that a session's state has for it: `app:key`, `user:key`, `temp:key`, or the bare key."""
        return f"{self.scope}:{self.key}" if self.scope else self.key


@dataclass(frozen=True, slots=True)
class Values:
    """Where placeholders get their values. `state`: the session's, with `app:`, `user:` and `temp:` keys in it;
    `invocation` and `runtime`: what the run brings; `artifacts`: texts by name."""

    state: Mapping[str, Any] = field(default_factory=dict)
    invocation: Mapping[str, Any] = field(default_factory=dict)
    runtime: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)

    def find(self, asked: Placeholder) -> Any:
        """The value; None if there is none, or if it is None."""
        if asked.scope == ARTIFACT:
            return self.artifacts.get(asked.key)
        if asked.scope in ("invocation", "runtime"):
            return (self.invocation if asked.scope == "invocation" else self.runtime).get(asked.key)
        return self.state.get(asked.state_key)


class Rendered(NamedTuple):
    """A text with its values put in, and the placeholders that found none and stand as they were."""

    text: str
    unresolved: tuple[str, ...] = ()


def render(template: str, values: Values) -> Rendered:
    """Put values in place of `{key}`, `{app:key}`, `{user:key}`, `{temp:key}`, `{invocation:key}`, `{runtime:key}` and
    `{artifact.name}`.

    `{key?}` becomes empty if there is no value; `{key}` then stays as it is, since it may be meant. None is no value.
    Text stays text, anything else is written as JSON. Values are not looked through for placeholders, and `{{key}}` is
    none. Source: spec/context, 5.2.
    """
    unresolved: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        value = values.find(_asked(match))
        if value is not None:
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if match["optional"]:
            return ""
        unresolved.append(match[0])
        return match[0]

    return Rendered(_PLACEHOLDER.sub(replaced, template), tuple(unresolved))


def placeholders(template: str) -> Iterator[Placeholder]:
    """The placeholders of a text, in order."""
    if "{" in template:
        yield from map(_asked, _PLACEHOLDER.finditer(template))


def artifact_names(template: str) -> tuple[str, ...]:
    """The names of the artifacts that a text asks for, each once."""
    return tuple(dict.fromkeys(asked.key for asked in placeholders(template) if asked.scope == ARTIFACT))


def _asked(match: re.Match[str]) -> Placeholder:
    return Placeholder(ARTIFACT if match["artifact"] else match["scope"] or "", match["key"])
