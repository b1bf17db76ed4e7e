"""Whether two graphs come from one definition: a builder, what it compiles to, and what a function makes of it anew."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from graphagent.graph.builder import StateGraph
from graphagent.graph.compiled import CompiledGraph

_DEEPEST = 6
_APART = ("problems", "callbacks", "cache", "cache_policy")


def made_of(graph: CompiledGraph | StateGraph) -> Any:
    """A hashable value that is equal for graphs made by the same calls with the same code, values and places.

    Where that can't be told, values differ: a graph that is checked twice does no harm.
    """
    parts = {item.name: getattr(graph.definition, item.name) for item in fields(graph.definition)}
    return (graph.schema.state, _shape({name: part for name, part in parts.items() if name not in _APART}, 0))


def _shape(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return id(value)
    if inspect.isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
        return (value.__code__, _shape([*cells, value.__defaults__, value.__kwdefaults__], depth + 1))
    if isinstance(value, CompiledGraph | StateGraph):
        return made_of(value)
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, *(_shape(getattr(value, item.name), depth + 1) for item in fields(value)))
    if isinstance(value, Mapping):
        return tuple((repr(key), _shape(item, depth + 1)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(_shape(item, depth + 1) for item in value)
    return repr(value) if isinstance(value, str | int | float | bool | type | None) else id(value)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 -- an unfilled cell raises
    except ValueError:
        return False
    return True
