"""What the pieces of a streaming tool are together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphagent.agents.tool import ToolResult


class Pieces:
    """Adds pieces up: texts and lists one after another, numbers as a sum, mappings key by key (the last one counts),
    anything else by its own `merge(other)`, or the last piece counts. A `ToolResult` among them is the result, whatever
    the pieces are. No piece: None."""

    def __init__(self) -> None:
        self._sum: Any = None
        self._final: ToolResult | None = None

    @property
    def result(self) -> Any:
        """What there is so far."""
        return self._sum if self._final is None else self._final

    def add(self, piece: Any) -> bool:
        """Take a piece; False if it is the result and not a piece to be shown."""
        if isinstance(piece, ToolResult):
            self._final = piece
            return False
        self._sum = piece if self._sum is None else merged(self._sum, piece)
        return True


def merged(one: Any, other: Any) -> Any:
    """Two pieces as one."""
    if hasattr(one, "merge"):
        return one.merge(other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {**one, **other}
    if isinstance(one, list) and isinstance(other, list):
        return one + other
    summed = (isinstance(one, str) and isinstance(other, str)) or (_number(one) and _number(other))
    return one + other if summed else other


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
