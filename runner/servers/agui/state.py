"""State that is shown to clients: a snapshot first, then what changes, as JSON patches (RFC 6902)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ag_ui.core import BaseEvent, StateDeltaEvent, StateSnapshotEvent
from pydantic_core import from_json, to_json

MOST_DEPTH = 64
"""Levels into which a patch goes; what is deeper is replaced as a whole."""


def plain_copy(value: Any) -> Any:
    """Any value as JSON has it, sharing nothing with it; what JSON doesn't know is told as text, or as null."""
    try:
        return from_json(to_json(value, inf_nan_mode="null", serialize_unknown=True))
    except ValueError:  # such as half of a surrogate pair, which UTF-8 can't hold
        pass
    try:
        return json.loads(json.dumps(value, skipkeys=True, default=str), parse_constant=lambda name: None)
    except (ValueError, RecursionError):  # a circle
        return f"({type(value).__name__})"


class ShownState:
    """The keys of the state that a client sees, as it has them. Empty keys show nothing."""

    def __init__(self, keys: tuple[str, ...], state: Mapping[str, Any]) -> None:
        self._keys = keys
        self._sent: dict[str, Any] = self._of(state)

    def snapshot(self) -> list[BaseEvent]:
        """The whole of it."""
        return [StateSnapshotEvent(snapshot=plain_copy(self._sent))] if self._keys else []

    def change(self, delta: Mapping[str, Any]) -> list[BaseEvent]:
        """What a delta changes: an `add` for what was not there, before any `replace` of it."""
        new = {**self._sent, **self._of(delta)}
        patch = difference(self._sent, new)
        self._sent = new
        return [StateDeltaEvent(delta=patch)] if patch else []

    def _of(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return {key: plain_copy(state[key]) for key in self._keys if key in state}


def difference(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "", depth: int = 0) -> list[Any]:
    """The operations of a patch that makes one object from another. Lists are replaced as a whole."""
    patch: list[Any] = [{"op": "remove", "path": f"{path}/{_token(key)}"} for key in old if key not in new]
    for key, value in new.items():
        place = f"{path}/{_token(key)}"
        if key not in old:
            patch.append({"op": "add", "path": place, "value": value})
        elif isinstance(value, dict) and isinstance(old[key], dict) and depth < MOST_DEPTH:
            patch += difference(old[key], value, place, depth + 1)
        elif not same(old[key], value):
            patch.append({"op": "replace", "path": place, "value": value})
    return patch


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
