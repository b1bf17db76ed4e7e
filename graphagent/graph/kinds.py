"""Kinds of nodes whose functions are made elsewhere: agents register how a node that calls a model is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphagent.graph.definition import NodeKind

Maker = Callable[[str, Mapping[str, Any]], Callable[..., Any]]
"""Makes the function of a node from its id and what the builder was given."""

_MAKERS: dict[NodeKind, Maker] = {}


def register(kind: NodeKind, maker: Maker) -> None:
    """Say how the functions of nodes of a kind are made."""
    _MAKERS[kind] = maker


def function_of(kind: NodeKind, id: str, config: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of a node of a kind. Raises what its maker raises for a config that is none."""
    return _MAKERS[kind](id, config)
